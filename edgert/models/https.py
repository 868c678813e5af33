"""Fetch a file over https, bounded and never by way of plain http."""

from __future__ import annotations

import http.client
import ssl
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from edgert.errors import ModelError
from edgert.version import __version__

CHUNK_BYTES = 1 << 16
TIMEOUT_S = 30.0

# (bytes so far, bytes in all or 0 where that is not known)
OnBytes = Callable[[int, int], None]


class _HttpsOnly(urllib.request.HTTPRedirectHandler):
    """Follow redirects, but only to https."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        if urlsplit(newurl).scheme != "https":
            fp.close()
            raise URLError(f"it redirects to '{newurl}', which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def fetch_https(
    url: str,
    into: Path,
    limit_bytes: int,
    place: str,
    mend: str,
    on_bytes: OnBytes,
    context: ssl.SSLContext | None = None,
) -> None:
    """Fetch ``url`` to the file ``into``.

    Args:
        url: An https URL.
        into: The file to write.
        limit_bytes: More than this is refused.
        place: With which an error begins.
        mend: What to do where it cannot be fetched.
        on_bytes: Called with the progress.
        context: Whom to trust; None for the system's authorities.

    Raises:
        ModelError: The server cannot be reached, refuses, or sends too much or too little.
    """
    with _open(url, place, mend, context) as response, into.open("wb") as target:
        total = response.length or 0
        done = 0
        _check_size(total, limit_bytes, place)
        while chunk := _read(response, url, place, mend):
            done += len(chunk)
            _check_size(done, limit_bytes, place)
            target.write(chunk)
            on_bytes(done, total)
    if done < total:
        raise _broken(url, place, f"the connection ended after {done} of {total} bytes", mend)


def _open(
    url: str, place: str, mend: str, context: ssl.SSLContext | None
) -> http.client.HTTPResponse:
    opener = urllib.request.build_opener(
        _HttpsOnly, urllib.request.HTTPSHandler(context=context or ssl.create_default_context())
    )
    request = urllib.request.Request(url, headers={"User-Agent": f"edgert/{__version__}"})  # noqa: S310  catalog.py refuses all but https
    try:
        response: http.client.HTTPResponse = opener.open(request, timeout=TIMEOUT_S)
    except HTTPError as error:
        fault = f"'{url}' answers {error.code} {error.reason}"
        error.close()
        raise ModelError(place, fault, mend) from None
    except URLError as error:
        raise _broken(url, place, error.reason, mend) from None
    except (OSError, http.client.HTTPException) as error:
        raise _broken(url, place, error, mend) from None
    return response


def _read(response: http.client.HTTPResponse, url: str, place: str, mend: str) -> bytes:
    try:
        return response.read(CHUNK_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise _broken(url, place, error, mend) from None


def _broken(url: str, place: str, reason: object, mend: str) -> ModelError:
    return ModelError(place, f"cannot fetch '{url}': {reason}", mend)


def _check_size(size: int, limit_bytes: int, place: str) -> None:
    if size > limit_bytes:
        raise ModelError(place, f"the server sends more than the {limit_bytes} bytes expected")
