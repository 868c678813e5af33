"""Every entry of the catalog is whole, and a broken one is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml

from edgert.errors import MediaError, ModelError
from edgert.models.catalog import (
    HttpsSource,
    Item,
    ModelEntry,
    PypiSource,
    load_catalog,
    parse_catalog,
)
from edgert.stages.postprocess.head import FAMILIES
from edgert.stages.preprocess.geometry import RESIZES
from edgert.tensor import DTYPES

CATALOG = load_catalog()
ITEMS: list[Item] = [*CATALOG.models.values(), *CATALOG.samples.values()]
ENTRY = {
    "description": "d",
    "licence": "MIT",
    "format": "onnx",
    "sha256": "0" * 64,
    "size_bytes": 1,
    "source": {"type": "https", "urls": ["https://example.org/a.onnx"]},
    "inputs": {"x": {"dtype": "f32", "shape": [None, 3]}},
    "outputs": {"y": {"dtype": "f32", "shape": [1, 3]}},
}


def parse(**changes: Any) -> ModelEntry:
    text = yaml.safe_dump({"models": {"m": {**ENTRY, **changes}}, "samples": {}})
    return parse_catalog(text).models["m"]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.name)
def test_every_item_says_what_it_is(item: Item) -> None:
    assert item.description
    assert item.licence
    assert item.filename


@pytest.mark.parametrize("entry", CATALOG.models.values(), ids=lambda entry: entry.name)
def test_every_model_fits_itself(entry: ModelEntry) -> None:
    assert set(entry.shape) <= set(entry.inputs)
    assert all(spec.is_static for spec in entry.fixed_inputs.values())
    assert all(spec.is_static for spec in entry.outputs.values())
    assert {spec.dtype for spec in [*entry.inputs.values(), *entry.outputs.values()]} <= set(DTYPES)
    handling = entry.handling
    if handling.image:
        assert handling.image.tensor in entry.inputs
        assert handling.image.layout in ("NCHW", "NHWC")
        assert handling.image.colour in ("RGB", "BGR", "GRAY")
        assert handling.image.resize in RESIZES
    if handling.detection:
        assert handling.detection.family in FAMILIES
        assert set(handling.detection.tensors.values()) <= set(entry.outputs)
        assert all(label.strip() == label != "" for label in handling.detection.labels)
    if handling.lines:
        assert handling.lines.family == "db"
        assert set(handling.lines.tensors.values()) <= set(entry.outputs)
    if handling.text:
        assert handling.text.family == "ctc"
        assert set(handling.text.tensors.values()) <= set(entry.outputs)
    if handling.segmentation:
        assert handling.segmentation.family in ("classes", "scores", "probability")
        assert set(handling.segmentation.tensors.values()) <= set(entry.outputs)
        assert handling.segmentation.labels[0] == "background"
    if handling.classification:
        (output,) = (entry.outputs[name] for name in handling.classification.tensors.values())
        assert output.shape == (1, len(handling.classification.labels))
    if handling.pose:
        assert handling.pose.family in ("movenet", "blazepose")
        assert set(handling.pose.tensors.values()) <= set(entry.outputs)
        assert len(set(handling.pose.keypoints)) == len(handling.pose.keypoints) > 0


@pytest.mark.parametrize("entry", CATALOG.models.values(), ids=lambda entry: entry.name)
def test_fixed_inputs_keep_what_the_file_declares(entry: ModelEntry) -> None:
    for name, spec in entry.inputs.items():
        pairs = zip(spec.shape, entry.fixed_inputs[name].shape, strict=True)
        assert all(declared in (None, fixed) for declared, fixed in pairs)


def test_the_labels_of_coco() -> None:
    head = CATALOG.model("yolox-nano").handling.detection
    assert head is not None
    assert len(set(head.labels)) == 80
    assert (head.labels[0], head.labels[2], head.labels[79]) == ("person", "car", "toothbrush")


def test_a_near_miss_is_named() -> None:
    with pytest.raises(ModelError) as caught:
        CATALOG.model("yolox-nan")
    assert str(caught.value) == (
        "model 'yolox-nan': is neither a model of the catalog nor a file. "
        "Did you mean 'yolox-nano'? `edgert models list` names all of them."
    )


def test_an_unknown_sample_is_a_media_error() -> None:
    with pytest.raises(MediaError, match="Did you mean 'sample:bikes'"):
        CATALOG.sample("sample:bike")


def test_a_whole_entry_is_taken() -> None:
    assert parse().filename == "a.onnx"
    zipped = HttpsSource(("https://example.org/a.zip?raw=1",), "in/side.onnx")
    assert zipped.filename == "side.onnx"


@pytest.mark.parametrize(
    "changes",
    [
        {"sha256": "0" * 63},
        {"sha256": "A" * 64},
        {"size_bytes": 0},
        {"format": "keras"},
        {"surprise": 1},
        {"source": {"type": "ftp", "url": "ftp://example.org"}},
        {"source": {"type": "https", "urls": ["http://example.org/a.onnx"]}},
        {"source": {"type": "https", "urls": []}},
        {"inputs": {"x": {"dtype": "f32", "shape": ["a"]}}},
        {"image": {"tensor": "x", "layout": "NCHW", "colour": "RGB", "resize": "fit", "pdd": 1}},
    ],
)
def test_a_broken_entry_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        parse(**changes)


def test_a_wheel_of_one_machine_is_asked_for_by_its_tags() -> None:
    assert PypiSource("p", "1", "p/f").pip_options == ()
    source = PypiSource("p", "1", "p/f", "3.11", "any")
    assert source.pip_options == ("--python-version", "3.11", "--platform", "any")
