"""What ``plan`` asks about models and samples, without any library of a vendor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from edgert.errors import MediaError, ModelError
from edgert.models.cache import Cache
from edgert.models.catalog import SAMPLE_PREFIX, Catalog, ModelEntry, load_catalog
from edgert.models.describe import ModelDescription
from edgert.models.locate import Located, Locator
from edgert.models.pull import OnProgress, pull, say_nothing
from edgert.models.signatures import Signatures


class Models:
    """Describes models by catalog name, path, or URL with its checksum.

    Implements ``describe.ModelReader``.
    """

    def __init__(
        self,
        folder: Path | str = ".",
        *,
        pull: bool = False,
        on_progress: OnProgress = say_nothing,
        cache: Cache | None = None,
        catalog: Catalog | None = None,
    ) -> None:
        """Make a reader.

        Args:
            folder: Folder that relative paths start from.
            pull: Whether ``describe`` pulls what is missing; else such a model has no path yet.
            on_progress: Called while something is pulled.
            cache: Where pulled files are; the user's by default.
            catalog: What is known by name; the package's by default.
        """
        self.cache = cache or Cache()
        self._pull = pull
        self._on_progress = on_progress
        self._locator = Locator(catalog or load_catalog(), self.cache, Path(folder))
        self._signatures = Signatures(self.cache.root / "signatures")
        self._described: dict[bytes, ModelDescription] = {}

    def describe(self, model: str, shapes: Mapping[str, Any]) -> ModelDescription:
        """Describe a model whose open dimensions are fixed by ``shapes``.

        Args:
            model: Catalog name, path, or ``https://...#sha256=HEX``.
            shapes: Sizes by input name; the catalog's where empty.

        Raises:
            UserError: There is no such model, it is damaged or no model, or ``shapes`` do not
                fit.
        """
        fixed = checked_shapes(shapes, f"model '{model}'")
        # Three stages ask about the same model; it is read once.
        key = msgspec.json.encode([model, sorted(fixed.items())])
        if key not in self._described:
            self._described[key] = self._describe(self.locate(model, pull=self._pull), fixed)
        return self._described[key]

    def read_ahead(self, model: str, several: Sequence[Mapping[str, Any]]) -> None:
        """Read a model in several shapes at once, each of which ``describe`` is to be asked about.

        Raises:
            UserError: There is no such model.
        """
        located = self.locate(model, pull=self._pull)
        known = located.entry.shape if located.entry else {}
        fixed = [{**known, **checked_shapes(one, located.place)} for one in several]
        self._signatures.read_ahead(located, fixed)

    def forget(self) -> None:
        """Forget what was described: files may have been changed since."""
        self._described.clear()

    def resolve(
        self, model: str, *, pull: bool = True, on_progress: OnProgress | None = None
    ) -> Path:
        """Return the file of a model.

        Args:
            model: Catalog name, path, or ``https://...#sha256=HEX``.
            pull: Whether to fetch it where it is not in the cache.
            on_progress: Called while it is pulled.

        Raises:
            UserError: There is no such model, or it is not here and cannot be pulled.
        """
        return self.locate(model, pull=pull, on_progress=on_progress).need_path()

    def locate(self, model: str, *, pull: bool, on_progress: OnProgress | None = None) -> Located:
        """Find a model's file, format and catalog entry.

        Raises:
            UserError: There is no such model, or it cannot be pulled.
        """
        return self._locator.locate(model, (on_progress or self._on_progress) if pull else None)

    def _describe(self, model: Located, shapes: dict[str, list[int]]) -> ModelDescription:
        entry = model.entry
        if entry and _are_defaults(shapes, entry):
            inputs, outputs, fixed = entry.fixed_inputs, entry.outputs, dict(entry.shape)
        else:
            fixed = {**(entry.shape if entry else {}), **shapes}
            signature = self._signatures.read(model, fixed)
            inputs, outputs = signature.inputs, signature.outputs
        return ModelDescription(
            name=model.name,
            path=str(model.path or ""),
            sha256=model.sha256,
            format=model.format,
            inputs=inputs,
            outputs=outputs,
            shapes=fixed,
            licence=entry.licence if entry else "",
            **(msgspec.structs.asdict(entry.handling) if entry else {}),
        )


def resolve_media(
    uri: str, *, on_progress: OnProgress = say_nothing, cache: Cache | None = None
) -> Path:
    """Return the file of ``sample:NAME``, pulled where it is not in the cache.

    Raises:
        UserError: There is no such sample, or it cannot be pulled.
    """
    if not uri.startswith(SAMPLE_PREFIX):
        raise MediaError(f"'{uri}'", "is not a sample", f"Samples are named {SAMPLE_PREFIX}NAME")
    return pull(load_catalog().sample(uri), cache or Cache(), on_progress)


def checked_shapes(shapes: Mapping[str, Any], place: str) -> dict[str, list[int]]:
    """Return ``shapes`` as input -> sizes.

    Raises:
        ModelError: They are something else.
    """
    try:
        checked = msgspec.convert(dict(shapes), dict[str, list[int]])
    except msgspec.ValidationError as error:
        raise ModelError(place, f"`shape` is not input -> list of sizes: {error}") from None
    if any(size < 1 for sizes in checked.values() for size in sizes):
        raise ModelError(place, "`shape` has a size below 1", "Give positive sizes")
    return checked


def _are_defaults(shapes: Mapping[str, list[int]], entry: ModelEntry) -> bool:
    """Whether the outputs that the catalog tells are those of these shapes."""
    fixed = {name: list(spec.shape) for name, spec in entry.fixed_inputs.items()}
    return all(fixed.get(name) == sizes for name, sizes in shapes.items())
