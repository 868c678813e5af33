"""What a pipeline file may say of a stage that runs a model."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from annotated_types import Ge, Interval, MinLen

from edgert.options import Refusal, option
from edgert.stages.base import StageOptions
from edgert.stages.batch_plan import BatchOptions
from edgert.stages.infer_requests import MOST
from edgert.stages.swap_options import SwapOptions

Size = Annotated[int, Ge(1)]
Sizes = Annotated[list[Size], MinLen(1)]


class InferOptions(StageOptions):
    """Options of ``infer``."""

    model: str = option(min_length=1, description="Name in the catalog, path, or URL of the model.")
    shape: dict[str, list[Size | Sizes]] = option(
        default={},
        description="Sizes of inputs the model leaves open: `{image_tensor: [1, 300, 300, 3]}`; a "
        "list in it names several sizes to prepare for: `{x: [1, 3, [320, 640], 640]}`.",
    )
    device: str | list[str] = option(
        default=["CPU"],
        description="Devices in the order in which they are tried; a runtime may be named: "
        "`[openvino:NPU, CPU]`.",
    )
    balance: list[str] = option(
        default=[],
        description="Devices that share the frames, a worker each, instead of `device`: "
        "`[GPU, CPU]`. Each frame goes to the one that is expected to finish it first.",
    )
    fallback: Literal["allow", "forbid"] = option(
        default="allow",
        description="`forbid`: only the first device will do, otherwise the run does not start.",
    )
    open_timeout_s: float = option(
        default=120,
        gt=0,
        le=86_400,
        description="Seconds that opening one device may take, compiling and warming up; then the "
        "next is tried. First compilations are slow.",
    )
    requests: Annotated[int, Interval(ge=1, le=MOST)] | Literal["auto"] = option(
        default="auto",
        description="Inferences in flight at once; `auto`: one more than the device computes.",
    )
    priority: Literal["high", "normal", "low"] = option(
        default="normal",
        description="Who comes first where several stages wait for a device that has a limit "
        "(`devices`).",
    )
    precision: Literal["f32", "device"] = option(
        default="f32",
        description="`f32`: as exact as the device can; `device`: what the device likes best.",
    )
    options: dict[str, Any] = option(
        default={},
        description="Options of the runtimes' own; those of one runtime or device stand under its "
        "name: `{openvino: {...}, 'emulated:NPU': {...}}`.",
    )
    max_output: dict[str, list[int]] = option(
        default={},
        description="Largest shape of outputs that the model leaves open: `{boxes: [300, 4]}`.",
    )
    batch: BatchOptions | None = option(
        default=None, description="Several frames, of any streams, in one inference."
    )

    swap: SwapOptions | None = option(
        default=None,
        description="What another model, or other options of this stage, must show in a reload or "
        "by `edgert ctl set` before it takes over: it is tried on the same frames beside the one "
        "that runs, which goes on if it fails. Not with `batch`.",
    )

    @property
    def devices(self) -> list[str]:
        """The devices in the order in which they are tried; all that share the frames."""
        if self.balance:
            return list(self.balance)
        return [self.device] if isinstance(self.device, str) else list(self.device)

    def check(self, given: frozenset[str]) -> None:
        """Refuse two ways to name devices, and trials of what cannot be tried."""
        if self.balance and "device" in given:
            fault = "it names devices both by 'device' and by 'balance'"
            raise Refusal(
                fault, "Remove 'device': each device of 'balance' has a worker of its own"
            )
        if "balance" in given and len(self.balance) < 2:
            count = "one" if self.balance else "no"
            raise Refusal(f"'balance' has {count} device", "Name two or more, or write 'device'")
        if self.swap is not None and self.batch is not None:
            fault = "'swap' tries frame by frame, and 'batch' infers several together"
            raise Refusal(fault, "Remove one of them")
