"""A tree of YAML nodes -> plain values, with the mark of each and every fault on the way."""

from __future__ import annotations

from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from edgert.errors import Fault, PipelineError
from edgert.pipeline.marks import Loc, Mark, Marks
from edgert.pipeline.yamltext import MAX_DEPTH, MAX_NODES, scalar_value

_TAG = "tag:yaml.org,2002:"
_SCALARS = {_TAG + kind for kind in ("str", "int", "float", "bool", "null", "timestamp", "value")}
_MERGE = _TAG + "merge"

Pairs = list[tuple[Node, Node]]


class Constructor:
    """Constructs the values of one file.

    Attributes:
        marks: Where each value stands.
        faults: What was wrong; the value is left out.
    """

    def __init__(self, file: str) -> None:
        self.marks = Marks(file)
        self.faults: list[Fault] = []
        self._count = 0

    def construct(self, node: Node, loc: Loc = (), key: Node | None = None) -> Any:
        """Return the plain value of a node: dict, list, str, int, float, bool or None.

        Args:
            node: The node.
            loc: Its key path.
            key: The node of its key, where it has one.

        Raises:
            PipelineError: Aliases make it too large or endless.
        """
        self.marks.table[loc] = _mark(node, key or node)
        self._guard(loc)
        if isinstance(node, ScalarNode):
            return self._scalar(node, loc)
        if isinstance(node, SequenceNode) and node.tag == _TAG + "seq":
            return [self.construct(item, (*loc, index)) for index, item in enumerate(node.value)]
        if isinstance(node, MappingNode) and node.tag == _TAG + "map":
            return self._mapping(node, loc)
        self._refuse_tag(node, loc)
        return None

    def _guard(self, loc: Loc) -> None:
        self._count += 1
        if self._count > MAX_NODES or len(loc) > 2 * MAX_DEPTH:
            fault = "its aliases ('*name') make it too large or endless"
            raise PipelineError([self.marks.fault(loc, fault, "Use fewer aliases", place="YAML")])

    def _scalar(self, node: ScalarNode, loc: Loc) -> Any:
        if node.tag not in _SCALARS:
            self._refuse_tag(node, loc)
            return None
        try:
            return scalar_value(node.tag, node.value)
        except ValueError:
            shown = node.value if len(node.value) <= 40 else f"{node.value[:40]}..."
            fault = f"'{shown}' is not a value that can be read"
            self.faults.append(self.marks.fault(loc, fault, "Quote it if it is text"))
            return None

    def _refuse_tag(self, node: Node, loc: Loc) -> None:
        tag = node.tag.replace(_TAG, "!!")
        fault = f"the tag '{tag}' is not allowed here"
        self.faults.append(self.marks.fault(loc, fault, "Remove the tag"))

    def _mapping(self, node: MappingNode, loc: Loc) -> dict[str, Any]:
        own, merged = self._pairs(node, loc)
        values: dict[str, Any] = {}
        for key, value in self._once(own, loc):
            values[key.value] = self.construct(value, (*loc, key.value), key)
        for key, value in merged:
            if key.value not in values:
                values[key.value] = self.construct(value, (*loc, key.value), key)
        return values

    def _once(self, pairs: Pairs, loc: Loc) -> Pairs:
        """Leave out keys that stand there twice, with a fault for each."""
        first: dict[str, Node] = {}
        kept: Pairs = []
        for key, value in pairs:
            if key.value in first:
                line = first[key.value].start_mark.line + 1
                fault = f"the key '{key.value}' stands here twice, first on line {line}"
                self.faults.append(self._at(key, (*loc, key.value), fault, "Remove one of them"))
                continue
            first[key.value] = key
            kept.append((key, value))
        return kept

    def _pairs(self, node: MappingNode, loc: Loc) -> tuple[Pairs, Pairs]:
        """Return a mapping's own pairs and those that ``<<`` merges into it."""
        own: Pairs = []
        merged: Pairs = []
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self.faults.append(self._at(key, loc, "a key is not plain text", "Write a name"))
            elif key.tag == _MERGE:
                merged += self._merge(value, loc)
            else:
                own.append((key, value))
        return own, merged

    def _merge(self, node: Node, loc: Loc) -> Pairs:
        parts = node.value if isinstance(node, SequenceNode) else [node]
        pairs: Pairs = []
        for part in parts:
            self._guard(loc)
            if isinstance(part, MappingNode) and not any(k.tag == _MERGE for k, _ in part.value):
                pairs += [pair for pair in part.value if isinstance(pair[0], ScalarNode)]
                continue
            mend = "Write '<<: *name' of a mapping that has no '<<' itself"
            self.faults.append(self._at(part, loc, "'<<' cannot merge this", mend))
        return pairs

    def _at(self, node: Node, loc: Loc, fault: str, mend: str) -> Fault:
        said = self.marks.fault(loc, fault, mend)
        line, column = node.start_mark.line + 1, node.start_mark.column + 1
        return Fault(said.place, said.fault, said.mend, self.marks.file, line, column)


def _mark(node: Node, key: Node) -> Mark:
    text = node.value if isinstance(node, ScalarNode) else None
    start = key.start_mark if text is None else node.start_mark
    at_key = key.start_mark
    return Mark(start.line + 1, start.column + 1, at_key.line + 1, at_key.column + 1, text)
