"""The smallest model that every accelerator should take: y = 2x.

As ONNX a convolution of 1x1, written by hand, so that a device can be tried where the package
``onnx`` is not installed; as TFLite a product.
"""

from __future__ import annotations

import base64
import struct

SHAPE = (1, 4, 8, 8)
FACTOR = 2.0
_FLOAT = 1  # TensorProto.FLOAT
_IR_VERSION, _OPSET = 8, 13


_TFLITE = base64.b64decode(
    "GAAAAFRGTDMAAA4AGAAUABAADAAIAAQADgAAABQAAAA4AAAAPAAAAFABAAADAAAAAgAAACAAAAAMAAAAAAAGAAgABAAG"
    "AAAABAAAAAQAAAAAAABAoP///wAAAAAAAAAAAQAAABAAAAAMABQAEAAMAAgABAAMAAAAEAAAAFQAAABYAAAAXAAAAAEA"
    "AAAUAAAAAAAOABQAAAAQAAwACwAEAA4AAAAUAAAAAAAAFRAAAAAUAAAABAAEAAQAAAABAAAAAQAAAAIAAAAAAAAAAgAA"
    "AAEAAAABAAAAAQAAAAAAAAADAAAAbAAAADQAAAAQAAAADAAQAAwAAAAIAAQADAAAAAwAAAABAAAADAAAAAMAAAAxLzIA"
    "AQAAAAEAAADY////CAAAAAwAAAABAAAAeQAAAAQAAAABAAAABAAAAAgAAAAIAAAADAAMAAgAAAAAAAQADAAAAAgAAAAM"
    "AAAAAQAAAHgAAAAEAAAAAQAAAAQAAAAIAAAACAAAAAEAAAAQAAAADAAMAAsAAAAAAAQADAAAABIAAAAAAAAS"
)


def trial_models() -> dict[str, bytes]:
    """Return the content of the model's file in each format, by the format's name."""
    return {"onnx": trial_model(), "tflite": _TFLITE}


def trial_model() -> bytes:
    """Return the model as an ONNX file, with input ``x`` and output ``y`` of ``SHAPE``."""
    graph = (
        _field(1, _field(1, "x") + _field(1, "w") + _field(2, "y") + _field(4, "Conv"))
        + _field(2, "trial")
        + _field(5, _weights())
        + _field(11, _value("x"))
        + _field(12, _value("y"))
    )
    return _field(1, _IR_VERSION) + _field(7, graph) + _field(8, _field(2, _OPSET))


def _weights() -> bytes:
    """Return the TensorProto ``w``: each channel goes to itself, times ``FACTOR``."""
    channels = SHAPE[1]
    values = [
        FACTOR if row == column else 0.0 for row in range(channels) for column in range(channels)
    ]
    dims = b"".join(_field(1, size) for size in (channels, channels, 1, 1))
    raw = struct.pack(f"<{len(values)}f", *values)
    return dims + _field(2, _FLOAT) + _field(8, "w") + _field(9, raw)


def _value(name: str) -> bytes:
    """Return a ValueInfoProto of ``SHAPE``."""
    shape = b"".join(_field(1, _field(1, size)) for size in SHAPE)
    return _field(1, name) + _field(2, _field(1, _field(1, _FLOAT) + _field(2, shape)))


def _field(number: int, value: int | str | bytes) -> bytes:
    """Encode one field of a protocol buffer: a number below 128, or bytes with their length."""
    if isinstance(value, int):
        return bytes((number << 3, value))
    data = value.encode() if isinstance(value, str) else value
    return bytes((number << 3 | 2,)) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Encode seven bits a byte, the lowest first; the top bit says that more follow."""
    low, rest = number & 0x7F, number >> 7
    return bytes((low | 0x80,)) + _varint(rest) if rest else bytes((low,))
