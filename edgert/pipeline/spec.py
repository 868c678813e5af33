"""The shape of a pipeline file: what stands in it, as frozen data.

Keys of a stage that are not named here belong to its kind (``StageSpec.settings``) and are checked
against the options of that kind in ``check``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

STAGE_NAME = r"^[a-z][a-z0-9_-]{0,39}$"
PIPELINE_NAME = r"^[a-z0-9-]{1,40}$"

CoreClass = Literal["p-cores", "e-cores", "any"]
Cores = CoreClass | str | tuple[int, ...]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class QueueSpec(_Part):
    """How an edge waits."""

    slots: int = Field(2, ge=1, le=256, description="Frames that may wait on this edge.")
    when_full: Literal["block", "drop-oldest"] = Field(
        "block",
        description="`block` makes the writer wait; `drop-oldest` takes the oldest waiting frame "
        "back and counts it dropped (for side branches, such as a preview).",
    )


class LinkSpec(_Part):
    """An edge, written where it is read."""

    source: str = Field(alias="from", description="`STAGE.PORT` that is read.")
    queue: QueueSpec = Field(QueueSpec(), description="How the edge waits.")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"from": value} if isinstance(value, str) else value

    @property
    def stage(self) -> str:
        """Name of the stage that writes."""
        return self.source.partition(".")[0]

    @property
    def port(self) -> str:
        """Name of the port that is read."""
        return self.source.partition(".")[2]


class StageSpec(BaseModel):
    """One stage; keys that are not listed are options of its kind."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: str = Field(description="What the stage does: a built-in kind, or `package.module:Class`.")
    inputs: dict[str, tuple[LinkSpec, ...]] = Field(
        {}, description="Input port -> `stage.port`, a list of those (several streams), or the long form."
    )
    worker: str | None = Field(
        None, description="Stages that name the same worker share one process and pass arrays directly."
    )
    cores: Cores | None = Field(
        None, description='Where it may run: `p-cores`, `e-cores`, `any`, `"0-3"` or `[0, 2]`.'
    )

    @property
    def settings(self) -> dict[str, Any]:
        """The keys that belong to the kind."""
        return dict(self.model_extra or {})


class LimitsSpec(_Part):
    """Bounds of the whole pipeline."""

    in_flight: int = Field(
        4, ge=1, le=256, description="Frames per stream between its source and the sinks."
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
