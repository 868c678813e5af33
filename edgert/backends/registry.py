"""Which runtimes there are, which of them a device means, and what a model looks like to them."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from edgert.backends.base import Backend, Signature
from edgert.errors import DeviceError, ModelError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "edgert.backends"
BACKENDS = {
    "openvino": "edgert.backends.openvino:OpenVinoBackend",
    "onnxruntime": "edgert.backends.onnxruntime:OnnxRuntimeBackend",
    "tflite": "edgert.backends.tflite:TfliteBackend",
    "emulated": "edgert.backends.emulated:EmulatedBackend",
}
# The vendor's modules, one of which must be here; the backend's name is also that of our extra.
VENDORS = {
    "openvino": ("openvino",),
    "onnxruntime": ("onnxruntime",),
    "tflite": ("ai_edge_litert", "tflite_runtime"),
}
# Which runtimes read a format, in the order in which they try a device that names none of them.
READERS = {
    "onnx": ("openvino", "onnxruntime"),
    "openvino-ir": ("openvino",),
    "tensorflow": ("openvino",),
    "saved-model": ("openvino",),
    "paddle": ("openvino",),
    "tflite": ("openvino", "tflite"),
}
# Whom to ask first what is in a file: OpenVINO does not tell the scale of quantised outputs.
TELLS_MOST = {"tflite": "tflite"}


def names() -> tuple[str, ...]:
    """Return the name of every backend, ours first."""
    return (*BACKENDS, *(name for name in _third_party() if name not in BACKENDS))


def is_installed(name: str) -> bool:
    """Return whether the vendor's package of a backend is here, without importing it."""
    vendors = VENDORS.get(name)
    return vendors is None or any(map(importlib.util.find_spec, vendors))


@cache
def backend(name: str) -> Backend:
    """Return a backend by name, importing its module and its vendor's library; one a process.

    Raises:
        DeviceError: There is no such backend, it is not installed, or it is broken: three
            different messages.
    """
    place = f"backend {name!r}"
    if name not in BACKENDS and name not in _third_party():
        raise _unknown(name)
    if not is_installed(name):
        raise DeviceError(place, "it is not installed", f"Run: pip install 'edgert[{name}]'")
    try:
        kind = _load(name)
    except (ImportError, OSError, AttributeError) as error:
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise DeviceError(
            place, f"it is installed and cannot be imported: {said[0]}", "Install it anew"
        ) from error
    found: Backend = kind()
    return found


def parse_device(text: str) -> tuple[str | None, str]:
    """Split ``openvino:NPU`` or ``NPU`` into the backend's name, or None, and the device.

    Raises:
        DeviceError: No backend has that name, or no device is named.
    """
    head, colon, device = text.strip().partition(":")
    if not colon:
        head, device = "", head
    if not device:
        raise DeviceError(f"device {text!r}", "no device is named", "Write NPU, or openvino:NPU")
    if head in ("AUTO", "MULTI", "HETERO", "BATCH"):
        raise DeviceError(
            f"device {text!r}",
            f"{head} chooses by itself",
            "Name the devices in the order you want: [NPU, CPU]; "
            "or let OpenVINO do it: openvino:AUTO:NPU,CPU or openvino:HETERO:NPU,CPU",
        )
    if head and head not in names():
        raise _unknown(head)
    return head or None, device


def candidates(device: str, format: str) -> tuple[str, ...]:  # noqa: A002  the models' word
    """Name the installed runtimes that try ``device`` for a model of ``format``, in order.

    Args:
        device: As in the file; where it names a runtime, that one alone is meant.
        format: As in ``ModelDescription``.
    """
    name, _ = parse_device(device)
    if name is not None:
        return (name,) if reads(name, format) else ()
    return tuple(reader for reader in READERS.get(format, ()) if is_installed(reader))


def reads(runtime: str, format: str) -> bool:  # noqa: A002  the models' word
    """Return whether a runtime reads a format; true where nothing is known of either."""
    is_known = format in READERS and runtime in chain(*READERS.values())
    return not is_known or runtime in READERS[format]


