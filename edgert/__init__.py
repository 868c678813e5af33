"""edgert: a runtime for neural inference on edge boxes and cameras."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edgert.version import __version__

if TYPE_CHECKING:
    from edgert.api import Pipeline

__all__ = ["Pipeline", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the public classes when they are first asked for: ``edgert --version`` stays light."""
    if name == "Pipeline":
        from edgert.api import Pipeline

        return Pipeline
    raise AttributeError(f"module 'edgert' has no attribute {name!r}")
