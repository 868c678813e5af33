"""edgert: a runtime for neural inference on edge boxes and cameras."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from edgert.version import __version__

if TYPE_CHECKING:
    from edgert.api import Pipeline
    from edgert.runtime.order import RunOptions

__all__ = ["Pipeline", "RunOptions", "__version__"]

_HOMES = {"Pipeline": "edgert.api", "RunOptions": "edgert.runtime.order"}


def __getattr__(name: str) -> Any:
    """Import the public classes when they are first asked for: ``edgert --version`` stays light."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'edgert' has no attribute {name!r}")
