"""One file comes out of an archive, and nothing else goes anywhere."""

from __future__ import annotations

import io
import stat
import tarfile
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.errors import ModelError
from edgert.models import archive as archive_module
from edgert.models.archive import extract_member
from tests.unit.models.serving import make_zip

NASTY = [
    "../outside",
    "/tmp/outside",
    "a/../../outside",
    "..\\outside",
    "C:\\outside",
    "a//b",
    "./model",
    "a\n",
    "",
]
NAMES = st.sampled_from(NASTY) | st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), min_size=1, max_size=20
)


def make_tar(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


MAKERS = pytest.mark.parametrize("make", [make_zip, make_tar])


def extract(archive: Path, member: str, limit_bytes: int = 1000) -> bytes:
    into = archive.with_name("taken")
    extract_member(archive, member, into, limit_bytes, "model 'm'")
    return into.read_bytes()


@MAKERS
def test_the_one_file_is_taken(make, tmp_path: Path) -> None:
    archive = make(tmp_path / "a", {"x/other": b"no", "x/model.onnx": b"yes"})
    assert extract(archive, "x/model.onnx") == b"yes"


@MAKERS
def test_a_missing_file_is_told(make, tmp_path: Path) -> None:
    archive = make(tmp_path / "a", {"other": b"no"})
    with pytest.raises(ModelError, match="model 'm': there is no 'model' in the archive"):
        extract(archive, "model")


@MAKERS
def test_a_larger_file_is_refused_before_it_is_unpacked(make, tmp_path: Path) -> None:
    archive = make(tmp_path / "a", {"model": b"\0" * 30_000_000})
    assert archive.stat().st_size < 100_000
    with pytest.raises(ModelError, match="is larger than the 1000 bytes"):
        extract(archive, "model")
    assert (tmp_path / "taken").stat().st_size <= 1000


def test_a_tar_of_much_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "TAR_LIMIT_BYTES", 5000)
    archive = make_tar(tmp_path / "a", {"bomb": b"\0" * 5001, "model": b"yes"})
    with pytest.raises(ModelError, match="unpacks to more than 8 GiB"):
        extract(archive, "model")


def test_a_zip_that_lies_about_the_size_is_refused(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a", {"model": b"\0" * 5000})
    lie = archive.read_bytes().replace((5000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    archive.write_bytes(lie)
    with pytest.raises(ModelError, match=r"the archive is damaged|is larger than"):
        extract(archive, "model")


def test_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    info = zipfile.ZipInfo("model")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(ModelError, match="not a regular file"):
        extract(path, "model")


def test_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("model", b"x" * 100)
    with pytest.raises(ModelError, match="compressed in an unknown way"):
        extract(path, "model")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, b"3"])
def test_a_special_file_in_a_tar_is_refused(kind: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    info = tarfile.TarInfo("model")
    info.type, info.linkname = kind, "/etc/passwd"
    with tarfile.open(path, "w") as archive:
        archive.addfile(info)
    with pytest.raises(ModelError, match="not a regular file"):
        extract(path, "model")


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 and no more"])
def test_what_is_no_archive_is_told(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="the archive is damaged"):
        extract(path, "model")


@MAKERS
def test_a_truncated_archive_is_told(make, tmp_path: Path) -> None:
    archive = make(tmp_path / "a", {"model": bytes(range(256)) * 3})
    archive.write_bytes(archive.read_bytes()[:200])
    with pytest.raises(ModelError, match="the archive is damaged"):
        extract(archive, "model")


@given(names=st.lists(NAMES, min_size=1, max_size=5, unique=True), asked=NAMES)
def test_nothing_is_written_but_the_file_asked_for(names: list[str], asked: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        inside = root / "a" / "b"
        inside.mkdir(parents=True)
        archive = make_zip(inside / "archive", {name: name.encode() for name in names})
        try:
            assert extract(archive, asked) == asked.encode()
        except ModelError:
            assert not (inside / "taken").exists()
        found = {str(path.relative_to(root)) for path in root.rglob("*")}
        assert found <= {"a", "a/b", "a/b/archive", "a/b/taken"}
