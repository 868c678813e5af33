"""Delegates: what a device of TFLite means, whether it is here, and what it took of a model."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from edgert.backends.options import as_text
from edgert.backends.placement import Placement
from edgert.backends.tflite_runtime import ERRORS, lite, reason
from edgert.errors import DeviceError

EXTERNAL = "external:"
_ENTRY = "tflite_plugin_create_delegate"


class Delegate(msgspec.Struct, frozen=True):
    """A library that takes operators from TFLite, and what it needs.

    Attributes:
        library: Name, as the loader looks for it, or path.
        node: What must be in /dev for it; empty where the library itself says what it misses.
        mend: Where the library comes from.
    """

    library: str
    node: str = ""
    mend: str = ""


DELEGATES = {
    "edgetpu": Delegate(
        "libedgetpu.so.1", mend="It is Coral's package libedgetpu1-std; is the Edge TPU plugged in"
    ),
    "vx": Delegate(
        "libvx_delegate.so", "/dev/galcore", "It comes with the images of boards with a VIP NPU"
    ),
    "ethosu": Delegate(
        "libethosu_delegate.so", "/dev/ethosu0", "It comes with the images of boards with Ethos-U"
    ),
    "gpu": Delegate(
        "libtensorflowlite_gpu_delegate.so", mend="It is built from TensorFlow Lite's sources"
    ),
}


def find(device: str) -> Delegate | None:
    """Return the delegate that a device means; None for a name that means none."""
    if device.startswith(EXTERNAL):
        return Delegate(device.removeprefix(EXTERNAL))
    return DELEGATES.get(device)


def here() -> tuple[str, ...]:
    """Name the delegates whose library is here and finds its device.

    A library that merely loads proves nothing: one of each is made, and given back.
    """
    return tuple(name for name, delegate in DELEGATES.items() if _is_here(delegate))


def load(delegate: Delegate, options: Mapping[str, Any], place: str) -> Any:
    """Make a delegate.

    Raises:
        DeviceError: Its library or its device is not here, or it refuses; in its words.
    """
    _require(delegate, place)
    try:
        return lite.load_delegate(delegate.library, as_text(options))
    except ERRORS as error:
        raise DeviceError(
            place, f"its library {delegate.library} refuses: {reason(error)}", delegate.mend
        ) from error


class Operator(NamedTuple):
    """An operator of the model itself, not of what delegates made of it.

    Attributes:
        number: Its number in the interpreter.
        name: Its kind.
        inputs: Numbers of the tensors it reads.
        outputs: Numbers of the tensors it makes.
        taken: Whether a delegate computes it.
    """

    number: int
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    taken: bool


def operators(interpreter: Any) -> list[Operator] | None:
    """Return the operators of a model and which of them delegates took; None where untold.

    What a delegate node computes was computed by the operators behind its outputs, back to its
    inputs: these are still listed, and are no longer run. Nodes of every delegate count, so no
    other may be at work.
    """
    details = getattr(interpreter, "_get_ops_details", None)
    if details is None:
        return None
    nodes = details()
    own = [node for node in nodes if node["op_name"] != "DELEGATE"]
    makers = {int(tensor): node for node in own for tensor in node["outputs"]}
    taken: set[int] = set()
    for node in nodes:
        if node["op_name"] == "DELEGATE":
            taken |= _behind(node, makers)
    return [
        Operator(
            node["index"],
            node["op_name"],
            tuple(map(int, node["inputs"])),
            tuple(map(int, node["outputs"])),
            node["index"] in taken,
        )
        for node in own
    ]


def placement(interpreter: Any) -> Placement | None:
    """Count the operators that delegates took of a model; None where TFLite does not tell."""
    found = operators(interpreter)
    if found is None:
        return None
    return Placement(sum(each.taken for each in found), len(found))


def _behind(node: Mapping[str, Any], makers: Mapping[int, Mapping[str, Any]]) -> set[int]:
    given = {int(tensor) for tensor in node["inputs"]}
    open_tensors = [int(tensor) for tensor in node["outputs"]]
    found: set[int] = set()
    while open_tensors:
        tensor = open_tensors.pop()
        maker = makers.get(tensor)
        if tensor in given or maker is None or maker["index"] in found:
            continue
        found.add(maker["index"])
        open_tensors += [int(read) for read in maker["inputs"]]
    return found


def _is_here(delegate: Delegate) -> bool:
    try:
        load(delegate, {}, delegate.library)
    except DeviceError:
        return False
    return True


def _require(delegate: Delegate, place: str) -> None:
    if delegate.node and not Path(delegate.node).exists():
        raise DeviceError(place, f"there is no {delegate.node} here", delegate.mend)
    try:
        # Loaded beforehand: a library that is absent breaks the clean-up of TFLite's own loader.
        library = ctypes.CDLL(delegate.library)
    except OSError as error:
        said = f"its library cannot be loaded: {reason(error)}"
        raise DeviceError(place, said, delegate.mend) from error
    if not hasattr(library, _ENTRY):
        raise DeviceError(place, f"{delegate.library} is no delegate: it has no {_ENTRY}")
