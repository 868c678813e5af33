"""``edgert plan``: what would be started, and what is not known yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import msgspec

from edgert.cli.options import code_option, log_options, pipeline_options, profile_option
from edgert.cli.planning import plan_file
from edgert.cli.progress import StatusLine
from edgert.cli.render import show, show_json, table
from edgert.device.cores import as_list
from edgert.device.memory import in_units
from edgert.plan.probe import Probed, probe
from edgert.plan.structs import Plan, StagePlan
from edgert.profiles.use import ProfileUse
from edgert.redact import redact_all
from edgert.stages.infer_requests import REQUESTS
from edgert.wording import counted


@click.command()
@pipeline_options
@profile_option
@code_option
@click.option(
    "--format", "style", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option(
    "--probe",
    "probes",
    is_flag=True,
    help="Really open each device of each stage, in a child process; show which take the model.",
)
@log_options
def command(  # noqa: PLR0913  one parameter an option, as click has it
    *,
    file: Path,
    variables: dict[str, str],
    settings: tuple[str, ...],
    profile: str | None,
    style: str,
    probes: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Show the workers, cores, rings and devices of the pipeline in FILE; start nothing."""
    line = StatusLine()
    plan = plan_file(file, variables, settings, pull=False, line=line, profile=profile).plan
    probed = probe(plan) if probes else {}
    if style == "json":
        said = {"probe": msgspec.to_builtins(probed)} if probes else {}
        show_json({**plan_json(plan), **said})
        return
    show(render_plan(plan))
    if probes:
        show(render_probe(probed))


def plan_json(plan: Plan) -> dict[str, object]:
    """Return the plan as plain JSON values, ``edgert.plan/1``."""
    plain: dict[str, object] = redact_all(msgspec.to_builtins(plan, str_keys=True))
    return {"schema": "edgert.plan/1", "shared_bytes": plan.shared_bytes, **plain}


def render_probe(probed: Mapping[str, Sequence[Probed]]) -> str:
    """Return what became of each device as text."""
    rows = [
        (stage, one.device, *_became(one)) for stage, devices in probed.items() for one in devices
    ]
    if not rows:
        return "\nprobed: no stage asks for a device"
    shown = table(("stage", "device", "taken by", "precision", "placed", "s"), rows)
    return "\n".join(["\nprobed:", shown, *_render_variants(probed)])


def _render_variants(probed: Mapping[str, Sequence[Probed]]) -> Iterator[str]:
    """Yield a table of what each further size of a model costs, where there are such."""
    rows = [
        (stage, one.device, what, cost["memory_mb"], cost["open_s"], cost["infer_ms"])
        for stage, devices in probed.items()
        for one in devices
        for what, cost in one.variants.items()
    ]
    if rows:
        heads = ("stage", "device", "further size", "MB", "s to open", "ms an inference")
        yield "\n" + table(heads, rows)


def _became(one: Probed) -> tuple[object, ...]:
    if one.refused:
        return (f"refused: {one.refused}", "", "", "")
    actual = f"{one.actual} (emulated)" if one.emulated else one.actual
    return (actual, one.precision, one.placed, one.open_s)


def render_profile(profile: ProfileUse | None) -> Iterator[str]:
    """Yield the lines that name a plan's profile, why it is this one, and what it filled in."""
    if profile is None:
        yield "profile: none matches this machine"
        return
    yield f"profile: {profile.name} ({profile.why})"
    for stage, values in profile.given.items():
        said = "; ".join(f"{key} {_shown(value)}" for key, value in values.items())
        yield f"  {stage}: {said} (default of the profile)"


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def render_plan(plan: Plan) -> str:
    """Return the plan as text."""
    workers = [
        (
            worker.name,
            ", ".join(stage.name for stage in worker.stages),
            as_list(worker.cores),
            max(stage.threads for stage in worker.stages),
            worker.placement,
        )
        for worker in plan.workers
    ]
    rings = [
        (
            ring.name,
            ring.slots,
            in_units(ring.layout.slot_bytes),
            in_units(ring.nbytes),
            ", ".join(f"{edge.reader}.{edge.port}" for edge in ring.edges),
        )
        for ring in plan.rings
    ]
    devices = [f"  {stage}: {', '.join(asked)}" for stage, asked in plan.requested.items()]
    requests = [
        f"  {stage.name}: {_requests(stage, plan.requests[stage.name])}"
        for stage in plan.stages()
        if stage.name in plan.requests
    ]
    limits = [f"  {device}: {count}" for device, count in plan.turns.limits.items()]
    return "\n".join(
        [
            f"pipeline {plan.name}: {counted(len(plan.streams), 'stream')}, "
            f"at most {counted(plan.in_flight, 'frame')} of each in flight, "
            f"{in_units(plan.shared_bytes)} of shared memory",
            *render_profile(plan.profile),
            "",
            table(("worker", "stages", "cores", "threads", "placement"), workers),
            "",
            table(("ring", "slots", "slot", "bytes", "read by"), rings),
            *(["", "devices asked for, in order:", *devices] if devices else []),
            *(["", "requests in flight:", *requests] if requests else []),
            *(["", "inferences at once on a device, at most:", *limits] if limits else []),
            *(
                ["", "not known yet:", *(f"  {text}" for text in plan.unknown)]
                if plan.unknown
                else []
            ),
        ]
    )


def _requests(stage: StagePlan, number: int) -> str:
    return f"{number} (auto)" if stage.settings.get(REQUESTS, "auto") == "auto" else str(number)
