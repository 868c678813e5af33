"""The options of ``source.video``: those of every video, and those of cameras alone."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from annotated_types import Interval

from edgert.options import Before, Finite, Pixels, Refusal, option
from edgert.stages.base import StageOptions
from edgert.stages.source.address import SCHEMES, format_of, is_live, scheme_of
from edgert.stages.source.reconnect import Reconnect, or_off

# An offline camera has no size yet; slots of this size take the pictures of most.
UNKNOWN_SIZE = (1920, 1080)
OF_FILES = ("loop",)
OF_CAMERAS = (
    *("transport", "credentials", "options", "open_timeout_s", "first_frame_timeout_s"),
    *("read_timeout_s", "reconnect", "decoder"),
)
Seconds = Annotated[float, Interval(gt=0, le=3600), Finite()]


class VideoOptions(StageOptions):
    """Options of ``source.video``."""

    uri: str = option(
        min_length=1,
        description="A video file, relative to the pipeline file, or `sample:NAME`; or a camera: "
        "`rtsp://...`, `http://...` (MJPEG), `/dev/video0`, `/dev/v4l/by-id/...`.",
    )
    max_size: tuple[Pixels, Pixels] | None = option(
        default=None,
        description="Largest `[width, height]` handed on; larger frames are scaled down and "
        "counted. The video's own size where it is not given; of a camera 1920x1080.",
    )
    loop: int = option(default=1, ge=1, description="How many times the file is played.")
    threads: int = option(default=1, ge=1, le=64, description="Threads of the decoder.")
    format: str | None = option(
        default=None,
        min_length=1,
        description="Camera: FFmpeg's demuxer or device (`v4l2`, `mpegts`, `lavfi`, ...) where "
        "the URI does not tell it. With it, any URI is a live one.",
    )
    options: dict[str, str | int | float] = option(
        default={},
        description="Camera: options of FFmpeg's demuxer or device, for example "
        "`{video_size: 1280x720, framerate: 30}`.",
    )
    transport: Literal["tcp", "udp"] = option(
        default="tcp", description="Camera: how the pictures of RTSP come."
    )
    credentials: str | None = option(
        default=None,
        min_length=1,
        description="Camera: file with one line, `user:password`, that nobody else may read "
        "(mode 0600). Or write `${CAM_PASSWORD}` into the URI.",
    )
    open_timeout_s: Seconds = option(
        default=5.0, description="Camera: it is gone if it has not answered within so many seconds."
    )
    first_frame_timeout_s: Seconds = option(
        default=10.0, description="Camera: ... or has not sent a whole picture then."
    )
    read_timeout_s: Seconds = option(
        default=5.0, description="Camera: ... or sends nothing for so many seconds."
    )
    reconnect: Annotated[Reconnect, Before(or_off)] = option(
        default=Reconnect(), description="Camera: when it is tried again once it is gone."
    )
    decoder: str = option(
        default="software",
        pattern=r"^[a-z0-9]+$",
        description="Camera: decoder by name (`vaapi`, `v4l2m2m`, `cuda`, `qsv`, `rkmpp`, ...). "
        "Where it cannot be had, software decodes, and the log and the summary say so.",
    )

    @property
    def is_live(self) -> bool:
        """Whether the URI means a camera."""
        return is_live(self.uri, self.format)

    def check(self, given: frozenset[str]) -> None:
        """Refuse keys of cameras beside a file, the other way round, and bad addresses."""
        alien = [f"`{key}`" for key in (OF_FILES if self.is_live else OF_CAMERAS) if key in given]
        if alien:
            what = "a file, which this camera is not" if self.is_live else "a camera, not of a file"
            raise Refusal(f"{', '.join(alien)}: of {what}", f"Leave out {', '.join(alien)}")
        if self.is_live:
            self._check_address()
        scheme = self.uri.partition(":")[0].lower()
        if not self.is_live and scheme != self.uri.lower() and scheme in SCHEMES:
            fault = f"two slashes are missing after {scheme}: so it would be a file"
            raise Refusal(fault, f"Write {scheme}://HOST/PATH")

    def _check_address(self) -> None:
        if format_of(self.uri, self.format) is None:
            raise Refusal(
                f"{scheme_of(self.uri)}:// alone does not say what comes",
                f"Use {', '.join(SCHEMES)}, or say with `format:` how FFmpeg opens it",
            )
        if scheme_of(self.uri) in SCHEMES:
            self._check_host()
        if any(sign.isspace() for sign in self.uri) and "://" in self.uri:
            raise Refusal("the URL has a blank in it", "Write %20")
        if self.credentials is not None and "://" not in self.uri:
            raise Refusal("`credentials` belong to a URL", "Leave out `credentials`")

    def _check_host(self) -> None:
        mend = "In a user or password write @ as %40, / as %2F and : as %3A"
        try:
            parts = urlsplit(self.uri)
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise Refusal("the URL's host and port cannot be told", mend) from None
        if not host:
            raise Refusal("the URL names no host", f"Write {parts.scheme}://HOST/PATH")
