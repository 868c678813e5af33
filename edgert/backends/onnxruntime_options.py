"""Options of the ONNX Runtime backend; read without its library, so that ``check`` knows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from edgert.backends.options import device_error, read_options
from edgert.errors import KeyFault

OPTIMISATION = ("all", "extended", "basic", "off")


class OnnxRuntimeOptions(msgspec.Struct, frozen=True):
    """Options of this backend.

    Attributes:
        optimisation: Of the graph: ``all``, ``extended``, ``basic`` or ``off``.
        spinning: Whether idle threads burn CPU time to wake up sooner.
        arena: Whether memory of intermediate results is kept between inferences.
        prepacking: Whether each process arranges the weights anew, for speed. Without it, weights
            that lie in a file beside the model are mapped, and replicas share them.
        provider: Options of the execution provider's own.
        provider_library: Path of a plug-in's library.
        provider_name: What that library calls its provider, where it is not called as the device.
    """

    optimisation: str = "all"
    spinning: bool = False
    arena: bool = True
    prepacking: bool = True
    provider: dict[str, str | int | float | bool] = {}
    provider_library: str = ""
    provider_name: str = ""


NAMES = frozenset(OnnxRuntimeOptions.__struct_fields__)


def read(given: Mapping[str, Any], place: str) -> OnnxRuntimeOptions:
    """Return options as written.

    Raises:
        DeviceError: A key is unknown, or a value is none of its own.
    """
    options = read_options(OnnxRuntimeOptions, given, place)
    if options.optimisation not in OPTIMISATION:
        fault = f"there is no {options.optimisation!r}"
        mend = f"One of: {', '.join(OPTIMISATION)}"
        where = f"{place}, options, optimisation"
        raise device_error([KeyFault(where, fault, mend, path=("optimisation",))])
    return options
