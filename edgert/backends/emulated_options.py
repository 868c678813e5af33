"""Options of the emulated accelerator: what it is like, and what is to go wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from edgert.backends.nested_options import read_all_options

MOST_MS = 600_000.0
_SPREADS = "a number, {p50: 5, p99: 20} or {min: 4, max: 8}"

Ms = Annotated[float, Field(gt=0, le=MOST_MS)]
# How many inferences go well first; the warm-ups count, one for each request in flight.
After = Annotated[int, Field(ge=0)] | None


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Latency(_Options):
    """How long an inference takes: between two times, or log-normal through two percentiles."""

    min: Ms | None = None
    max: Ms | None = None
    p50: Ms | None = None
    p99: Ms | None = None

    @model_validator(mode="after")
    def _is_one_spread(self) -> Self:
        given = [name for name in Latency.model_fields if getattr(self, name) is not None]
        if given not in (["min", "max"], ["p50", "p99"]):
            raise ValueError(f"it is {_SPREADS}")
        low, high = (getattr(self, name) for name in given)
        if low > high:
            raise ValueError(f"{given[0]} is more than {given[1]}")
        return self


def _spread_of(given: Any) -> Any:
    """Return a plain number as a spread without width."""
    if isinstance(given, dict | Latency):
        return given
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ValueError(f"it is {_SPREADS}")  # noqa: TRY004  pydantic's word for a refusal
    if not 0 < given <= MOST_MS:
        raise ValueError(f"it must be more than 0 and at most {MOST_MS:g}")
    return {"min": given, "max": given}


class Slow(_Options):
    """From when on it is slower, and how much."""

    inferences: Annotated[int, Field(ge=0)]
    factor: Annotated[float, Field(gt=0, le=1e6)]


class Faults(_Options):
    """What goes wrong, on request."""

    refuse: str = ""
    hang_open: bool = False
    die_open: bool = False
    error_after: After = None
    errors_every: Annotated[int, Field(ge=1)] | None = None
    hang_after: After = None
    die_after: After = None
    gone_after: After = None
    nan_after: After = None
    slow_after: Slow | None = None
    noise: Annotated[float, Field(ge=0)] = 0.0
    once: bool = False

    @property
    def spoil_floats(self) -> bool:
        """Whether outputs of floats are changed; others could not be."""
        return self.noise > 0 or self.nan_after is not None


class EmulatedOptions(_Options):
    """Options of this backend; docs/devices.md says what each one does."""

    latency_ms: Annotated[Latency, BeforeValidator(_spread_of)] = Latency(min=0.5, max=0.5)
    per_item_ms: Annotated[float, Field(ge=0, le=MOST_MS)] = 0.0
    lanes: Annotated[int, Field(ge=1, le=64)] = 1
    seed: Annotated[int, Field(ge=0)] = 0
    input: str = ""
    outputs: Literal["replayed", "computed"] = "replayed"
    precision: Literal["f32", "f16", "bf16", "i8"] | None = None
    operators: list[str] | None = None
    unsupported: Literal["refuse", "cpu"] = "refuse"
    memory_mb: Annotated[float, Field(gt=0)] | None = None
    dynamic_shapes: bool = True
    state: str = ""
    faults: Faults = Faults()

    @property
    def computes(self) -> bool:
        """Whether the CPU computes each result."""
        return self.outputs == "computed"

    @model_validator(mode="after")
    def _replays_what_it_is_given(self) -> Self:
        if self.computes and self.input:
            raise ValueError("'input' is for 'outputs: replayed': remove one of them")
        return self

    @model_validator(mode="after")
    def _has_what_faults_need(self) -> Self:
        needs = "gone_after" if self.faults.gone_after is not None else "once"
        if (self.faults.gone_after is not None or self.faults.once) and not self.state:
            raise ValueError(f"'faults: {needs}' is remembered in a folder: add 'state: FOLDER'")
        return self


NAMES = frozenset(EmulatedOptions.model_fields)


def read(given: Mapping[str, Any], place: str) -> EmulatedOptions:
    """Return options as written.

    Raises:
        DeviceError: With every fault there is.
    """
    return read_all_options(EmulatedOptions, given, place)
