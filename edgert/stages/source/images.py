"""``source.images``: the images of a directory, a pattern or one file, as a stream."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from edgert import isolate
from edgert.errors import FrameLostError, MediaError
from edgert.options import Pixels, Refusal, option
from edgert.paths import below
from edgert.stages.base import Outputs, PlanContext, Ports, Source, StageContext, StageOptions
from edgert.stages.source.address import SAMPLE
from edgert.stages.source.drop_folder import DropFolder
from edgert.stages.source.files import find_images, refuse_hidden
from edgert.stages.source.video_options import UNKNOWN_SIZE
from edgert.tensor import IDENTITY, FrameHeader, PortSpec, image_port
from edgert.transport.address import Array
from edgert.wording import counted

if TYPE_CHECKING:
    from edgert.stages.source.loader import Loaded

PROBE = "edgert.stages.source.loader:probe_images"
PROBE_BUDGET_S = 20.0
PROBE_TIMEOUT_S = 40.0
NS = 1_000_000_000


class ImagesOptions(StageOptions):
    """Options of ``source.images``."""

    uri: str = option(
        min_length=1,
        description="A directory of images (jpg, png, bmp, tiff, webp), a pattern such as "
        "`shots/*.png`, or one file, relative to the pipeline file; or `sample:NAME`. In natural "
        "order.",
    )
    recursive: bool = option(default=False, description="Also the folders below.")  # noqa: FBT003
    on_corrupt: Literal["skip", "pass", "fail"] = option(
        default="skip",
        description="A damaged image is lost with a reason (`skip`), handed on as far as it goes "
        "and marked partial where it is only truncated (`pass`), or ends the run (`fail`).",
    )
    loop: int = option(default=1, ge=1, description="How many times the images are played.")
    watch: bool = option(
        default=False,  # noqa: FBT003
        description="`uri` is a directory that images drop into: each one is read when it is "
        "whole, for as long as the pipeline runs. None is dropped. After a restart of its worker "
        "what is still there is read again.",
    )
    max_size: tuple[Pixels, Pixels] | None = option(
        default=None,
        description="Largest `[width, height]` handed on; larger images are scaled down and "
        "counted. The largest image's size where it is not given; with `watch` 1920x1080.",
    )

    def check(self, given: frozenset[str]) -> None:
        """Refuse to play what is watched more than once."""
        if self.watch and self.loop != 1:
            raise Refusal("a directory that is watched has no end to loop at", "Leave out `loop`")


class ImagesSource(Source):
    """Reads images in natural order: upright by EXIF, BGR of 8 bits, alpha dropped.

    Images have no time: ``pts_ns`` is the number of the image at one image a second.
    """

    outputs: ClassVar = {"image": "image"}
    options: ClassVar = ImagesOptions

    @classmethod
    def plan(
        cls, options: ImagesOptions, inputs: Ports, context: PlanContext
    ) -> dict[str, PortSpec]:
        """List the files, and size the slots by their headers, read in a child process."""
        path = _find(options.uri, context.folder)
        if options.watch:
            return {"image": _watched(path, options, context)}
        files = find_images(path, context.place, recursive=options.recursive)
        place = f"{context.place}, '{path}'"
        found = isolate.call(
            PROBE,
            {"paths": [str(file) for file in files], "place": place, "budget_s": PROBE_BUDGET_S},
            PROBE_TIMEOUT_S,
            place,
            MediaError,
        )
        width, height = options.max_size or (found["width"], found["height"])
        attributes = {"path": str(path), "files": len(files), "fps": 1.0, **found}
        return {"image": image_port(width, height, ("bgr24",), attributes)}

    def __init__(self, options: ImagesOptions, context: StageContext) -> None:
        super().__init__(options, context)
        self._port = context.outputs["image"]
        self._files: list[Path] = []
        self._next = 0
        self._loaded: Loaded | None = None
        self._size = (0, 0)
        self.scaled = 0
        self._dropped: DropFolder | None = None
        self.is_live = options.watch

    def open(self) -> None:
        """List the files and load what reads them."""
        from edgert.stages.source.loader import load_image

        self._load_image = load_image
        path = Path(self._port.attributes["path"])
        if self.settings.watch:
            self._dropped = self.feed = DropFolder(path, recursive=self.settings.recursive)
            return
        files = find_images(path, self.context.place, recursive=self.settings.recursive)
        self._files = files * self.settings.loop

    def resume(self, sequence: int) -> None:
        """Go on at an image."""
        self._next = sequence

    def grab(self) -> FrameHeader | None:
        """Read the next image; None after the last."""
        self._loaded = None
        number, path = self._next, self._next_file()
        if path is None:
            return None
        self._next += 1
        loaded = self._loaded = self._load(path)
        height, width = loaded.pixels.shape[:2]
        self._size = self._fit(width, height)
        self.context.copied_bytes += loaded.copied_bytes
        return FrameHeader(
            pts_ns=number * NS,
            captured_ns=time.monotonic_ns(),
            width=width,
            height=height,
            transform=self._transform(width, height),
            pixel_format="bgr24",
            colour_range="full",
            is_partial=loaded.is_partial,
        )

    def write(self, outputs: Outputs) -> None:
        """Write the image last grabbed into its slot."""
        if self._loaded is None:
            raise AssertionError("write() without an image that was grabbed")
        pixels = self._loaded.pixels
        width, height = self._size
        into = outputs["image"].tensor("bgr", (height, width, 3))
        if pixels.shape == into.shape:
            into[...] = pixels
        else:
            self._shrink(pixels, into)
        self._loaded = None

    def close(self) -> None:
        """Say how many images had to be scaled."""
        if self._dropped is not None:
            self._dropped.close()
        if self.scaled:
            self.context.log.warning(
                "%s: %s larger than the slot: scaled down",
                self.context.place,
                counted(self.scaled, "image"),
            )

    def _next_file(self) -> Path | None:
        if self._dropped is not None:
            return self._dropped.take()
        return self._files[self._next] if self._next < len(self._files) else None

    def _load(self, path: Path) -> Loaded:
        policy = self.settings.on_corrupt
        try:
            return self._load_image(path, allow_partial=policy == "pass")
        except FrameLostError as error:
            if policy != "fail":
                raise
            mend = "mend the file, or set `on_corrupt: skip`"
            raise MediaError(self.context.place, str(error), mend) from error

    def _fit(self, width: int, height: int) -> tuple[int, int]:
        max_height, max_width = self._port.tensors["bgr"].shape[:2]
        factor = min(1.0, (max_width or 0) / width, (max_height or 0) / height)
        if factor == 1:
            return width, height
        self.scaled += 1
        return max(1, int(width * factor)), max(1, int(height * factor))

    def _transform(
        self, width: int, height: int
    ) -> tuple[float, float, float, float, float, float]:
        if self._size == (width, height):
            return IDENTITY
        return (width / self._size[0], 0.0, 0.0, 0.0, height / self._size[1], 0.0)

    def _shrink(self, pixels: Array, into: Array) -> None:
        import cv2
        import numpy as np

        whole = np.ascontiguousarray(pixels)
        self.context.copied_bytes += whole.nbytes
        cv2.resize(whole, (into.shape[1], into.shape[0]), dst=into, interpolation=cv2.INTER_AREA)


def _watched(path: Path, options: ImagesOptions, context: PlanContext) -> PortSpec:
    refuse_hidden(path, context.place)
    if not path.is_dir():
        fault = "is not a directory" if path.exists() else "no such directory"
        raise MediaError(f"{context.place}, '{path}'", fault, "make it, or leave out `watch`")
    width, height = options.max_size or UNKNOWN_SIZE
    return image_port(width, height, ("bgr24",), {"path": str(path), "fps": 1.0})


def _find(uri: str, folder: str) -> Path:
    """Return the absolute path that a URI means, whatever is there."""
    if uri.startswith(SAMPLE):
        from edgert.models.reader import resolve_media

        return resolve_media(uri)
    return below(folder, uri)
