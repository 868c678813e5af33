"""What a `uri` of a source means: a file, or something live and how FFmpeg opens it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from edgert.errors import ResourceError
from edgert.redact import redact

SAMPLE = "sample:"
V4L2 = "v4l2"
V4L2_FOLDERS = ("/dev/video", "/dev/v4l/")
MAX_CREDENTIALS_BYTES = 4096
# Scheme -> the demuxer, and every protocol that FFmpeg may use for it: a hostile camera must not
# be able to have it open files.
SCHEMES = {
    "rtsp": ("rtsp", "rtsp,rtp,udp,tcp"),
    "rtsps": ("rtsp", "rtsp,rtp,udp,tcp,tls,srtp"),
    "http": ("mpjpeg", "http,tcp,httpproxy"),
    "https": ("mpjpeg", "http,https,tls,tcp,httpproxy"),
}


@dataclass(frozen=True, slots=True)
class Address:
    """Something live, as FFmpeg wants it.

    Attributes:
        url: What is opened, with credentials: never to be shown.
        format: Name of FFmpeg's demuxer or device.
        options: Of the demuxer and its protocols.
        shown: What may be shown.
    """

    url: str = field(repr=False)
    format: str
    options: dict[str, str]
    shown: str


def is_live(uri: str, format_: str | None) -> bool:
    """Whether a URI means something live: a URL, a device, or whatever a device's format opens."""
    if format_ is not None:
        return True
    return not uri.startswith(SAMPLE) and ("://" in uri or uri.startswith(V4L2_FOLDERS))


def scheme_of(uri: str) -> str:
    """Return the scheme of a URL, in small letters; empty where it has none."""
    return uri.partition("://")[0].lower() if "://" in uri else ""


def format_of(uri: str, format_: str | None) -> str | None:
    """Return the demuxer or device that opens a live URI; None where it must be told."""
    if format_ is not None:
        return format_
    if uri.startswith(V4L2_FOLDERS):
        return V4L2
    return SCHEMES.get(scheme_of(uri), (None, ""))[0]


def with_credentials(url: str, file: Path, place: str) -> str:
    """Return a URL with the `user:password` that stands in a file, in place of its own.

    Raises:
        ResourceError: The file cannot be read, can be read by others, or holds something else.
    """
    where = f"{place}, credentials '{file}'"
    user, colon, password = _read(file, where).partition(":")
    if not (user and colon):
        raise ResourceError(where, "holds no credentials", "write one line, user:password")
    scheme, _, rest = url.partition("://")
    host = rest.rpartition("@")[2]
    return f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@{host}"


def _read(file: Path, where: str) -> str:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        said = (error.strerror or str(error)).lower()
        raise ResourceError(where, said, "check `credentials`") from error
    with os.fdopen(fd, "rb") as opened:
        found = os.fstat(fd)  # of what is open: another may be there by now
        if not stat.S_ISREG(found.st_mode):
            raise ResourceError(where, "is not a file", "check `credentials`")
        if found.st_mode & 0o077:
            fault = f"may be read by others (mode {stat.S_IMODE(found.st_mode):04o})"
            raise ResourceError(where, fault, f"chmod 600 '{file}'")
        return opened.read(MAX_CREDENTIALS_BYTES).decode(errors="replace").strip("\r\n")


def address_of(uri: str, format_: str | None, transport: str, extra: Mapping[str, str]) -> Address:
    """Return how FFmpeg is to open a live URI.

    Args:
        uri: With credentials, where it needs any.
        format_: Name of the demuxer or device; None for the scheme's own.
        transport: ``tcp`` or ``udp``: how the pictures of RTSP come.
        extra: Options that stand in the file: they go before ours.
    """
    demuxer = format_of(uri, format_) or ""
    scheme = scheme_of(uri)
    options: dict[str, str] = {}
    if scheme:
        protocols = SCHEMES.get(scheme, ("", f"{scheme},udp,tcp"))[1]
        options["protocol_whitelist"] = protocols
    if demuxer in ("rtsp", "mpjpeg"):
        # What is to be known stands in the first picture; to look for it beforehand costs a second.
        options |= {"probesize": "32", "analyzeduration": "0"}
    if demuxer == "rtsp":
        options |= {"rtsp_transport": transport, "allowed_media_types": "video"}
    return Address(uri, demuxer, {**options, **extra}, redact(uri))
