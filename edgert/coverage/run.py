"""A run: the items of a suite, those that are done already, the crew for the rest, the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from edgert.coverage import crew
from edgert.coverage.adapter import Answer, Facts
from edgert.coverage.compare import Difference, tolerance_of
from edgert.coverage.journal import Journal
from edgert.coverage.protocol import Ask, Reply, Spec
from edgert.coverage.record import Case, Numerics, Placement, Report
from edgert.coverage.suites.item import Item
from edgert.errors import DeviceError
from edgert.version import __version__

CASE_WITHIN_S = 20.0
# Format of a suite -> devices of the adapters that take it.
TAKERS = {
    "onnx": ("onnxruntime:CPU", "openvino:CPU", "qnn:HTP", "emulated:NPU"),
    "tflite": ("tflite:CPU", "tflite:XNNPACK", "openvino:CPU", "vela:ethos-u65-256"),
}
OnDone = Callable[[int, int], None]


class CaseRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be asked, and how.

    Attributes:
        device: ``adapter:DEVICE``, as the report names it.
        spec: The adapter.
        items: Cases; those that have a ``reason`` are not asked.
        versions: Of the suite.
        jobs: Children at once.
        timeout_s: How long one case may take.
        fresh: Begin anew, even where an earlier run was ended.
    """

    device: str
    spec: Spec
    items: Sequence[Item]
    versions: Mapping[str, str]
    jobs: int = 1
    timeout_s: float = CASE_WITHIN_S
    fresh: bool = False


def run_cases(run: CaseRun, on_done: OnDone = lambda done, total: None) -> Report:
    """Ask a device about every case.

    Args:
        run: What is to be asked.
        on_done: Told the number of cases done and their total.

    Raises:
        DeviceError: The adapter cannot answer here, or takes no such files.
    """
    facts = available(run.device, run.spec)
    _need_formats(run, facts)
    versions = {"edgert": __version__, **told(facts), **run.versions}
    items = {item.key: item for item in run.items if not item.reason}
    by_work = {(item.work.name, item.work.path): item for item in items.values()}
    identity = [run.device, run.spec.target, run.spec.options, versions]
    with Journal(identity, fresh=run.fresh) as journal:
        done = {key for key in items if key in journal.done}

        def on_reply(ask: Ask, reply: Reply) -> None:
            item = by_work[ask.work.name, ask.work.path]
            journal.add(item.key, case_of(item, facts, reply))
            done.add(item.key)
            on_done(len(done), len(items))

        asks = [_ask_of(item, facts) for key, item in items.items() if key not in done]
        on_done(len(done), len(items))
        crew.ask_all(run.spec, asks, run.jobs, run.timeout_s, on_reply)
        cases = [found for key in items if isinstance(found := journal.done[key], Case)]
        journal.forget()
    cases.sort(key=lambda case: (case.operator, case.case, case.form))
    return Report(device=run.device, versions=versions, cases=cases)


def available(device: str, spec: Spec) -> Facts:
    """Return what an adapter says of itself.

    Raises:
        DeviceError: It cannot answer here.
    """
    facts = crew.ask_facts(spec)
    if facts.evidence == "unavailable":
        raise DeviceError(f"device {device}", facts.reason, facts.mend)
    return facts


def _need_formats(run: CaseRun, facts: Facts) -> None:
    """Refuse a suite in a format that the adapter does not take: every case would fail."""
    for wanted in sorted({item.work.format for item in run.items} - {*facts.formats}):
        takes = ", ".join(facts.formats)
        fault = f"it takes no {wanted} files, only {takes}"
        mend = f"Ask one that does: {', '.join(TAKERS[wanted])}"
        raise DeviceError(f"device {run.device}", fault, mend)


def case_of(item: Item, facts: Facts, reply: Reply) -> Case:
    """Return the record of one case."""
    placement, numerics, reason = judge(reply)
    answer = reply.answer or Answer(placement=placement)
    difference = reply.difference or Difference("not-run")
    reasons = ("" if answer.reason else _of_nodes(answer), reason)
    return Case(
        case=item.work.name,
        operator=item.operator,
        opset=item.opset,
        dtype=item.dtype,
        form=item.form,
        placement=placement,
        numerics=numerics,
        evidence=facts.evidence,
        reason="; ".join(filter(None, reasons)),
        max_error=rounded(difference.max_error),
        mean_error=rounded(difference.mean_error),
        latency_ms=answer.latency_ms,
    )


def judge(reply: Reply) -> tuple[Placement, Numerics, str]:
    """Return placement, numerics and the reason for them."""
    if reply.timed_out:
        return "unknown", "timed-out", "it did not answer in time"
    if reply.crashed:
        return "unknown", "crashed", reply.crashed
    answer = reply.answer
    if answer is None:
        return "unknown", "error", reply.raised
    if answer.unsupported:
        return "rejected", "unsupported", answer.reason
    difference = reply.difference or Difference("not-run")
    reasons = (answer.reason, difference.reason)
    return answer.placement, difference.numerics, "; ".join(filter(None, reasons))


def _of_nodes(answer: Answer) -> str:
    """Return why nodes of a case are not on the device, where the adapter tells."""
    return "; ".join(dict.fromkeys(node.reason for node in answer.nodes if node.reason))


def told(facts: Facts) -> dict[str, str]:
    """Return the versions of an adapter, and the precision its numbers were held to."""
    return {**facts.versions, "precision": facts.precision} if facts.precision else facts.versions


def _ask_of(item: Item, facts: Facts) -> Ask:
    rtol, atol = tolerance_of(facts.precision)
    return Ask(
        work=item.work,
        expected=item.expected,
        rtol=max(item.rtol, rtol),
        atol=max(item.atol, atol),
        steps=item.steps,
    )


def rounded(error: float | None) -> float | None:
    """Return an error to four digits: the last ones differ from run to run on some devices."""
    return None if error is None else float(f"{error:.4g}")
