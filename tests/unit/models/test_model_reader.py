"""What plan learns of a model: by name, by path, by URL; and of those that are none."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from edgert.errors import MediaError, ModelError
from edgert.models import signatures
from edgert.models.cache import Cache
from edgert.models.catalog import load_catalog
from edgert.models.describe import ModelReader
from edgert.models.pull import add
from edgert.models.reader import Models, resolve_media
from edgert.tensor import TensorSpec
from tests.unit.models.serving import Site

PERSON = load_catalog().model("person-ssdlite")


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.fixture
def no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if a file is taken apart: the catalog or the cache should know."""
    monkeypatch.setattr(signatures, "READ", "nowhere:nothing")


def model_of(path: Path) -> Path:
    """Write a tiny ONNX model with an open batch."""
    onnx = pytest.importorskip("onnx")
    make, element = onnx.helper, onnx.TensorProto.FLOAT
    graph = make.make_graph(
        [make.make_node("Relu", ["x"], ["y"])],
        "tiny",
        [make.make_tensor_value_info("x", element, ["n", 4])],
        [make.make_tensor_value_info("y", element, ["n", 4])],
    )
    opset = [make.make_opsetid("", 17)]
    onnx.save(make.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def test_it_is_what_the_stages_ask(cache: Cache) -> None:
    reader: ModelReader = Models(cache=cache)
    assert reader.describe("person-ssdlite", {}).name == "person-ssdlite"


@pytest.mark.usefixtures("no_child")
def test_a_catalog_model_is_described_before_it_is_pulled(cache: Cache) -> None:
    found = Models(cache=cache).describe("person-ssdlite", {})
    assert found.path == ""
    assert found.inputs == {"image_tensor": TensorSpec("u8", (1, 300, 300, 3))}
    assert found.outputs["detection_boxes"] == TensorSpec("f32", (1, 100, 4))
    assert found.shapes == {"image_tensor": [1, 300, 300, 3]}
    assert found.detection
    assert found.detection.labels == ("person",)
    with pytest.raises(ModelError, match="Run `edgert models pull person-ssdlite`"):
        Models(cache=cache).resolve("person-ssdlite", pull=False)


def test_the_catalog_says_what_the_file_says(pulled_cache: Cache, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    models = Models(cache=pulled_cache)
    described = models.describe("person-ssdlite", {})
    read = signatures.Signatures(tmp_path)
    located = models.locate("person-ssdlite", pull=False)
    fixed = read.read(located, PERSON.shape)
    assert (fixed.inputs, fixed.outputs) == (described.inputs, described.outputs)
    assert read.read(located, {}).inputs == PERSON.inputs


def test_yolox_is_as_the_catalog_says(yolox_onnx: Path, cache: Cache, tmp_path: Path) -> None:
    pytest.importorskip("openvino")
    located = Models(cache=cache).locate(str(yolox_onnx), pull=False)
    read = signatures.Signatures(tmp_path).read(located, {})
    entry = load_catalog().model("yolox-nano")
    assert (read.inputs, read.outputs) == (entry.inputs, entry.outputs)
    assert located.entry is entry
    assert yolox_onnx.stat().st_size == entry.size_bytes


def test_other_shapes_are_read_from_the_file(pulled_cache: Cache) -> None:
    pytest.importorskip("openvino")
    shapes = {"image_tensor": [1, 320, 480, 3]}
    found = Models(cache=pulled_cache).describe("person-ssdlite", shapes)
    assert found.inputs == {"image_tensor": TensorSpec("u8", (1, 320, 480, 3))}
    assert found.shapes == shapes
    assert found.image is PERSON.handling.image


@pytest.mark.usefixtures("no_child")
def test_a_file_of_the_catalogs_checksum_is_that_model(pulled_cache: Cache, tmp_path: Path) -> None:
    source = Models(cache=pulled_cache).resolve("person-ssdlite")
    shutil.copy(source, tmp_path / "mine.pb")
    found = Models(tmp_path, cache=pulled_cache).describe("./mine.pb", {})
    assert (found.name, found.path) == ("person-ssdlite", str(tmp_path / "mine.pb"))
    assert found.detection == PERSON.handling.detection
    assert found.licence == "MIT"


def test_a_file_of_ones_own_is_read_once(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model_of(tmp_path / "own.onnx")
    first = Models(tmp_path, cache=cache).describe("own.onnx", {"x": [2, 4]})
    assert first.inputs == {"x": TensorSpec("f32", (2, 4))}
    assert first.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (first.format, first.image, first.detection) == ("onnx", None, None)
    monkeypatch.setattr(signatures, "READ", "nowhere:nothing")
    assert Models(tmp_path, cache=cache).describe("own.onnx", {"x": [2, 4]}) == first
    with pytest.raises(ModelError, match="ModuleNotFoundError"):
        Models(tmp_path, cache=cache).describe("own.onnx", {"x": [3, 4]})


def test_new_weights_of_an_ir_make_another_model(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text('<?xml version="1.0"?><net name="m" version="11"></net>')
    (tmp_path / "m.bin").write_bytes(b"old")
    models = Models(tmp_path, cache=cache)
    before = models.locate("m.xml", pull=False).sha256
    (tmp_path / "m.bin").write_bytes(b"new")
    assert models.locate("m.xml", pull=False).sha256 != before


def test_a_damaged_model_is_told(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08\x08" + b"\xff" * 100)
    with pytest.raises(ModelError):
        Models(tmp_path, cache=cache).describe("m.onnx", {})


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("person-ssdlit", "Did you mean 'person-ssdlite'? `edgert models list` names all"),
        ("nowhere/m.onnx", "nowhere/m.onnx'. Mend the path."),
        ("m.onnx", "there is no file"),
        (".", "is a directory"),
        ("https://h/m.onnx", "a URL needs the checksum of its file"),
        ("a\0b", "has a NUL character"),
        ("sample:bikes", "has no ending of a model"),
    ],
)
def test_what_is_no_model_is_told(model: str, said: str, cache: Cache, tmp_path: Path) -> None:
    if model == "sample:bikes":
        sample = tmp_path / "bikes.mp4"
        shutil.copy(resolve_media("sample:bikes"), sample)
        add(load_catalog().sample("bikes"), sample, cache)
    with pytest.raises(ModelError) as caught:
        Models(tmp_path, cache=cache).describe(model, {})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({"image_tensor": "300"}, "`shape` is not input -> list of sizes"),
        ({"image_tensor": [1, 0, 300, 3]}, "`shape` has a size below 1"),
        ({"picture": [1]}, "Run `edgert models pull person-ssdlite`"),
    ],
)
def test_shapes_that_cannot_be_are_told(shapes: dict, said: str, cache: Cache) -> None:
    with pytest.raises(ModelError) as caught:
        Models(cache=cache).describe("person-ssdlite", shapes)
    assert said in str(caught.value)


def test_shapes_that_do_not_fit_the_file_are_told(pulled_cache: Cache) -> None:
    pytest.importorskip("openvino")
    with pytest.raises(ModelError, match="picture"):
        Models(cache=pulled_cache).describe("person-ssdlite", {"picture": [1, 2]})


def test_a_url_is_a_model_once_it_is_pulled(
    site: Site, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(site.authority))
    content = model_of(tmp_path / "own.onnx").read_bytes()
    site.pages["/own.onnx"] = content
    url = f"{site.base}/own.onnx#sha256={hashlib.sha256(content).hexdigest()}"
    with pytest.raises(ModelError, match="Run `edgert models pull https://localhost"):
        Models(cache=cache).describe(url, {})
    found = Models(cache=cache, pull=True).describe(url, {"x": [1, 4]})
    assert found.inputs == {"x": TensorSpec("f32", (1, 4))}
    assert (found.name, found.format) == ("own.onnx", "onnx")
    assert Models(cache=cache).describe(url, {"x": [1, 4]}) == found


def test_a_sample_is_pulled_and_found(cache: Cache) -> None:
    said = []
    path = resolve_media("sample:bikes", on_progress=lambda *now: said.append(now), cache=cache)
    assert path.stat().st_size == load_catalog().sample("bikes").size_bytes
    assert said == [("bikes", 0, 0)]
    assert resolve_media("sample:bikes", cache=cache) == path


def test_what_is_no_sample_is_told(cache: Cache) -> None:
    with pytest.raises(MediaError, match="Samples are named sample:NAME"):
        resolve_media("bikes", cache=cache)
