"""The shape of a pipeline file: what stands in it, as frozen data.

Keys of a stage that are not named here belong to its kind (``StageSpec.settings``) and are checked
against the options of that kind in ``check``.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from edgert.options import Refusal

STAGE_NAME = r"^[a-z][a-z0-9_-]{0,39}$"
PIPELINE_NAME = r"^[a-z0-9-]{1,40}$"
DEVICE = r"^[a-z0-9_-]+:\S+$"
EDGE = r"^[^.\s]+\.[^.\s]+$"
CORE_CLASSES = ("p-cores", "e-cores", "any")
CORE_RANGES = r"^\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*$"
CORES_MEND = 'Write p-cores, e-cores, any, a range such as "0-3", or a list such as [0, 2]'
DEVICE_MEND = "Write RUNTIME:DEVICE as the summary of a run names it, for example openvino:NPU"
EDGE_MEND = "Write STAGE.PORT, for example camera.image"


def _rising(span: str) -> bool:
    first, _, last = span.partition("-")
    return int(first) <= int(last or first)


def _read_cores(value: Any) -> Any:
    if isinstance(value, str):
        if value in CORE_CLASSES:
            return value
        spaceless = value.replace(" ", "")
        if re.match(CORE_RANGES, spaceless) and all(map(_rising, spaceless.split(","))):
            return spaceless
    elif isinstance(value, list | tuple) and value and all(type(core) is int for core in value):
        if min(value) >= 0:
            return tuple(value)
    elif value is None:
        return None
    raise Refusal(f"{value!r} names no cores", CORES_MEND)


Cores = Annotated[
    str | tuple[int, ...],
    BeforeValidator(_read_cores),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(CORE_CLASSES)},
                {"type": "string", "pattern": CORE_RANGES},
                {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
            ]
        }
    ),
]


def _read_device(value: str) -> str:
    if re.match(DEVICE, value):
        return value
    raise Refusal(f"'{value}' does not name a runtime and its device", DEVICE_MEND)


DeviceName = Annotated[
    str,
    AfterValidator(_read_device),
    WithJsonSchema({"type": "string", "pattern": DEVICE}),
]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class QueueSpec(_Part):
    """How an edge waits."""

    slots: int = Field(2, ge=1, le=256, description="Frames that may wait on this edge.")
    when_full: Literal["block", "drop-oldest", "reject"] = Field(
        "block",
        description="`block` makes the writer wait; `drop-oldest` takes the oldest waiting frame "
        "back and `reject` does not send the newest, counted dropped on this edge (for side "
        "branches, such as a preview).",
    )
    max_age_ms: float | None = Field(
        None,
        gt=0,
        le=3_600_000,
        description="Age, from when the source had it, above which a frame is dropped when its "
        "turn comes: under overload the stage works on fresh frames. Left out: no limit.",
    )


class LinkSpec(_Part):
    """An edge, written where it is read."""

    source: str = Field(alias="from", pattern=EDGE, description="`STAGE.PORT` that is read.")
    queue: QueueSpec = Field(QueueSpec(), description="How the edge waits.")
    priority: int = Field(
        1,
        ge=1,
        le=100,
        description="Frames that it may give for each one of an edge of 1 on the same port, while "
        "all of them have frames waiting.",
    )

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, dict | LinkSpec):
            return value
        if isinstance(value, str):
            return {"from": value}
        raise Refusal(f"{value!r} is not an edge", EDGE_MEND)

    @property
    def stage(self) -> str:
        """Name of the stage that writes."""
        return self.source.partition(".")[0]

    @property
    def port(self) -> str:
        """Name of the port that is read."""
        return self.source.partition(".")[2]


class RestartSpec(_Part):
    """What happens when a worker dies or hangs."""

    policy: Literal["on-failure", "never"] = Field(
        "on-failure",
        description="`on-failure` starts a worker that died or hangs again, while the others go "
        "on; `never` ends the run.",
    )
    delay_ms: float = Field(
        100, ge=0, le=3_600_000, description="Wait before a restart; doubled with each further one."
    )
    max_delay_ms: float = Field(5000, ge=0, le=3_600_000, description="Longest wait.")
    jitter: float = Field(
        0.2, ge=0, le=1, description="Share of the wait that is added or taken off by chance."
    )
    max_restarts: int = Field(
        5,
        ge=0,
        le=1_000_000,
        description="Restarts allowed within `window_s`; one more ends the run, exit 1. Of a stage "
        "of several workers the others go on, and it is tried again after `window_s`, and later.",
    )
    window_s: float = Field(
        60, gt=0, le=1e7, description="Seconds that `max_restarts` is counted over."
    )
    hang_s: float = Field(
        10,
        gt=0,
        le=86_400,
        description="Seconds that one frame may take, before the worker counts as hung: its stack "
        "is logged and it is killed. An inference may also take ten times its longest so far.",
    )


class StageSpec(BaseModel):
    """One stage; keys that are not listed are options of its kind."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: str = Field(
        min_length=1, description="What the stage does: a built-in kind, or `package.module:Class`."
    )
    inputs: dict[str, Annotated[tuple[LinkSpec, ...], Field(min_length=1)]] = Field(
        {},
        description="Input port -> `stage.port`, a list of those (several streams), or the long "
        "form `{from: stage.port, queue: {...}}`.",
    )
    worker: Annotated[str, Field(pattern=STAGE_NAME)] | None = Field(
        None,
        description="Stages that name the same worker share one process and pass arrays directly.",
    )
    cores: Cores | None = Field(
        None, description='Where it may run: `p-cores`, `e-cores`, `any`, `"0-3"` or `[0, 2]`.'
    )

    replicas: int = Field(
        1,
        ge=1,
        le=32,
        description="How many workers share its frames; for kinds in which no frame depends on "
        "another.",
    )
    restart: RestartSpec = Field(
        RestartSpec(), description="As the file's own `restart`, whose keys it replaces one by one."
    )

    @field_validator("inputs", mode="before")
    @classmethod
    def _lists_of_edges(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            port: edges if isinstance(edges, list | tuple) else (edges,)
            for port, edges in value.items()
        }

    @property
    def settings(self) -> dict[str, Any]:
        """The keys that belong to the kind."""
        return dict(self.model_extra or {})


