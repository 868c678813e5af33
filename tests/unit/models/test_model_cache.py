"""The cache: whole files only, whatever happens to them or to those who fill it."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from edgert.errors import ModelError, ResourceError
from edgert.models import digests
from edgert.models.cache import Cache, cache_root

DATA = b"the model"
SHA = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def fill(cache: Cache, data: bytes = DATA) -> Path:
    with cache.workspace() as folder:
        (folder / "f").write_bytes(data)
        return cache.put(folder / "f", SHA, "m.onnx", "model 'm'")


def test_where_it_is() -> None:
    home = Path("~/.cache/edgert").expanduser()
    assert cache_root({"EDGERT_CACHE": "/c", "XDG_CACHE_HOME": "/x"}) == Path("/c")
    assert cache_root({"XDG_CACHE_HOME": "/x"}) == Path("/x/edgert")
    assert cache_root({"XDG_CACHE_HOME": "relative"}) == home
    assert cache_root({}) == home


def test_no_home_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("os.getuid", lambda: 4_000_000)
    with pytest.raises(ResourceError, match="has no home directory"):
        cache_root({})


def test_what_was_put_in_is_found(cache: Cache) -> None:
    assert cache.find(SHA, "m.onnx") is None
    path = fill(cache)
    assert cache.find(SHA, "m.onnx") == path == cache.root / "models" / SHA / "m.onnx"
    assert path.read_bytes() == DATA


def test_a_wrong_checksum_is_refused_and_nothing_appears(cache: Cache) -> None:
    with pytest.raises(ModelError) as caught:
        fill(cache, b"another")
    other = hashlib.sha256(b"another").hexdigest()
    assert f"wrong checksum: expected sha256 {SHA}, found {other}" in str(caught.value)
    assert cache.find(SHA, "m.onnx") is None


def test_a_file_is_hashed_once(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = []
    real = digests.hash_file
    monkeypatch.setattr(digests, "hash_file", lambda path: hashed.append(path) or real(path))
    path = fill(cache)
    assert cache.find(SHA, "m.onnx")
    assert Cache(cache.root).find(SHA, "m.onnx")
    assert hashed == [path]


def test_a_changed_file_is_noticed_even_if_its_time_was_set_back(cache: Cache) -> None:
    path = fill(cache)
    before = path.stat()
    path.write_bytes(DATA.upper())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cache.find(SHA, "m.onnx") is None


def test_a_spoiled_stamp_costs_a_hash_and_no_more(cache: Cache) -> None:
    path = fill(cache)
    for stamp in (cache.root / "stamps").iterdir():
        stamp.write_bytes(b"{spoiled")
    assert cache.find(SHA, "m.onnx") == path


def test_stamps_that_cannot_be_written_do_not_matter(cache: Cache) -> None:
    path = fill(cache)
    for stamp in (cache.root / "stamps").iterdir():
        stamp.unlink()
    (cache.root / "stamps").rmdir()
    (cache.root / "stamps").write_text("in the way")
    assert cache.find(SHA, "m.onnx") == path


def test_a_cache_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ResourceError) as caught:
        fill(Cache(tmp_path / "file"))
    assert f"cache: cannot write to '{tmp_path}/file': Not a directory" in str(caught.value)
    assert "EDGERT_CACHE" in str(caught.value)


def test_a_workspace_is_gone_afterwards(cache: Cache) -> None:
    with cache.workspace() as folder:
        (folder / "f").write_text("x")
    assert not folder.exists()


HOLDER = """
import sys
from pathlib import Path
from edgert.models.cache import Cache
with Cache(Path(sys.argv[1])).workspace() as folder:
    (folder / 'half').write_text('half')
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_one_left_is_removed_and_a_living_ones_is_not(cache: Cache) -> None:
    command = [sys.executable, "-c", HOLDER, str(cache.root)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout
        folder = Path(holder.stdout.readline().strip())
        with cache.workspace():
            assert (folder / "half").exists()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert (folder / "half").exists()
    with cache.workspace():
        assert not folder.exists()
