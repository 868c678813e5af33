"""How fast frames come, as far as it is known before the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from edgert.stages.base import Source, Stage
from edgert.tensor import PortSpec

FPS = "fps"  # attribute of a source's port


def frame_interval_ms(
    sources: Iterable[str],
    classes: Mapping[str, type[Stage]],
    ports: Mapping[str, Mapping[str, PortSpec]],
) -> float:
    """Return the shortest time between two frames of one of ``sources``.

    0 where one of them does not tell, or is not live: the frames of a file come as fast as they are
    asked for.
    """
    rates = [_rate(classes[name], ports.get(name, {})) for name in sources]
    return 1e3 / max(rates) if rates and all(rates) else 0.0


def _rate(kind: type[Stage], ports: Mapping[str, PortSpec]) -> float:
    if not (issubclass(kind, Source) and kind.is_live):
        return 0.0
    return max((float(port.attributes.get(FPS) or 0) for port in ports.values()), default=0.0)
