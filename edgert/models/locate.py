"""What a model is given as: a name of the catalog, a path, or a URL with its checksum."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from edgert.errors import ModelError
from edgert.models.cache import Cache
from edgert.models.catalog import Catalog, Item, ModelEntry
from edgert.models.formats import FORMATS, files_of, format_of, named_by
from edgert.models.pull import OnProgress, find_item, is_url, place_of, pull
from edgert.paths import below


@dataclass(frozen=True, slots=True)
class Located:
    """A model and where it is.

    Attributes:
        given: As the user gave it.
        path: The file, or the folder of a SavedModel; None where it has still to be pulled.
        sha256: Checksum of the file. Of several (OpenVINO IR, Paddle, SavedModel, ONNX with its
            weights beside it) the checksum of all their checksums: new weights, another model.
        format: A value of ``formats.FORMATS``, or ``formats.SAVED_MODEL``; empty where a URL has
            still to be pulled.
        entry: The catalog's entry, by name or because the file has its checksum.
    """

    given: str
    path: Path | None
    sha256: str
    format: str
    entry: ModelEntry | None

    @property
    def name(self) -> str:
        """Name of the catalog, or of the file."""
        if self.entry:
            return self.entry.name
        return self.path.name if self.path else self.given

    @property
    def place(self) -> str:
        """With what an error about it begins."""
        return f"model '{self.given}'"

    def need_path(self) -> Path:
        """Return the file.

        Raises:
            ModelError: It has not been pulled yet.
        """
        if self.path is None:
            raise ModelError(
                self.place, "is not in the cache yet", f"Run `edgert models pull {self.given}`"
            )
        return self.path


@dataclass(frozen=True, slots=True)
class Locator:
    """Finds models.

    Attributes:
        catalog: What is known by name.
        cache: Where pulled files are.
        folder: Folder that relative paths start from.
    """

    catalog: Catalog
    cache: Cache
    folder: Path

    def locate(self, model: str, on_progress: OnProgress | None) -> Located:
        """Find a model; pull it where ``on_progress`` is given and it is not in the cache.

        Raises:
            UserError: There is no such model, or it is not a model, or cannot be pulled.
        """
        if is_url(model) or (model in self.catalog.models) or not self._is_path(model):
            return self._from_item(model, find_item(model, self.catalog), on_progress)
        return self._from_path(model)

    def _is_path(self, model: str) -> bool:
        if "\0" in model:
            raise ModelError("model", "the name has a NUL character in it")
        looks_so = "/" in model or Path(model).suffix.lower() in FORMATS
        try:
            return looks_so or (self.folder / model).exists()
        except OSError:  # whoever reads it says why
            return True

    def _from_item(self, model: str, item: Item, on_progress: OnProgress | None) -> Located:
        path = (
            pull(item, self.cache, on_progress)
            if on_progress
            else self.cache.find(item.sha256, item.filename)
        )
        entry = item if isinstance(item, ModelEntry) else self.catalog.model_of(item.sha256)
        known: str = entry.format if entry else ""
        if path and not entry:
            known = format_of(path, place_of(item))
        return Located(model, path, item.sha256, known, entry)

    def _from_path(self, model: str) -> Located:
        path = named_by(below(self.folder, model))
        place = f"model '{model}'"
        try:
            known = format_of(path, place)
            digests = [self.cache.digests.sha256(file) for file in files_of(path, place)]
        except OSError as error:
            raise ModelError(place, f"cannot read it: {error.strerror}") from None
        sha256 = digests[0]
        if len(digests) > 1:
            sha256 = hashlib.sha256("".join(digests).encode()).hexdigest()
        return Located(model, path, sha256, known, self.catalog.model_of(sha256))
