"""What Rockchip's toolkit says: the table of layers in its compiler's log, and why it gave up.

ID OpType DataType Target InputShape OutputShape Cycles(DDR/NPU/Total) RW(KB) FullName
"""

from __future__ import annotations

import re

from edgert.coverage.record import Node, Placement

_LAYER = re.compile(
    r"^D RKNN: \[[\d:.]+\] (?P<id>\d+) +(?P<kind>\S+) +\S+ +(?P<target>CPU|NPU|GPU) +"
    r"\S+ +\S+ +\d+/\d+/(?P<cycles>\d+) +(?P<kib>\d+)(?: +(?P<name>\S.*?))? *$",
    re.MULTILINE,
)
_ENDS = ("InputOperator", "OutputOperator")  # where tensors come in and go out: nothing is computed
_PLACEMENTS: dict[str, Placement] = {"NPU": "device", "CPU": "cpu", "GPU": "cpu"}
# What it says where an operator, in this version or with this shape, has no implementation.
_UNSUPPORTED = ("unsupport", "not support", "need to be constant")


def layers(log: str) -> list[Node]:
    """Return the layers that the compiler made of a model, in the order in which they run."""
    nodes: list[Node] = []
    for found in _LAYER.finditer(log):
        if found["kind"] in _ENDS:
            continue
        where = _PLACEMENTS[found["target"]]
        part = 0 if not nodes else (nodes[-1].partition or 0) + (nodes[-1].placement != where)
        node = Node(
            name=(found["name"] or "").partition(":")[2] or f"layer {found['id']}",
            operator=found["kind"],
            placement=where,
            reason="" if where == "device" else f"the compiler gives it to the {found['target']}",
            partition=part,
            cycles=int(found["cycles"]) or None,
            moved_kib=int(found["kib"]),
        )
        nodes.append(node)
    return nodes


def fault_of(raised: str) -> str:
    """Return what the toolkit raised on one line: it raises its own tracebacks as text."""
    return " ".join(re.split(r"^\w+Error: ", raised, flags=re.MULTILINE)[-1].split())


def is_refusal(fault: str) -> bool:
    """Return whether it cannot do what a model wants, rather than failed at it."""
    return any(sign in fault.lower() for sign in _UNSUPPORTED)