class LimitsSpec(_Part):
    """How much may be under way."""

    in_flight: int = Field(
        4, ge=1, le=256, description="Frames per stream between its source and the sinks."
    )
    require: Literal["any", "all"] = Field(
        "any",
        description="`any`: the run begins with the cameras that are there, others join when they "
        "come. `all`: it fails where one does not send a frame in time.",
    )


class DeviceSpec(_Part):
    """What a device may be asked to do by all stages together."""

    max_requests: int = Field(
        ge=1,
        le=64,
        description="Inferences that may be under way on it at once, those of all stages together.",
    )


class PipelineSpec(_Part):
    """A pipeline file."""

    version: Literal[1] = Field(description="Version of this format.")
    name: Annotated[str, Field(pattern=PIPELINE_NAME)] = Field(
        description="Name of the pipeline; a second run of the same name is refused."
    )
    stages: dict[Annotated[str, Field(pattern=STAGE_NAME)], StageSpec] = Field(
        description="The stages by name.", min_length=1
    )
    limits: LimitsSpec = Field(LimitsSpec(), description="Bounds of the whole pipeline.")
    devices: dict[DeviceName, DeviceSpec] = Field(
        {},
        description="Limits of devices that several stages use, by `RUNTIME:DEVICE` as the summary "
        "names it: `{openvino:NPU: {max_requests: 1}}`.",
    )
    restart: RestartSpec = Field(
        RestartSpec(), description="How often workers that died or hang are started again."
    )
