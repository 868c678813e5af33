"""What both devices are fed with: pictures as the model wants them, arrays, or a seed."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from edgert import isolate
from edgert.coverage import values
from edgert.coverage.suites.models import Ready
from edgert.coverage.values import Array, Value
from edgert.errors import MediaError, UserError

_PICTURES_WITHIN_S = 600.0
_ARRAYS = ".npz"
SEEDED = "seeded"


class Fed(msgspec.Struct, frozen=True):
    """One set of inputs.

    Attributes:
        name: The file's name, or ``seeded``.
        file: The inputs (``values.py``).
        header: Of a picture: its size, and the way back from the model's input to its pixels.
    """

    name: str
    file: str
    header: dict[str, Any] = {}


class Feed(msgspec.Struct, frozen=True):
    """All of them.

    Attributes:
        said: Where they came from, in words.
        samples: Each set.
        notes: What has to be known: pictures that could not be read.
    """

    said: str
    samples: list[Fed]
    notes: list[str] = []


class Pictures(msgspec.Struct, frozen=True):
    """How pictures are made inputs.

    Attributes:
        model: As ``models.describe`` takes it.
        shapes: Sizes of inputs that it leaves open.
        given: Options of ``preprocess.image`` that go before the model's own metadata.
        most: How many at most.
    """

    model: str
    shapes: dict[str, list[int]]
    given: dict[str, Any]
    most: int


def feed_of(path: Path | None, ready: Ready, pictures: Pictures, folder: Path) -> Feed:
    """Write the inputs of every sample.

    Args:
        path: Images, or arrays; None for seeded ones.
        ready: The model, with its seeded inputs.
        pictures: How pictures are made inputs.
        folder: For the files.

    Raises:
        UserError: There is nothing there, or it does not fit the model.
    """
    if path is None:
        said = "drawn from a seed: they show whether the devices agree, not whether the model works"
        return Feed(said, [Fed(SEEDED, ready.work.inputs)])
    files = _array_files(path)
    if not files:
        return _from_pictures(path, ready, pictures, folder)
    kept = files[: pictures.most]
    drawn = values.load(Path(ready.work.inputs))
    samples = []
    for number, file in enumerate(kept):
        target = folder / f"sample-{number}.npz"
        values.save(target, read_arrays(file, drawn))
        samples.append(Fed(file.name, str(target)))
    return Feed(str(path), samples, _left_out(len(files), len(kept)))


def read_arrays(file: Path, wanted: Mapping[str, Value]) -> dict[str, Value]:
    """Read a model's inputs from an ``.npz`` file.

    Args:
        file: The file.
        wanted: Inputs of the model, of the shapes and types that it takes.

    Raises:
        MediaError: It is none, or lacks an input, or one does not fit.
    """
    place = f"--inputs {file}"
    try:
        # Opened here: numpy leaves a file open that it takes for an archive, and that is none.
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as found:
            arrays: dict[str, Array] = {name: found[name] for name in found.files}
    except (OSError, ValueError, TypeError, EOFError, MemoryError, zipfile.BadZipFile) as error:
        said = " ".join(str(error).split())
        raise MediaError(place, f"cannot be read: {said}", "Give what numpy.savez wrote") from error
    names = ", ".join(wanted)
    for name in arrays:
        if name not in wanted:
            raise MediaError(place, f"the model has no input '{name}'", f"Its inputs: {names}")
    return {name: _fitting(name, arrays, spec, place) for name, spec in wanted.items()}


def _fitting(name: str, arrays: Mapping[str, Array], wanted: Value, place: str) -> Array:
    if name not in arrays:
        raise MediaError(place, f"it has no array '{name}'", "Give every input of the model")
    array, like = arrays[name], np.asarray(wanted)
    if like.dtype.kind == "V" or like.dtype.name in _BY_BYTES:
        array = array.view(like.dtype) if array.dtype.itemsize == like.dtype.itemsize else array
    if array.shape != like.shape or array.dtype != like.dtype:
        fault = f"'{name}' is {array.dtype.name} {list(array.shape)}"
        raise MediaError(place, fault, f"The model takes {like.dtype.name} {list(like.shape)}")
    return array


_BY_BYTES = ("bfloat16", "int4", "uint4")


def _array_files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(each for each in path.iterdir() if each.suffix.lower() == _ARRAYS)
    return [path] if path.suffix.lower() == _ARRAYS else []


def _from_pictures(path: Path, ready: Ready, pictures: Pictures, folder: Path) -> Feed:
    place = f"--inputs {path}"
    if not path.exists():
        mend = "Name a directory of images, or an .npz file"
        raise UserError(place, "no such file or directory", mend)
    found = isolate.call(
        "edgert.coverage.comparison.pictures:prepare",
        {
            "path": str(path.absolute()),
            "drawn": ready.work.inputs,
            "folder": str(folder),
            **msgspec.to_builtins(pictures),
        },
        _PICTURES_WITHIN_S,
        place,
        MediaError,
    )
    samples = msgspec.convert(found["samples"], list[Fed])
    if not samples:
        raise MediaError(place, f"no image could be read: {found['lost'][0]}")
    notes = [f"left out, for it could not be read: {said}" for said in found["lost"]]
    return Feed(str(path), samples, [*notes, *_left_out(found["files"], found["tried"])])


def _left_out(files: int, tried: int) -> list[str]:
    return [f"the first {tried} of {files} samples; --most takes more"] if tried < files else []
