"""The options of ``source.video``: those of every video, and those of cameras alone."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from edgert.pipeline.refusal import refusal
from edgert.stages.base import StageOptions
from edgert.stages.source.address import SCHEMES, format_of, is_live, scheme_of
from edgert.stages.source.reconnect import Reconnect

Pixels = Annotated[int, Field(ge=1, le=16384)]
# An offline camera has no size yet; slots of this size take the pictures of most.
UNKNOWN_SIZE = (1920, 1080)
OF_FILES = ("loop",)
OF_CAMERAS = (
    *("transport", "credentials", "options", "open_timeout_s", "first_frame_timeout_s"),
    *("read_timeout_s", "reconnect", "decoder"),
)
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class VideoOptions(StageOptions):
    """Options of ``source.video``."""

    uri: str = Field(
        min_length=1,
        description="A video file, relative to the pipeline file, or `sample:NAME`; or a camera: "
        "`rtsp://...`, `http://...` (MJPEG), `/dev/video0`, `/dev/v4l/by-id/...`.",
    )
    max_size: tuple[Pixels, Pixels] | None = Field(
        None,
        description="Largest `[width, height]` handed on; larger frames are scaled down and "
        "counted. The video's own size where it is not given; of a camera 1920x1080.",
    )
    loop: int = Field(1, ge=1, description="How many times the file is played.")
    threads: int = Field(1, ge=1, le=64, description="Threads of the decoder.")
    format: str | None = Field(
        None,
        min_length=1,
        description="Camera: FFmpeg's demuxer or device (`v4l2`, `mpegts`, `lavfi`, ...) where "
        "the URI does not tell it. With it, any URI is a live one.",
    )
    options: dict[str, str | int | float] = Field(
        {},
        description="Camera: options of FFmpeg's demuxer or device, for example "
        "`{video_size: 1280x720, framerate: 30}`.",
    )
    transport: Literal["tcp", "udp"] = Field(
        "tcp", description="Camera: how the pictures of RTSP come."
    )
    credentials: str | None = Field(
        None,
        min_length=1,
        description="Camera: file with one line, `user:password`, that nobody else may read "
        "(mode 0600). Or write `${CAM_PASSWORD}` into the URI.",
    )
    open_timeout_s: Seconds = Field(
        5.0, description="Camera: it is gone if it has not answered within so many seconds."
    )
    first_frame_timeout_s: Seconds = Field(
        10.0, description="Camera: ... or has not sent a whole picture then."
    )
    read_timeout_s: Seconds = Field(
        5.0, description="Camera: ... or sends nothing for so many seconds."
    )
    reconnect: Reconnect = Field(
        Reconnect(), description="Camera: when it is tried again once it is gone."
    )
    decoder: str = Field(
        "software",
        pattern=r"^[a-z0-9]+$",
        description="Camera: decoder by name (`vaapi`, `v4l2m2m`, `cuda`, `qsv`, `rkmpp`, ...). "
        "Where it cannot be had, software decodes, and the log and the summary say so.",
    )

    @property
    def is_live(self) -> bool:
        """Whether the URI means a camera."""
        return is_live(self.uri, self.format)

    @model_validator(mode="after")
    def _suits_the_uri(self) -> VideoOptions:
        alien = OF_FILES if self.is_live else OF_CAMERAS
        given = [f"`{name}`" for name in alien if name in self.model_fields_set]
        if given:
            what = "a file, which this camera is not" if self.is_live else "a camera, not of a file"
            raise refusal(f"{', '.join(given)}: of {what}", f"Leave out {', '.join(given)}")
        if self.is_live:
            self._check_address()
        scheme = self.uri.partition(":")[0].lower()
        if not self.is_live and scheme != self.uri.lower() and scheme in SCHEMES:
            fault = f"two slashes are missing after {scheme}: so it would be a file"
            raise refusal(fault, f"Write {scheme}://HOST/PATH")
        return self

    def _check_address(self) -> None:
        if format_of(self.uri, self.format) is None:
            raise refusal(
                f"{scheme_of(self.uri)}:// alone does not say what comes",
                f"Use {', '.join(SCHEMES)}, or say with `format:` how FFmpeg opens it",
            )
        if scheme_of(self.uri) in SCHEMES:
            self._check_host()
        if any(sign.isspace() for sign in self.uri) and "://" in self.uri:
            raise refusal("the URL has a blank in it", "Write %20")
        if self.credentials is not None and "://" not in self.uri:
            raise refusal("`credentials` belong to a URL", "Leave out `credentials`")

    def _check_host(self) -> None:
        mend = "In a user or password write @ as %40, / as %2F and : as %3A"
        try:
            parts = urlsplit(self.uri)
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise refusal("the URL's host and port cannot be told", mend) from None
        if not host:
            raise refusal("the URL names no host", f"Write {parts.scheme}://HOST/PATH")
