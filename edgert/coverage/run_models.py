"""A run over whole models: the reference's outputs, the device's, and what the placement costs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from edgert.coverage import crew, graph, values
from edgert.coverage.adapter import Answer, Facts
from edgert.coverage.compare import Difference, tolerance_of
from edgert.coverage.mends import mend_for
from edgert.coverage.protocol import Ask, Reply, Spec
from edgert.coverage.record import Crossing, Model, Node, Report
from edgert.coverage.run import available, judge, rounded, told
from edgert.coverage.suites.models import Ready, make_ready
from edgert.errors import UserError
from edgert.models.locate import Located
from edgert.version import __version__

MODEL_WITHIN_S = 300.0
OnModel = Callable[[str], None]


class ModelRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be asked.

    Attributes:
        device: ``adapter:DEVICE``, as the report names it.
        spec: The adapter.
        references: Format -> the adapters that may give the reference, the best first.
        models: The models, or why there is none of that name.
        shapes: Sizes for inputs that models leave open, by input name.
        timeout_s: How long one model may take.
        rtol: Relative tolerance of outputs: errors add up over layers.
        atol: Absolute tolerance of outputs.
    """

    device: str
    spec: Spec
    references: Mapping[str, Sequence[tuple[str, Spec]]]
    models: Sequence[Located | UserError]
    shapes: Mapping[str, list[int]] = {}
    timeout_s: float = MODEL_WITHIN_S
    rtol: float = 1e-2
    atol: float = 1e-3


def run_models(run: ModelRun, on_model: OnModel = lambda name: None) -> Report:
    """Ask a device about whole models; a bad one costs its own line.

    Raises:
        DeviceError: The adapter cannot answer here.
    """
    facts = available(run.device, run.spec)
    found = []
    versions = {"edgert": __version__, **told(facts)}
    with tempfile.TemporaryDirectory(prefix="edgert-coverage-") as made:
        for number, model in enumerate(run.models):
            folder = Path(made) / str(number)
            on_model(_name_of(model))
            found.append(_one(run, facts, model, folder, versions))
    return Report(device=run.device, versions=versions, models=found)


def _one(
    run: ModelRun,
    facts: Facts,
    located: Located | UserError,
    folder: Path,
    versions: dict[str, str],
) -> Model:
    if isinstance(located, UserError):
        return _bad(_name_of(located), "", located, facts)
    try:
        ready = make_ready(located, run.shapes, folder)
    except UserError as error:
        return _bad(located.name, located.sha256, error, facts)
    if ready.work.format not in facts.formats:
        reason = f"it takes no {ready.work.format} files, only {', '.join(facts.formats)}"
        return _empty(ready.name, ready.sha256, facts, reason)
    expected = _reference(run, ready, folder, versions) if facts.computes else ""
    rtol, atol = tolerance_of(facts.precision)
    ask = Ask(
        work=ready.work,
        expected=expected,
        rtol=max(run.rtol, rtol),
        atol=max(run.atol, atol),
    )
    found = _model(ready, facts, _ask(run.spec, ask, run))
    if facts.computes and not expected and found.numerics == "not-run":
        reason = "there is no other reference for its numbers here"
        return msgspec.structs.replace(found, reason=found.reason or reason)
    return found


def _name_of(model: Located | UserError) -> str:
    return model.faults[0].place if isinstance(model, UserError) else model.name


def _reference(run: ModelRun, ready: Ready, folder: Path, versions: dict[str, str]) -> str:
    """Let another runtime than the one under test compute the outputs; empty where none can."""
    for name, spec in run.references.get(ready.work.format, ()):
        if name == run.device:
            continue
        keep = folder / "expected.npz"
        work = msgspec.structs.replace(ready.work, runs=0)
        reply = _ask(spec, Ask(work=work, keep=str(keep)), run)
        if reply.answer is not None and keep.exists():
            versions.setdefault("reference", name)
            _keep_only(keep, ready.outputs)
            return str(keep)
    return ""


def _keep_only(file: Path, names: Sequence[str]) -> None:
    """Leave the outputs that the model itself names: a runtime may have more names for one."""
    found = values.load(file)
    values.save(file, {name: found[name] for name in names if name in found} or found)


def _ask(spec: Spec, ask: Ask, run: ModelRun) -> Reply:
    replies: list[Reply] = []
    crew.ask_all(spec, [ask], 1, run.timeout_s, lambda _, reply: replies.append(reply))
    return replies[0]


def _model(ready: Ready, facts: Facts, reply: Reply) -> Model:
    placement, numerics, reason = judge(reply)
    answer = reply.answer or Answer(placement=placement)
    difference = reply.difference or Difference("not-run")
    nodes = _nodes(ready, answer)
    crossing = _crossings(ready, answer, nodes)
    refused = graph.refused(nodes)
    of_nodes, of_macs = graph.shares(nodes)
    known = bool(nodes) and all(node.partition is not None for node in nodes)
    return Model(
        model=ready.name,
        sha256=ready.sha256,
        placement=placement,
        numerics=numerics,
        evidence=facts.evidence,
        share_of_nodes=of_nodes,
        share_of_macs=of_macs,
        partitions=len({node.partition for node in nodes}) if known else None,
        crossings=crossing,
        refused=refused,
        nodes=nodes,
        reason=reason,
        mend=mend_for("", reason),
        max_error=rounded(difference.max_error),
        mean_error=rounded(difference.mean_error),
        latency_ms=answer.latency_ms,
    )


def _nodes(ready: Ready, answer: Answer) -> list[Node]:
    """Return the file's nodes with their placement; the runtime's own where we cannot read it."""
    if ready.graph is None or answer.own_nodes:
        return list(answer.nodes)
    found = {node.name: node for node in answer.nodes}
    if answer.placement in ("device", "cpu"):
        # The whole is proved; a runtime may call its nodes otherwise, or have fused them.
        found = {
            node.name: found.get(node.name)
            or Node(name=node.name, operator=node.operator, placement=answer.placement)
            for node in ready.graph.nodes
        }
    return graph.placed(ready.graph, found) if found else []


def _crossings(ready: Ready, answer: Answer, nodes: Sequence[Node]) -> list[Crossing] | None:
    """Return what crosses; of a compiler's own layers only that nothing does can be told."""
    if answer.own_nodes:
        return [] if len({node.placement for node in nodes}) == 1 else None
    return graph.crossings(ready.graph, nodes) if ready.graph else list(answer.crossings)


def _bad(name: str, sha256: str, error: UserError, facts: Facts) -> Model:
    fault = error.faults[0]
    empty = _empty(name, sha256, facts, fault.fault)
    return msgspec.structs.replace(empty, mend=fault.mend)


def _empty(name: str, sha256: str, facts: Facts, reason: str) -> Model:
    return Model(
        model=name,
        sha256=sha256,
        placement="unknown",
        numerics="not-run",
        evidence=facts.evidence,
        reason=reason,
    )
