"""The shape of a device profile: what stands in it, as frozen data.

A *fact* comes from a public document and names it; what is not certain is left out. A *default* is
a choice of ours and says why. Nothing in a profile says that a device is present.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from edgert.device.cores import as_list, parse_list
from edgert.options import Refusal

Precision = Literal["f32", "f16", "bf16", "i16", "u16", "i8", "u8", "i4"]
Format = Literal["onnx", "tflite"]
PRECISIONS: tuple[str, ...] = get_args(Precision)
NAME = r"^[a-z0-9-]{1,40}$"
_ID = r"^[0-9a-f]{4}:[0-9a-f]{4}$"


def _of_form(pattern: str, thing: str, mend: str) -> BeforeValidator:
    """Return what refuses text of another form, in the two parts that a fault is told in."""

    def read(value: Any) -> Any:
        if isinstance(value, str) and not re.match(pattern, value):
            raise Refusal(f"'{value}' is not {thing}", mend)
        return value

    return BeforeValidator(read)


def _read_day(value: Any) -> Any:
    try:
        dt.date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise Refusal(f"{value!r} is not a day", "Write YYYY-MM-DD") from None
    return value


def _read_cores(value: Any) -> Any:
    try:
        return parse_list(value if isinstance(value, str) else "")
    except ValueError:
        raise Refusal(
            f"{value!r} names no cores", 'Write a list of numbers such as "0-3,6"'
        ) from None


Name = Annotated[
    str,
    _of_form(NAME, "a name for a profile", "Use 1 to 40 characters of a to z, 0 to 9 and '-'"),
    WithJsonSchema({"type": "string", "pattern": NAME}),
]
Identity = Annotated[
    str,
    _of_form(_ID, "an id of PCI or USB", 'Write VENDOR:DEVICE in small hex digits: "8086:7d1d"'),
    WithJsonSchema({"type": "string", "pattern": _ID}),
]
Day = Annotated[
    str, BeforeValidator(_read_day), WithJsonSchema({"type": "string", "format": "date"})
]
CoreList = Annotated[
    tuple[int, ...],
    BeforeValidator(_read_cores),
    PlainSerializer(as_list),
    WithJsonSchema({"type": "string", "pattern": r"^\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*$"}),
]
Texts = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]


class Part(BaseModel):
    """A mapping in which an unknown key is a fault."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(Part):
    """A public document, and when it was read."""

    title: str = Field(min_length=1, description="What the document is called.")
    url: str = Field(min_length=1, description="Where it stands.")
    version: str = Field(min_length=1, description="Its version, or the day it was published.")
    as_of: Day = Field(description="The day it was read, `YYYY-MM-DD`.")


class Fact(Part):
    """Something that a document says."""

    source: str = Field(min_length=1, description="Key of `sources` whose document says it.")


class Match(Fact):
    """How the machine is recognised: every rule must hold, by any one of its values."""

    architecture: Texts | None = Field(None, description="As `uname -m` has it.")
    cpu: Texts | None = Field(None, description="Model of the processor; `*` stands for anything.")
    compatible: Texts | None = Field(
        None, description="`compatible` of the device tree's root; `*` stands for anything."
    )
    board: Texts | None = Field(
        None,
        description="Vendor, product or board as DMI has it; `*` stands for anything.",
    )
    pci: Annotated[tuple[Identity, ...], Field(min_length=1)] | None = Field(
        None, description="`vendor:device` of something on PCI."
    )
    usb: Annotated[tuple[Identity, ...], Field(min_length=1)] | None = Field(
        None, description="`vendor:product` of something on USB."
    )
    accelerators: Texts | None = Field(
        None,
        description="Kinds of accelerator that the kernel shows, as `edgert devices` has them.",
    )

    @model_validator(mode="after")
    def _has_a_rule(self) -> Match:
        if not self.rules():
            rules = ", ".join(name for name in Match.model_fields if name != "source")
            raise Refusal("it has no rule, and would match every machine", f"Write one: {rules}")
        return self

    def rules(self) -> dict[str, tuple[str, ...]]:
        """The rules that are given, by their names."""
        return {
            name: values
            for name in Match.model_fields
            if name != "source" and (values := getattr(self, name)) is not None
        }


class Cores(Fact):
    """The cores by class, for kernels that do not tell."""

    p_cores: CoreList = Field(alias="p-cores", description='Fast cores: `"4-7"`.')
    e_cores: CoreList = Field(alias="e-cores", description='Slow cores: `"0-3"`.')

    def by_class(self) -> dict[str, tuple[int, ...]]:
        """The cores as ``edgert.device.cores.classes`` has them."""
        return {"p-cores": self.p_cores, "e-cores": self.e_cores}


class Precisions(Fact):
    """What an accelerator computes in."""

    value: Annotated[tuple[Precision, ...], Field(min_length=1)] = Field(
        description="Element types it computes in."
    )


class Flag(Fact):
    """A yes or no."""

    value: bool = Field(description="`true` or `false`.")


class Memory(Fact):
    """Memory of an accelerator's own."""

    bytes: int = Field(ge=1, description="How much.")
    what: str = Field(min_length=1, description="What it is for.")


class Operators(Fact):
    """The operators that the document names; its limits on them apply."""

    names: Texts = Field(description="Names as the format has them: `Conv`, `CONV_2D`.")


class Accelerator(Fact):
    """An accelerator that such a machine has, or may have."""

    name: str = Field(min_length=1, description="What it is called.")
    kinds: Texts | None = Field(
        None,
        description="Its kinds as `edgert devices` has them: by them it is looked for. Without any "
        "it is emulated.",
    )
    device: str | None = Field(
        None,
        description="`runtime:DEVICE` for `device:` of a pipeline; left out where no runtime of "
        "edgert runs on it.",
    )
    precisions: Precisions | None = Field(None, description="What it computes in.")
    dynamic_shapes: Flag | None = Field(None, description="Whether sizes may be open.")
    memory: Memory | None = Field(None, description="Memory of its own.")
    operators: dict[Format, Operators] = Field(
        {}, description="Operators by format of the model, `onnx` or `tflite`."
    )


class Choice(Part):
    """A choice of ours, with the reason."""

    why: str = Field(min_length=1, description="The reason.")


class DeviceChoice(Choice):
    """Devices in the order in which they are tried."""

    value: Texts = Field(description="As `device:` of a pipeline has them.")


class CountChoice(Choice):
    """A number."""

    value: int = Field(ge=1, le=64, description="The number.")


class Defaults(Part):
    """What stands where a pipeline leaves it open."""

    device: DeviceChoice | None = Field(None, description="`device` of `infer`.")
    requests: CountChoice | None = Field(None, description="`requests` of `infer`.")
    threads: CountChoice | None = Field(
        None, description="Most threads of a stage without `cores`; never more than there are."
    )


class ProfileSpec(Part):
    """A device profile."""

    version: Literal[1] = Field(description="Version of this format.")
    name: Name = Field(description="Name of the profile; its file is called `NAME.yaml`.")
    description: str = Field(min_length=1, description="What it is of, in one line.")
    sources: dict[str, Source] = Field(
        description="The documents that the facts come from, by a short name.", min_length=1
    )
    match: Match | None = Field(
        None, description="How the machine is recognised; without it the profile is never picked."
    )
    cores: Cores | None = Field(None, description="The cores by class.")
    accelerators: dict[str, Accelerator] = Field({}, description="Accelerators by a short name.")
    defaults: Defaults = Field(
        default_factory=Defaults, description="What edgert does where a pipeline is silent."
    )
