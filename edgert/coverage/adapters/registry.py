"""Which adapters there are: ours by name, a third party's by entry point."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from edgert.coverage import environments
from edgert.coverage.protocol import Spec
from edgert.errors import UserError

GROUP = "edgert.coverage_adapters"
ADAPTERS = {
    "emulated": "edgert.coverage.adapters.emulated:EmulatedAdapter",
    "onnxruntime": "edgert.coverage.adapters.onnxruntime:OnnxRuntimeAdapter",
    "openvino": "edgert.coverage.adapters.openvino:OpenVinoAdapter",
    "profile": "edgert.coverage.adapters.profile:ProfileAdapter",
    "qnn": "edgert.coverage.adapters.qnn:QnnAdapter",
    "rknn": "edgert.coverage.adapters.rknn:RknnAdapter",
    "vela": "edgert.coverage.adapters.vela:VelaAdapter",
    "tflite": "edgert.coverage.adapters.tflite:TfliteAdapter",
}


def names() -> tuple[str, ...]:
    """Return the names of all adapters."""
    return tuple(sorted({*ADAPTERS, *(each.name for each in entry_points(group=GROUP))}))


def spec_of(text: str, options: dict[str, Any], memory_bytes: int) -> Spec:
    """Return what a child needs to host an adapter.

    Args:
        text: ``adapter:DEVICE``, for example ``onnxruntime:CPU``.
        options: Of the adapter's own.
        memory_bytes: What each child may allocate.

    Raises:
        UserError: There is no such adapter, it is not set up, or no device is named.
    """
    name, _, device = text.partition(":")
    targets = {each.name: each.value for each in entry_points(group=GROUP)} | ADAPTERS
    if name not in targets:
        mend = f"One of: {', '.join(names())}; for example onnxruntime:CPU"
        raise UserError("device", f"there is no adapter {name!r}", mend)
    if not device:
        raise UserError("device", f"{text!r} names no device", f"For example: {name}:CPU")
    python = str(environments.find(name).python) if name in environments.ENVIRONMENTS else ""
    return Spec(
        target=targets[name],
        device=device,
        options=options,
        memory_bytes=memory_bytes,
        python=python,
    )