def scope_of(key: str) -> tuple[str, str] | None:
    """Return whose options stand under a key of ``options:``; None where it is an option itself.

    Returns:
        The runtime, and its device or nothing: ``openvino``, ``openvino:NPU``.
    """
    runtime, _, device = key.partition(":")
    return (runtime, device) if runtime in names() else None


def options_for(options: Mapping[str, Any], runtime: str, device: str) -> dict[str, Any]:
    """Return the options of one device: those of all, then its runtime's, then its own."""
    own = {key: value for key, value in options.items() if scope_of(key) is None}
    return {**own, **options.get(runtime, {}), **options.get(f"{runtime}:{device}", {})}


def is_for_one(
    key: str, options: Mapping[str, Any], attempt: tuple[str, str], tried: Iterable[tuple[str, str]]
) -> bool:
    """Return whether an option is meant for one device alone, so that no other can know it.

    Args:
        key: The option.
        options: As written.
        attempt: Runtime and device.
        tried: All that the stage tries.
    """
    runtime, device = attempt
    own = options.get(f"{runtime}:{device}", {})
    if {at for name, at in tried if name == runtime} == {device}:
        own = {**own, **options.get(runtime, {})}
    return key in own


def read_signature(path: str, shapes: dict[str, list[int]], format: str) -> dict[str, Any]:  # noqa: A002
    """Return inputs and outputs of a model, as JSON-able data; meant for a child process.

    Raises:
        ModelError: No runtime that is installed reads it; the first one's reason.
        DeviceError: No runtime that reads the format is installed.
    """
    refused: ModelError | None = None
    for reader in _readers(path, format):
        try:
            return _as_data(reader.signature(path, shapes))
        except ModelError as error:
            refused = refused or error
    raise refused or ModelError(f"model {path!r}", "no runtime reads it")


def read_signatures(
    path: str,
    shapes: list[dict[str, list[int]]],
    format: str,  # noqa: A002
) -> list[dict[str, Any] | None]:
    """Return a model's signature in several shapes; None where it does not take them.

    Why it does not, ``read_signature`` tells who asks for them alone.
    """

    def read(one: dict[str, list[int]]) -> dict[str, Any] | None:
        try:
            return read_signature(path, one, format)
        except ModelError:
            return None

    return [read(one) for one in shapes]


def inspect(path: str, format: str, shapes: dict[str, list[int]]) -> dict[str, Any]:  # noqa: A002
    """Return signature, operators, parameters and MACs; meant for a child process.

    Returns:
        ``inputs``, ``outputs``, ``operators`` (type -> count), ``parameters``, ``macs`` (None
        where shapes are open), ``notes``. Without OpenVINO only the signature is known.

    Raises:
        ModelError: As ``read_signature``.
        DeviceError: As ``read_signature``.
    """
    if is_installed("openvino"):
        from edgert.backends.openvino import OpenVinoBackend

        signature, count = OpenVinoBackend().inspect(path, shapes)
        return {**_as_data(signature), **msgspec.to_builtins(count)}
    unknown: dict[str, Any] = {"operators": {}, "parameters": None, "macs": None}
    notes = ["operators are counted by OpenVINO: pip install 'edgert[openvino]'"]
    return {**read_signature(path, shapes, format), **unknown, "notes": notes}


def _readers(path: str, format: str) -> Iterator[Backend]:  # noqa: A002
    known = READERS.get(format, ())
    here = [name for name in known if is_installed(name)]
    if not here:
        extras = " or ".join(f"pip install 'edgert[{name}]'" for name in known)
        raise DeviceError(f"model {path!r}", f"no runtime that reads {format} is here", extras)
    here.sort(key=lambda name: name != TELLS_MOST.get(format))
    yield from map(backend, here)


def _as_data(signature: Signature) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(signature))
    return data


def _load(name: str) -> Any:
    if name in BACKENDS:
        module, _, attribute = BACKENDS[name].partition(":")
        return getattr(importlib.import_module(module), attribute)
    return _third_party()[name].load()


@cache
def _third_party() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points  # no run with a built-in runtime needs it

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


def _unknown(name: str) -> DeviceError:
    near = difflib.get_close_matches(name, names(), 1)
    mend = f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(names())}"
    return DeviceError(f"backend {name!r}", "there is no backend of that name", mend)
