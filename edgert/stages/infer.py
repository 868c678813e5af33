"""``infer``: runs a model on the first of its devices that takes it, several frames in flight."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from edgert.backends.base import ByteInput, CompileRequest, DeviceReport, Session
from edgert.backends.once import infer_once, zeros_for
from edgert.backends.options import UnknownOptionError
from edgert.backends.registry import backend, candidates, options_for, parse_device
from edgert.errors import (
    DeviceError,
    Fault,
    ModelError,
    PipelineError,
    RunError,
    UserError,
)
from edgert.models.compiled import compiled_folder, forget
from edgert.models.describe import ModelDescription
from edgert.stages.base import (
    ATTEMPT,
    PlanContext,
    Ports,
    StageOptions,
)
from edgert.stages.batch_open import open_batches
from edgert.stages.batch_plan import (
    BATCH,
    batch_faults,
    plan_batches,
    planned_batches,
)
from edgert.stages.infer_check import (
    byte_inputs,
    device_faults,
    format_faults,
    input_faults,
    option_faults,
    output_faults,
    refuse_mistake,
    refuse_other_inputs,
)
from edgert.stages.infer_options import InferOptions
from edgert.stages.infer_requests import REQUESTS, planned_requests
from edgert.stages.item_session import (
    ITEMS,
    ItemSession,
    item_faults,
    many_items,
    most_items,
    one_item,
)
from edgert.stages.raised import words_of
from edgert.stages.session_stage import SessionStage
from edgert.stages.shape_ranges import SHAPES, has_ranges, largest, port_attributes, range_faults
from edgert.stages.shape_session import open_shapes
from edgert.stages.variants import Compile, Variants, tell
from edgert.tensor import PortSpec, TensorSpec


class Infer(SessionStage):
    """Run a model on the tensors of a frame, in place where the runtime can (TFLite cannot)."""

    inputs: ClassVar[Mapping[str, str]] = {"tensor": "tensors"}
    outputs: ClassVar[Mapping[str, str]] = {"outputs": "tensors"}
    options: ClassVar[type[StageOptions]] = InferOptions
    uses_all_cores = True
    is_stateless = True
    live_options = frozenset({"swap"})  # asked of heirs, not of the stage
    swap_options = frozenset({"model"})
    settings: InferOptions

    @classmethod
    def frames_held(cls, options: Any, context: PlanContext) -> int:
        """Return the frames in flight, each with a loan, and those that a batch is made of."""
        requests = planned_requests(options.requests, options.devices, context)
        batch = plan_batches(options.batch, context)
        return requests if batch is None else batch.max_size * (requests + 1)

    @classmethod
    def plan(cls, options: Any, inputs: Ports, context: PlanContext) -> dict[str, PortSpec]:
        """Say which tensors come out, after proving that those that arrive fit the model."""
        model: ModelDescription = context.models.describe(options.model, largest(options.shape))
        batch = plan_batches(options.batch, context)
        key = "balance" if options.balance else "device"
        faults = [
            *device_faults(options.devices, context.place, key),
            *format_faults(options.devices, model.format, context.place, key),
            *option_faults(options.options, options.devices, model.format, context.place),
            *input_faults(model, one_item(inputs["tensor"]), context.place),
            *output_faults(model, options.max_output, context.place),
            *batch_faults(model, batch, context),
            *range_faults(model, options.shape, context, is_batched=batch is not None),
        ]
        items = most_items(inputs["tensor"])
        if items and not faults:
            is_fixed = batch is None and not has_ranges(options.shape)
            faults = item_faults(model, context.place, is_fixed=is_fixed)
        if faults:
            raise PipelineError(faults)
        conversions = {
            name: msgspec.to_builtins(conversion)
            for name, conversion in byte_inputs(inputs["tensor"]).items()
            if name in model.inputs
        }
        # ``open`` runs in another process, which gets the options as written and this port.
        file = {
            "path": model.path,
            "format": model.format,
            "sha256": model.sha256,
            "shapes": dict(model.shapes),
            "bytes": conversions,
        }
        requests = planned_requests(options.requests, options.devices, context)
        attributes = {"model": options.model, "model_file": file, REQUESTS: requests}
        attributes |= port_attributes(options.shape)
        if batch is not None:
            attributes[BATCH] = msgspec.to_builtins(batch)
        tensors = {
            name: spec
            if spec.is_static
            else TensorSpec(spec.dtype, tuple(options.max_output[name]))
            for name, spec in model.outputs.items()
        }
        if items:
            tensors, attributes[ITEMS] = many_items(tensors, items), items
        return {"outputs": PortSpec("tensors", tensors, 0, attributes)}

    def open(self) -> None:
        """Compile the model for the first device that takes it, and warm it up."""
        attributes = self.context.outputs["outputs"].attributes
        session, report = self._first_session(attributes["model_file"], attributes["model"])
        self.adopt(session)
        self.context.report["device"] = msgspec.to_builtins(report)

    def _first_session(self, file: Mapping[str, Any], model: str) -> tuple[Session, DeviceReport]:
        place = self.context.place
        if not file["path"]:
            mend = f"Run: edgert models pull {model}"
            raise ModelError(place, f"model {model!r} is not here yet", mend)
        refused = dict(self.context.refused)
        for runtime, device in self._attempts(file["format"], refused):
            key = f"{runtime}:{device}"
            # What refuses by an exception leaves the process whole: the next is tried in it. What
            # crashes or hangs is ended by the supervisor, and tried no more by the next process.
            self.context.on_attempt(key, self.settings.open_timeout_s, refused)
            try:
                session = self._try(runtime, device, file)
            except (UserError, RunError) as error:
                if isinstance(error, UnknownOptionError):
                    tried = [*self._named(file["format"], {})]
                    refuse_mistake(error, self.settings.options, (runtime, device), tried, place)
                refused[key] = "; ".join(_said(f) for f in error.faults)
                continue
            except (Exception, SystemExit) as error:  # noqa: BLE001  of a vendor's library; told
                trace = traceback.format_exc()
                self.context.log.warning("%s: %s failed to open:\n%s", place, key, trace)
                refused[key] = f"its runtime raised {words_of(error, with_type=True)}"
                continue
            lost = dict(self.context.lost)
            failed = lost.pop(key, "")
            refused = {**lost, **refused}
            self._tell(session.device.actual, failed, refused)
            self.context.report[ATTEMPT] = key
            asked = ", ".join(self.settings.devices)
            return session, msgspec.structs.replace(
                session.device, requested=asked, refused=refused, failed=failed
            )
        reasons = "; ".join(f"{tried}: {why}" for tried, why in refused.items())
        fault = f"no device took model {model!r}: {reasons}"
        raise DeviceError(f"{place}, device", fault, self._mend())

    def _mend(self) -> str:
        """Return how some device would take the model; nothing where the CPU was asked, too."""
        devices = self.settings.devices
        if self.settings.fallback == "forbid" and len(devices) > 1:
            return "Write 'fallback: allow' to let the next device do it"
        if any(device.rpartition(":")[2] == "CPU" for device in devices):
            return ""
        return "Name one that is here: `edgert devices` shows them"

    def _attempts(self, format: str, refused: dict[str, str]) -> list[tuple[str, str]]:  # noqa: A002
        """Return runtime and device of what is left to try: lost ones last, the last one first."""
        lost = list(self.context.lost)
        left = [
            (runtime, device)
            for runtime, device in self._named(format, refused)
            if f"{runtime}:{device}" not in refused
        ]
        return sorted(left, key=lambda one: -_place_in(lost, ":".join(one)))

    def _named(self, format: str, refused: dict[str, str]) -> Iterator[tuple[str, str]]:  # noqa: A002
        devices = self.settings.devices
        for text in devices[:1] if self.settings.fallback == "forbid" else devices:
            _, device = parse_device(text)
            runtimes = candidates(text, format)
            if not runtimes:
                named, _ = parse_device(text)
                refused[text] = (
                    f"{named} reads no {format} model"
                    if named
                    else f"no runtime that reads {format} is installed"
                )
            for runtime in runtimes:
                yield runtime, device

    def _try(self, runtime: str, device: str, file: Mapping[str, Any]) -> Session:
        """Compile and warm up; a kept compilation that loads and does not work is made anew."""
        kept = compiled_folder(file["sha256"])
        try:
            return self._compile(runtime, device, file, kept)
        except RunError as error:
            if not kept:
                raise
            self.context.log.warning("%s: compiled anew: %s", self.context.place, error)
            forget(kept)
            return self._compile(runtime, device, file, "")

    def _compile(
        self, runtime: str, device: str, file: Mapping[str, Any], cache_dir: str
    ) -> Session:
        settings = self.settings

        def compile_for(shapes: Mapping[str, list[int]]) -> Session:
            request = CompileRequest(
                path=file["path"],
                device=device,
                shapes=dict(shapes),
                requests=self.context.outputs["outputs"].attributes[REQUESTS],
                threads=self.context.threads,
                precision=settings.precision,
                options=options_for(settings.options, runtime, device),
                cache_dir=cache_dir,
                bytes=msgspec.convert(file["bytes"], dict[str, ByteInput]),
                whole=settings.fallback == "forbid",
            )
            return backend(runtime).compile(request)

        session = compile_for(file["shapes"])
        try:
            self._prove_outputs(session)
            arrives = one_item(self.context.inputs["tensor"])
            refuse_other_inputs(session, arrives, self.context.place)
            for _ in range(session.requests):
                infer_once(session, zeros_for(session.inputs))
            return self._in_every_size(session, compile_for)
        except BaseException:
            session.close()
            raise

    def _in_every_size(self, first: Session, compile_for: Compile) -> Session:
        """Compile for batches or further shapes beside ``first``, where the file asks for them."""
        attributes, place = self.context.outputs["outputs"].attributes, self.context.place
        variants = Variants()
        session = first
        batch = planned_batches(attributes)
        if batch is not None:
            model = self.settings.model
            session = open_batches(compile_for, first, batch, model, place, variants)
        elif SHAPES in attributes:
            session = open_shapes(compile_for, first, attributes[SHAPES][1:], variants)
        elif ITEMS in attributes:
            session = ItemSession(first)
        self.context.report["variants"] = tell(variants.costs, self.context.log, place)
        return session

    def _prove_outputs(self, session: Session) -> None:
        planned = set(self.context.outputs["outputs"].tensors)
        if planned != set(session.outputs):
            raise ModelError(
                f"{self.context.place}, model",
                f"its description has the outputs {', '.join(sorted(planned))}, "
                f"the model itself {', '.join(sorted(session.outputs))}",
            )

    def _tell(self, actual: str, failed: str, refused: Mapping[str, str]) -> None:
        again = f" again, which had failed: {failed}" if failed else ""
        others = "".join(f"; {tried} refused: {reason}" for tried, reason in refused.items())
        if again or others:
            place = self.context.place
            self.context.log.warning("%s: runs on %s%s%s", place, actual, again, others)


def _place_in(lost: list[str], device: str) -> int:
    """Return 1 for a device that was not lost; else the less, the longer ago it was lost."""
    return 1 if device not in lost else lost.index(device) - len(lost)


def _said(fault: Fault) -> str:
    """Return a fault of a device as its refusal: the device is named beside it, an option here."""
    _, _, option = fault.place.partition(", options, ")
    said = f"option '{option}': {fault.fault}" if option else fault.fault
    return said if not fault.mend else f"{said} ({fault.mend})"
