"""A whole comparison: the outputs, the boxes, the layers, and the smallest sub-model."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgert import isolate
from edgert.coverage import values
from edgert.coverage.adapter import Facts
from edgert.coverage.compare import tolerance_of
from edgert.coverage.comparison import keep, layers
from edgert.coverage.comparison.asking import Asking
from edgert.coverage.comparison.bisect import Bisection
from edgert.coverage.comparison.figures import measure_all, worse, worst_of
from edgert.coverage.comparison.inputs import Fed, Feed, Pictures, feed_of
from edgert.coverage.comparison.layers import OnStep
from edgert.coverage.comparison.record import Boxes, Comparison, Figures, Sample, Side
from edgert.coverage.comparison.subject import Subject, Tolerance
from edgert.coverage.protocol import Spec
from edgert.coverage.record import Numerics
from edgert.coverage.run import judge, told
from edgert.coverage.suites.models import Ready, make_ready
from edgert.errors import DeviceError, ModelError, RunError, UserError
from edgert.models.locate import Located
from edgert.version import __version__

USUAL = Tolerance(1e-2, 1e-3)  # of whole models: errors add up over layers
_BOXES_WITHIN_S = 300.0
_FUSION = (
    "layers: with its inner tensors as outputs a compiler may fuse otherwise than without: a layer "
    "that is right here may be wrong where it is fused"
)
_GONE = (
    "layers: the outputs differ in the model as it is, and agree while its inner tensors are "
    "outputs: the fault depends on what the compiler fuses, and no layer shows it"
)


class CompareRun(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be compared.

    Attributes:
        model: It must be here.
        reference: ``adapter:DEVICE`` that is believed, and its adapter.
        candidate: The same of the device under test.
        pictures: How pictures are made inputs.
        inputs: Images or arrays; None for seeded inputs.
        only: Outputs that are compared; all if empty.
        rtol: Relative tolerance of each value; None: what is usual, or the device's precision.
        atol: Absolute tolerance of each value; the same.
        detection: Options of ``postprocess.detection``.
        layers: Whether to look inside; None: where the outputs differ.
        output: Folder for the smallest sub-model; None: it is not looked for.
        timeout_s: How long one answer may take.
    """

    model: Located
    reference: tuple[str, Spec]
    candidate: tuple[str, Spec]
    pictures: Pictures
    rtol: float | None = None
    atol: float | None = None
    inputs: Path | None = None
    only: Sequence[str] = ()
    detection: dict[str, Any] = {}
    layers: bool | None = None
    output: Path | None = None
    timeout_s: float = 300.0


