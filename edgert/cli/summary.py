"""The summary of a run as text for people."""

from __future__ import annotations

from collections.abc import Mapping

from edgert.cli.render import table
from edgert.runtime.sources import SourceState
from edgert.runtime.summary import BatchSummary, Percentiles, Summary
from edgert.wording import counted


def render_summary(summary: Summary) -> str:
    """Return the summary as lines and a table."""
    frames = summary.frames
    rows = [
        (
            name,
            stage.frames,
            stage.service_ms.p50,
            stage.service_ms.p99,
            stage.wait_in_ms.p50,
            stage.wait_out_ms.p50,
            stage.copied_bytes,
            stage.worker,
            stage.cpu_s,
        )
        for name, stage in summary.stages.items()
    ]
    headers = (
        *("stage", "frames", "p50 ms", "p99 ms", "wait in", "wait out"),
        *("copied B", "worker", "cpu s"),
    )
    lines = [
        "",
        f"{summary.pipeline}: read {frames['read']} = processed {frames['processed']} + dropped "
        f"{frames['dropped']} + lost {frames['lost']}; {_rate(summary)}",
        f"latency: {_percentiles(summary.latency_ms)}",
        table(headers, rows),
        *(
            _batches(name, stage.batch)
            for name, stage in summary.stages.items()
            if stage.batch is not None
        ),
        *(
            _variants(name, stage.variants)
            for name, stage in summary.stages.items()
            if stage.variants
        ),
        *(
            f"stage {name}: its worker was started again {counted(stage.restarts, 'time')}"
            for name, stage in summary.stages.items()
            if stage.restarts
        ),
        *(
            f"stage {name}: it is away: {stage.away}"
            for name, stage in summary.stages.items()
            if stage.away
        ),
        *(_source(name, source) for name, source in summary.sources.items()),
        *(_device(name, device) for name, device in summary.devices.items()),
        *(_stream(*each) for each in _uneven(summary)),
        *(
            f"link {name}: dropped {link['dropped']}, lost {link['lost']} of {link['read']}"
            for name, link in summary.links.items()
            if link["dropped"] or link["lost"]
        ),
        _memory(summary),
        _throttled(summary),
        _bottleneck(summary),
    ]
    return "\n".join(line for line in lines if line is not None)


def _uneven(summary: Summary) -> list[tuple[str, Mapping[str, int]]]:
    """Return the streams that lost or dropped frames, where there are others beside them."""
    streams = summary.streams if len(summary.streams) > 1 else {}
    return [(name, one) for name, one in streams.items() if one["dropped"] or one["lost"]]


def _stream(name: str, counts: Mapping[str, int]) -> str:
    dropped, lost, read = counts["dropped"], counts["lost"], counts["read"]
    return f"stream {name}: dropped {dropped}, lost {lost} of {read}"


def _rate(summary: Summary) -> str:
    """Say how fast it was; a single frame has no rate."""
    took = f"{summary.duration_s:.1f} s"
    return f"{summary.fps:.1f} frames/s in {took}" if summary.fps else took


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _percentiles(times: Percentiles) -> str:
    if times.p50 is None:
        return "no frame came to its end"
    return (
        f"p50 {_ms(times.p50)}, p95 {_ms(times.p95)}, p99 {_ms(times.p99)}, max {_ms(times.max)} ms"
    )


def _source(name: str, source: SourceState) -> str:
    why = f": {source.reason}" if source.reason and source.state != "online" else ""
    said = "".join(
        f"; {part}"
        for part in (
            source.media,
            f"came back {counted(source.reconnects, 'time')}" if source.reconnects else "",
            f"{counted(source.scaled, 'frame')} scaled down" if source.scaled else "",
            f"{counted(source.damaged, 'frame')} damaged" if source.damaged else "",
            f"its time began {source.epochs} times" if source.epochs > 1 else "",
        )
        if part
    )
    return f"source {name}: {source.state}{why}{said}"


def _device(stage: str, device: dict[str, object]) -> str:
    refused = device.get("refused")
    why = (
        "".join(f"\n  {name} refused: {reason}" for name, reason in refused.items())
        if isinstance(refused, dict)
        else ""
    )
    precision, runtime = device["precision"], device["runtime"]
    placed = f", {device['placed']}" if device.get("placed") else ""
    if device.get("failed"):
        why = f"; it had failed and was opened again: {device['failed']}{why}"
    return f"device of {stage}: {device['actual']}{placed}, {precision} ({runtime}){why}"


def _batches(stage: str, batch: BatchSummary) -> str:
    return (
        f"batches of {stage}: {batch.batches}, mean size {batch.mean_size:.2f}, "
        f"{batch.padding:.0%} padding; waited {_ms(batch.wait_ms.p50)} ms (p50), "
        f"{_ms(batch.wait_ms.p99)} (p99)"
    )


def _variants(stage: str, variants: Mapping[str, Mapping[str, float]]) -> str:
    costs = (
        f"{what} {cost['memory_mb']:.0f} MB, {cost['open_s']:.1f} s to open, "
        f"{cost['infer_ms']:.1f} ms an inference"
        for what, cost in variants.items()
    )
    return f"what {stage} takes beside its first size: {'; '.join(costs)}"


def _memory(summary: Summary) -> str | None:
    pss = summary.memory["pss_mb"]
    return f"memory: {pss:.0f} MB in all (PSS)" if pss else None


def _throttled(summary: Summary) -> str | None:
    facts = [f"{what} {value}" for what, value in summary.throttled.items()]
    return f"the CPU was throttled: {', '.join(facts)}" if facts else None


def _bottleneck(summary: Summary) -> str:
    found = summary.bottleneck
    return f"bottleneck: {f'{found.stage}: ' if found.stage else ''}{found.why}"
