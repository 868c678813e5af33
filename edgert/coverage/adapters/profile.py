"""The operators that a device profile lists: what a document says, where nothing can be run.

The weakest evidence there is: limits of the document on shapes and types apply and are not looked
at, so that what it says is ``listed``, never ``supported``.
"""

from __future__ import annotations

from typing import Any

from edgert.coverage.adapter import Answer, Facts, Work
from edgert.coverage.graph import Graph, crossings, placed
from edgert.coverage.placement import placement_of
from edgert.coverage.record import Node
from edgert.coverage.values import Values
from edgert.errors import UserError
from edgert.profiles.find import locate
from edgert.profiles.load import load_profile
from edgert.profiles.spec import Accelerator, ProfileSpec


class ProfileAdapter:
    """One accelerator of a device profile.

    Args:
        device: ``PROFILE/ACCELERATOR``; ``PROFILE`` alone where only one has a list.
        options: There are none.
    """

    def __init__(self, device: str, options: dict[str, Any]) -> None:
        self._accelerator: Accelerator | None = None
        self._versions: dict[str, str] = {}
        self._fault, self._mend = "", ""
        try:
            if options:
                raise UserError("--option", "a list of operators has no options")
            spec = load_profile(locate(device.partition("/")[0])).spec
            self._accelerator = _choose(spec, device)
            self._versions = _versions(spec, self._accelerator)
        except UserError as error:
            self._fault, self._mend = error.faults[0].fault, error.faults[0].mend

    def facts(self) -> Facts:
        """Say whose list it is, in which version and of which day."""
        operators = self._accelerator.operators if self._accelerator else {}
        return Facts(
            evidence="static-list" if operators else "unavailable",
            versions=self._versions,
            formats=tuple(operators),
            computes=False,
            reason=self._fault,
            mend=self._mend,
        )

    def ask(self, work: Work) -> tuple[Answer, Values]:
        """Look every operator of a model up in the list."""
        if self._accelerator is None:
            raise AssertionError("facts() said that it is unavailable")
        lists = {str(format_): each for format_, each in self._accelerator.operators.items()}
        listed = lists[work.format]
        graph = _read(work)
        nodes = placed(graph, _looked_up(graph, frozenset(listed.names), listed.source))
        found = placement_of(nodes)
        reason = "" if found == "device" else "not every operator is on the list"
        crossing = crossings(graph, nodes)
        return Answer(placement=found, nodes=nodes, crossings=crossing, reason=reason), {}


def _choose(spec: ProfileSpec, device: str) -> Accelerator:
    wanted = device.partition("/")[2]
    listing = {name: each for name, each in spec.accelerators.items() if each.operators}
    named = ", ".join(f"profile:{spec.name}/{name}" for name in listing)
    place = f"profile '{spec.name}'"
    if not listing:
        fault = f"the profile '{spec.name}' lists the operators of no accelerator"
        raise UserError(place, fault, "'edgert devices --profiles' names the others")
    if wanted and wanted not in listing:
        fault = f"the profile '{spec.name}' has no list of operators of '{wanted}'"
        raise UserError(place, fault, f"There is: {named}")
    if not wanted and len(listing) > 1:
        fault = f"the profile '{spec.name}' lists the operators of {len(listing)} accelerators"
        raise UserError(place, fault, f"Name one: {named}")
    return listing[wanted or next(iter(listing))]


def _versions(spec: ProfileSpec, accelerator: Accelerator) -> dict[str, str]:
    sources = dict.fromkeys(each.source for each in accelerator.operators.values())
    return {
        name: f"{spec.sources[name].version}, read {spec.sources[name].as_of}" for name in sources
    }


def _looked_up(graph: Graph, names: frozenset[str], source: str) -> dict[str, Node]:
    return {
        node.name: Node(
            name=node.name,
            operator=node.operator,
            placement="device" if node.operator in names else "cpu",
            reason="" if node.operator in names else f"the list of '{source}' does not have it",
        )
        for node in graph.nodes
    }


def _read(work: Work) -> Graph:
    """Return a model's graph; the libraries that read one are loaded where they are needed."""
    if work.format == "onnx":
        from edgert.coverage.suites.onnx_graph import read_graph

        return read_graph(work.path)
    from edgert.coverage.adapters.tflite import read_graph as read_tflite

    return read_tflite(work.path)