def compare_model(run: CompareRun, on_step: OnStep = lambda said: None) -> Comparison:
    """Compare a model on two devices.

    Raises:
        UserError: The model, the inputs or a device is not what is needed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="edgert-compare-") as made,
        Asking(*run.reference, run.timeout_s) as reference,
        Asking(*run.candidate, run.timeout_s) as candidate,
    ):
        folder = Path(made)
        on_step(f"{run.model.name}: reading")
        _check_device(reference, run.model.format)
        _check_device(candidate, run.model.format)
        ready = make_ready(run.model, run.pictures.shapes, folder)
        _check_outputs(run.only, ready)
        feed = feed_of(run.inputs, ready, run.pictures, folder)
        tolerance = _tolerance(run, candidate.facts())
        subject = Subject(ready.work, reference, candidate, tolerance, folder)
        comparing = _Comparing(run, ready, subject, on_step)
        comparison = comparing.outputs(feed)
        comparison = comparing.boxes(comparison, feed)
        return comparing.inside(comparison, feed)


class _Comparing:
    """The steps of one comparison, each adding to what was found."""

    def __init__(self, run: CompareRun, ready: Ready, subject: Subject, on_step: OnStep) -> None:
        self._run = run
        self._ready = ready
        self._subject = subject
        self._on_step = on_step

    def outputs(self, feed: Feed) -> Comparison:
        """Compare the outputs of every sample."""
        samples = []
        for number, fed in enumerate(feed.samples):
            self._on_step(f"{fed.name}: {number} of {len(feed.samples)} samples")
            samples.append(self._sample(number, fed))
        numerics: Numerics = "equal"
        for sample in samples:
            numerics = worse(numerics, sample.numerics)
        run, subject = self._run, self._subject
        return Comparison(
            model=self._ready.name,
            sha256=self._ready.sha256,
            reference=_side(subject.reference, run.reference[1]),
            candidate=_side(subject.candidate, run.candidate[1]),
            inputs=feed.said,
            rtol=subject.tolerance.rtol,
            atol=subject.tolerance.atol,
            numerics=numerics,
            outputs=_over_all(samples),
            samples=samples,
            notes=list(feed.notes),
        )

    def boxes(self, comparison: Comparison, feed: Feed) -> Comparison:
        """Add the boxes of a detector."""
        entry = self._run.model.entry
        is_detector = bool(entry and entry.handling.detection) or "family" in self._run.detection
        there = [number for number, each in enumerate(comparison.samples) if each.outputs]
        if not is_detector or not there:
            return comparison
        self._on_step("boxes")
        samples = [
            {
                "expected": str(self._file(number, "expected")),
                "actual": str(self._file(number, "given")),
                "header": feed.samples[number].header,
            }
            for number in there
        ]
        arguments = {
            "model": self._run.pictures.model,
            "shapes": self._run.pictures.shapes,
            "given": self._run.detection,
            "samples": samples,
        }
        function = "edgert.coverage.comparison.boxes:find"
        found = isolate.call(function, arguments, _BOXES_WITHIN_S, "boxes", ModelError)
        return msgspec.structs.replace(comparison, boxes=msgspec.convert(found, Boxes))

    def inside(self, comparison: Comparison, feed: Feed) -> Comparison:
        """Add the layers and the smallest sub-model, where they are wanted and can be had."""
        run = self._run
        differs = comparison.numerics != "equal"
        if run.output is not None and not differs:
            comparison = _with_note(comparison, "bisect: the outputs are equal: nothing to cut out")
        if not (run.layers or (differs and (run.layers is None or run.output is not None))):
            return comparison
        if reason := self._closed():
            if run.layers or run.output is not None:
                raise ModelError(run.model.place, reason, "Leave out --layers and --bisect")
            return _with_note(comparison, f"layers: not looked at, for {reason}")
        worst = self._worst(comparison)
        sample, inputs = feed.samples[worst], Path(feed.samples[worst].file)
        opened = layers.open_up(self._subject)
        if run.layers is not False and not comparison.samples[worst].outputs:
            said = "layers: not looked at, for the candidate gives no outputs of the whole"
            comparison = _with_note(comparison, said)
        elif run.layers is not False:
            found = layers.look(self._subject, opened, sample.name, inputs, self._on_step)
            comparison = msgspec.structs.replace(comparison, layers=found)
            gone = comparison.samples[worst].numerics == "differs" and found.outputs == "equal"
            comparison = _with_note(comparison, _GONE if gone else _FUSION)
        if run.output is None or not differs:
            return comparison
        fault = comparison.samples[worst].numerics
        search = Bisection(self._subject, opened, inputs, fault, self._on_step)
        try:
            bisected, part = search.search(comparison.layers.first if comparison.layers else "")
        except RunError as error:  # what was found until here is worth its report
            return _with_note(comparison, f"bisect: {error.faults[0].fault}")
        bisected = msgspec.structs.replace(bisected, folder=str(run.output))
        keep.save(comparison, bisected, part, run.output)
        return msgspec.structs.replace(comparison, bisected=bisected)

    def _sample(self, number: int, fed: Fed) -> Sample:
        subject, path = self._subject, self._ready.work.path
        expected = subject.expected(path, Path(fed.file), self._file(number, "expected"))
        wanted = self._run.only or self._ready.outputs
        expected = {name: expected[name] for name in wanted if name in expected} or expected
        values.save(self._file(number, "expected"), expected)
        reply, actual = subject.given(path, Path(fed.file), self._file(number, "given"))
        if not actual:
            _, numerics, reason = judge(reply)
            gave_nothing = numerics == "not-run"
            return Sample(
                name=fed.name,
                numerics="error" if gave_nothing else numerics,
                reason=reason or "it gave no outputs",
            )
        tolerance = subject.tolerance
        outputs = measure_all(expected, actual, tolerance.rtol, tolerance.atol)
        numerics = "differs" if any(each.numerics != "equal" for each in outputs) else "equal"
        return Sample(name=fed.name, numerics=numerics, outputs=outputs)

    def _file(self, number: int, side: str) -> Path:
        return self._subject.folder / f"{side}-{number}.npz"

    def _closed(self) -> str:
        """Return why the model cannot be looked into; empty where it can."""
        if self._ready.work.format != "onnx":
            return f"only ONNX models can be looked into, and this one is {self._ready.work.format}"
        if Path(self._ready.work.path).parent != self._subject.folder:
            return "its weights lie in files of their own"
        return ""

    def _worst(self, comparison: Comparison) -> int:
        def badness(number: int) -> tuple[bool, float]:
            sample = comparison.samples[number]
            is_it = sample.numerics == comparison.numerics
            return is_it, max((each.max_error or 0.0 for each in sample.outputs), default=0.0)

        return max(range(len(comparison.samples)), key=badness)


def _tolerance(run: CompareRun, facts: Facts) -> Tolerance:
    """Return what was asked for; else what errors add up to, or the device's precision explains."""
    rtol, atol = tolerance_of(facts.precision)
    return Tolerance(
        max(USUAL.rtol, rtol) if run.rtol is None else run.rtol,
        max(USUAL.atol, atol) if run.atol is None else run.atol,
    )


def _check_device(asking: Asking, model_format: str) -> None:
    """Refuse a device that cannot be compared before the work begins.

    Raises:
        DeviceError: It is not there, computes nothing, or takes no such file.
    """
    facts = asking.facts()
    if model_format not in facts.formats:
        fault = f"it takes no {model_format} files, only {', '.join(facts.formats)}"
        raise DeviceError(f"device {asking.device}", fault)


def _check_outputs(names: Sequence[str], ready: Ready) -> None:
    for name in names:
        if name not in ready.outputs:
            mend = f"Its outputs: {', '.join(ready.outputs)}"
            raise UserError("--only", f"{ready.name} has no output '{name}'", mend)


def _side(asking: Asking, spec: Spec) -> Side:
    facts = asking.facts()
    return Side(
        device=asking.device,
        evidence=facts.evidence,
        versions={"edgert": __version__, **told(facts)},
        options={key: str(value) for key, value in spec.options.items()},
    )


def _over_all(samples: Sequence[Sample]) -> list[Figures]:
    by_output: dict[str, list[Figures]] = {}
    for sample in samples:
        for each in sample.outputs:
            by_output.setdefault(each.tensor, []).append(each)
    return [worst_of(found) for found in by_output.values()]


def _with_note(comparison: Comparison, note: str) -> Comparison:
    return msgspec.structs.replace(comparison, notes=[*comparison.notes, note])
