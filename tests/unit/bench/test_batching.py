import pytest

from edgert.bench.batching import Asked, bench_batching


def test_what_the_device_can_do() -> None:
    asked = Asked()
    assert asked.device_fps == pytest.approx(8 / 0.028)
    assert asked.delay_ms == pytest.approx(1000 / 30)
    assert Asked(streams=1).delay_ms == 0
    assert Asked(max_delay_ms=4).delay_ms == 4


def test_batches_form_on_an_emulated_device() -> None:
    phases: list[str] = []
    asked = Asked(streams=3, fps=20, latency_ms=40, max_size=3, seconds=1)
    report = bench_batching(asked, phases.append)
    assert len(phases) == 2
    assert report.cameras.offered_fps == 60
    assert report.overload.offered_fps == pytest.approx(2 * report.device_fps, rel=0.01)
    assert report.overload.mean_size > 1
    assert report.overload.p99_ms > 40
