"""Kinds of stage by name, by entry point and by class; three messages for three failures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from edgert.errors import UserError
from edgert.options import keys_of
from edgert.pipeline.shape import schema_of
from edgert.stages.base import Source, Stage
from edgert.stages.registry import BUILT_IN, Registry

MODULE = '''
from edgert.options import keys_of
from edgert.pipeline.shape import schema_of
from edgert.stages.base import Source, Stage, StageOptions

class Blur(Stage):
    """Blurs an image.

    More about it.
    """
    inputs = {"image": "image", "mask?": "image"}
    outputs = {"image": "image", "preview?": "image"}

class Clock(Source):
    outputs = {"time": "time"}

class Other:
    pass

def function():
    pass
'''


@pytest.fixture(autouse=True)
def _modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put modules of somebody else on the path, and forget them afterwards."""
    (tmp_path / "blurring.py").write_text(MODULE)
    (tmp_path / "broken_syntax.py").write_text("def f(:\n")
    (tmp_path / "broken_import.py").write_text("import no_such_library\n")
    (tmp_path / "broken_exit.py").write_text("import sys\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("blurring", "broken_")):
            del sys.modules[name]


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_built_in_kind_has_a_described_contract(kind: str) -> None:
    contract = Registry({}).contract(kind)
    assert contract.kind == kind
    assert contract.summary.endswith(".")
    assert contract.is_source == kind.startswith("source.")
    assert bool(contract.outputs) != kind.startswith("sink.")
    described = schema_of(contract.options).get("properties", {})
    assert [key for key in keys_of(contract.options) if not described[key].get("description")] == []


def test_a_contract_is_read_without_heavy_libraries() -> None:
    import subprocess

    code = (
        "import sys; from edgert.stages.registry import Registry; r = Registry({});"
        "[r.contract(k) for k in r.names()];"
        "print([m for m in ('cv2', 'av', 'onnx', 'onnxruntime', 'openvino') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_a_class_is_found_by_module_and_name() -> None:
    contract = Registry({}).contract("blurring:Blur")
    assert contract.summary == "Blurs an image."
    assert contract.inputs == {"image": "image", "mask": "image"}
    assert contract.outputs == {"image": "image", "preview": "image"}
    assert contract.optional == {"mask", "preview"}
    assert not contract.is_source
    assert Registry({}).contract("blurring:Clock").is_source


def test_kinds_of_packages_are_named_and_found() -> None:
    registry = Registry({"blur": "blurring:Blur", "infer": "blurring:Blur"})
    assert "blur" in registry.names()
    assert registry.names() == tuple(sorted({*BUILT_IN, "blur"}))
    assert issubclass(registry.stage_class("blur"), Stage)
    assert registry.stage_class("infer").__module__ == "edgert.stages.infer"


def test_an_installed_entry_point_is_a_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "blurring-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: blurring\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[edgert.stages]\nmine.clock = blurring:Clock\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry()
    assert "mine.clock" in registry.names()
    assert issubclass(registry.stage_class("mine.clock"), Source)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("source.vidoe", "there is no kind of stage 'source.vidoe'. Did you mean 'source.video'?"),
        ("", "there is no kind of stage ''. Kinds: filter.detections, "),
        ("blurring:", "'blurring:' is no class. Write package.module:Class."),
        (":Blur", "':Blur' is no class. Write package.module:Class."),
        (".blurring:Blur", "'.blurring:Blur' is no class"),
        ("a b:Blur", "'a b:Blur' is no class"),
        (
            "nowhere.at_all:Blur",
            "the module 'nowhere.at_all' cannot be imported: No module named 'nowhere'. "
            "Install its package here, or allow its folder (--allow-code, EDGERT_CODE).",
        ),
        (
            "broken_import:Blur",
            "the module 'broken_import' cannot be imported: No module named 'no_such_library'. "
            "Install its package",
        ),
        ("broken_syntax:Blur", "the module 'broken_syntax' cannot be imported: invalid syntax"),
        (
            "broken_syntax:Blur",
            "Mend the module; 'python -c \"import broken_syntax\"' shows where.",
        ),
        ("broken_exit:Blur", "the module 'broken_exit' cannot be imported: 3."),
        ("blurring:Blurr", "the module 'blurring' has no class 'Blurr'. Did you mean 'Blur'?"),
        ("blurring:Xyz", "the module 'blurring' has no class 'Xyz'."),
        ("blurring:Other", "'blurring:Other' is not a stage. Derive the class from edgert.stages"),
        ("blurring:function", "'blurring:function' is not a stage."),
    ],
)
def test_what_cannot_be_had_is_said_in_words(kind: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        Registry({}).contract(kind)
    assert message in str(caught.value)
