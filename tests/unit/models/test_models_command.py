"""``edgert models`` as its user meets it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgert.models.cache import Cache
from edgert.models.catalog import load_catalog

BIKES = load_catalog().sample("bikes")
PERSON = load_catalog().model("person-ssdlite")
COMMAND = [sys.executable, "-m", "edgert", "models"]


def models(cache: Path, *arguments: str | Path, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        env={**os.environ, "EDGERT_CACHE": str(cache), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def as_json(cache: Path, *arguments: str | Path) -> dict[str, Any]:
    code, out, err = models(cache, *arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_list_tells_what_is_cached(pulled_cache: Cache) -> None:
    listed = as_json(pulled_cache.root, "list")
    assert listed["schema"] == "edgert.models/1"
    cached = {item["name"]: item["cached"] for item in listed["items"]}
    assert cached["person-ssdlite"]
    assert not cached["yolox-nano"]
    assert "sample:bikes" in cached
    code, out, _ = models(pulled_cache.root, "list")
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert ["person-ssdlite", "MIT", "12.9", "MB", "yes"] in [line[:5] for line in lines]


def test_pull_prints_the_path_and_nothing_else(tmp_path: Path) -> None:
    code, out, err = models(tmp_path, "pull", "sample:bikes")
    assert (code, err) == (0, "")
    assert out == f"{Cache(tmp_path).find(BIKES.sha256, 'bikes.mp4')}\n"


def test_pull_draws_a_bar_on_a_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "EDGERT_CACHE": str(tmp_path), "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        [*COMMAND, "pull", "sample:carphone"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        drawn = b""
        while chunk := _read_terminal(ours):
            drawn += chunk
        assert process.stdout
        out = process.stdout.read().decode()
    os.close(ours)
    assert process.returncode == 0
    assert b"pulling carphone" in drawn
    assert out.endswith("carphone_pristine.mp4\n")


def _read_terminal(fd: int) -> bytes:
    try:
        return os.read(fd, 4096)
    except OSError:  # Linux says EIO once the other side has closed
        return b""


def test_an_unknown_name_is_told_before_anything_is_pulled(tmp_path: Path) -> None:
    code, out, err = models(tmp_path, "pull", "sample:bikes", "person-ssdlit")
    assert (code, out) == (2, "")
    assert err.startswith("model 'person-ssdlit': is neither a model of the catalog nor a file.")


def test_no_network_names_the_way_by_hand(tmp_path: Path) -> None:
    code, out, err = models(tmp_path, "pull", "sample:bikes", PIP_NO_INDEX="1")
    assert (code, out) == (2, "")
    assert "run `edgert models add sample:bikes FILE`" in err
    assert "Traceback" not in err


def test_add_puts_a_file_into_the_cache(tmp_path: Path, pulled_cache: Cache) -> None:
    file = pulled_cache.find(PERSON.sha256, PERSON.filename)
    assert file
    code, out, _ = models(tmp_path, "add", "person-ssdlite", file)
    assert (code, out) == (0, f"{Cache(tmp_path).find(PERSON.sha256, PERSON.filename)}\n")
    code, out, err = models(tmp_path, "add", "yolox-nano", file)
    assert (code, out) == (2, "")
    assert "wrong checksum" in err


def test_add_says_that_a_file_is_not_there(tmp_path: Path) -> None:
    code, out, err = models(tmp_path, "add", "yolox-nano", tmp_path / "nothing.onnx")
    assert (code, out) == (2, "")
    assert err.endswith(f"there is no file '{tmp_path / 'nothing.onnx'}'. Mend the path.\n")


def test_inspect_as_json_and_as_text(pulled_cache: Cache) -> None:
    pytest.importorskip("openvino")
    found = as_json(pulled_cache.root, "inspect", "person-ssdlite")
    assert next(iter(found)) == "schema"
    assert found["schema"] == "edgert.model/1"
    assert found["sha256"] == PERSON.sha256
    assert found["inputs"]["image_tensor"] == {"dtype": "u8", "shape": [1, 300, 300, 3]}
    code, out, _ = models(pulled_cache.root, "inspect", "person-ssdlite")
    assert code == 0
    assert "input       image_tensor u8[1,300,300,3]\n" in out
    assert "MACs        617 M (616952240)" in out


@pytest.mark.parametrize("shape", ["x", "=1", "x=", "x=1,a", "x=0,1"])
def test_a_shape_that_is_none_is_told(shape: str, tmp_path: Path) -> None:
    code, _, err = models(tmp_path, "inspect", "person-ssdlite", "--shape", shape)
    assert code == 2
    assert err == f"--shape '{shape}': does not say INPUT=N,N. Write images=1,3,640,640.\n"


def test_a_text_that_calls_itself_a_model_is_told(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_text("hello")
    code, out, err = models(tmp_path, "inspect", tmp_path / "m.onnx")
    assert (code, out) == (2, "")
    assert "is not onnx: no such file begins like this" in err
