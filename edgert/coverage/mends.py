"""What to do about what a device does not take, where something is known to help."""

from __future__ import annotations

# Words in what a runtime says -> what helps. The first that is found counts.
_BY_REASON: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("dynamic", "open shape", "unknown shape", "static shape"),
        "Give every input one size: --shape NAME=1,3,320,320 here, shape: in a pipeline file",
    ),
    (
        ("opset", "under development", "No Op registered", "No conversion rule"),
        "Export the model for an older operator set",
    ),
    (
        ("float32", "fp32", "not quantized", "not quantised", "int8"),
        "Quantise the model to int8 with inputs of its real use",
    ),
    (("rank", "dimensions"), "Export it with tensors of at most four dimensions"),
)
# Operators that models end or begin with, and that edgert does on the CPU all the same.
_BY_OPERATOR = {
    "NonMaxSuppression": "Export without it: postprocess.detection does it",
    "TFLite_Detection_PostProcess": "Export without it: postprocess.detection does it",
    "TopK": "Export without the selection of boxes: postprocess.detection does it",
    "ArgMax": "Export the scores: postprocess.segmentation and .classification choose",
    "Resize": "Feed the size the network wants: preprocess.image scales",
}


def mend_for(operator: str, reason: str) -> str:
    """Return what helps against a refusal; empty where nothing is known to."""
    lower = reason.lower()
    for words, mend in _BY_REASON:
        if any(word.lower() in lower for word in words):
            return mend
    return _BY_OPERATOR.get(operator, "")
