"""Every format of a report, what was won and lost, and merging."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from edgert.coverage.record import Case, Crossing, Model, Node, Refused, Report
from edgert.coverage.report.baseline import against, failures
from edgert.coverage.report.cells import MEANINGS, ORDER, SIGNS, cell, verdict
from edgert.coverage.report.read import merge, read_reports
from edgert.coverage.report.write import FORMATS, write
from edgert.errors import UserError

GOOD = Case(
    case="test_conv",
    operator="Conv",
    opset=13,
    dtype="f32",
    form="published",
    placement="device",
    numerics="equal",
    evidence="hardware",
    max_error=1e-7,
    latency_ms=0.25,
)
HOSTILE = "</script><script>alert(1)</script> |=cmd & \x01"


def case(name: str = "test_conv", **changes: object) -> Case:
    return msgspec.structs.replace(GOOD, case=name, **changes)


REFUSED = case(
    "test_det",
    operator="Det",
    placement="rejected",
    numerics="unsupported",
    reason=HOSTILE,
    max_error=None,
    latency_ms=None,
)
MODEL = Model(
    model="yolox",
    sha256="ab" * 32,
    placement="partly",
    numerics="equal",
    evidence="emulated",
    share_of_nodes=0.5,
    share_of_macs=0.25,
    partitions=3,
    crossings=[Crossing(tensor="t", to="cpu", size_bytes=64)],
    refused=[Refused(operator="NonMaxSuppression", nodes=1, macs=0, reason="dynamic", mend="m")],
    nodes=[
        Node(name="a", operator="Conv", placement="device", macs=10),
        Node(name="b", operator="NonMaxSuppression", placement="cpu", reason=HOSTILE),
    ],
)


def report(*cases: Case, device: str = "openvino:NPU", **versions: str) -> Report:
    return Report(device=device, versions={"edgert": "1", **versions}, cases=list(cases))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "supported"),
        ({"numerics": "differs"}, "differs"),
        ({"placement": "cpu"}, "cpu"),
        ({"placement": "partly"}, "partly"),
        ({"placement": "unknown"}, "unknown"),
        ({"placement": "rejected", "numerics": "unsupported"}, "refused"),
        ({"numerics": "crashed", "placement": "unknown"}, "failed"),
        ({"numerics": "timed-out", "placement": "unknown"}, "failed"),
        ({"evidence": "static-list", "numerics": "not-run"}, "listed"),
        ({"evidence": "vendor-compiler", "numerics": "not-run"}, "supported"),
        ({"evidence": "hardware", "numerics": "not-run"}, "unknown"),
        ({"evidence": "unavailable"}, "unknown"),
    ],
)
def test_supported_needs_proof_of_placement_and_of_numbers(
    changes: dict[str, object], expected: str
) -> None:
    assert verdict(case(**changes)) == expected


def test_a_cell_shows_its_weakest_case_and_how_many_are_good() -> None:
    assert cell([case(), REFUSED, case()]) == ("refused", 2, 3)
    assert set(SIGNS) == set(MEANINGS) == set(ORDER)
    assert len(set(SIGNS.values())) == len(SIGNS)


@pytest.mark.parametrize("extension", sorted(FORMATS))
def test_every_format_is_written_whole(extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"report{extension}"
    whole = msgspec.structs.replace(report(GOOD, REFUSED), models=[MODEL])
    write([whole, report(GOOD, device="onnxruntime:CPU")], path)
    text = path.read_text()
    assert "openvino:NPU" in text
    assert "onnxruntime:CPU" in text
    assert path.stat().st_mode & 0o777 == 0o644


def test_json_comes_back_as_it_was(tmp_path: Path) -> None:
    whole = msgspec.structs.replace(report(GOOD, REFUSED), models=[MODEL])
    write([whole], tmp_path / "r.json")
    assert read_reports(tmp_path / "r.json") == [whole]
    assert json.loads((tmp_path / "r.json").read_text())["schema"] == "edgert.coverage/1"


def test_junit_passes_what_is_proved_alone(tmp_path: Path) -> None:
    listed = case("test_listed", evidence="static-list", numerics="not-run")
    crashed = case("test_crash", placement="unknown", numerics="crashed", reason="SIGSEGV")
    write([report(GOOD, REFUSED, listed, crashed)], tmp_path / "r.xml")
    suite = ET.parse(tmp_path / "r.xml").getroot()[0]  # noqa: S314  our own file
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "4", "failures": "1", "errors": "1", "skipped": "1"}
    kinds = {test.get("name"): [child.tag for child in test] for test in suite.iter("testcase")}
    assert kinds == {
        "test_conv:published": [],
        "test_det:published": ["failure"],
        "test_listed:published": ["skipped"],
        "test_crash:published": ["error"],
    }


def test_a_spreadsheet_takes_no_text_for_a_formula(tmp_path: Path) -> None:
    write([report(case(reason="=HYPERLINK(1)"))], tmp_path / "r.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "r.csv").read_text())))
    assert rows[0]["reason"] == "'=HYPERLINK(1)"
    assert (rows[0]["device"], rows[0]["verdict"]) == ("openvino:NPU", "supported")


def test_markdown_counts_by_operator_and_device(tmp_path: Path) -> None:
    write([report(GOOD, case("test_conv_2"), REFUSED)], tmp_path / "r.md")
    lines = (tmp_path / "r.md").read_text().splitlines()
    assert "| Conv | ✓ 2/2 |" in lines
    assert "| Det | ✗ 0/1 |" in lines


def test_text_in_a_page_cannot_end_its_data(tmp_path: Path) -> None:
    write([report(REFUSED)], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    assert "<script>alert" not in text
    assert text.count("</script>") == 2


def test_an_unknown_extension_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there is no format '\.pdf'\. One of: \.html, "):
        write([report(GOOD)], tmp_path / "r.pdf")


def test_won_lost_new_and_gone() -> None:
    before = report(case("a"), case("b", numerics="differs"), case("c"), case("d"), driver="1")
    after = report(case("a", numerics="differs"), case("b"), case("c"), case("e"), driver="2")
    found = against(before, after)
    assert found.versions == {"driver": ("1", "2")}
    assert [change.name for change in found.lost] == ["a:published"]
    assert [change.name for change in found.won] == ["b:published"]
    assert [change.name for change in found.new] == ["e:published"]
    assert [change.name for change in found.gone] == ["d:published"]
    assert failures("regression", after, found) == ["a:published", "d:published"]
    assert failures("mismatch", after, found) == ["a:published"]
    assert failures("unsupported", report(GOOD, REFUSED), None) == ["test_det:published"]


def test_what_a_run_was_narrowed_down_from_is_not_gone() -> None:
    assert against(report(GOOD, REFUSED), report(GOOD)).gone == []


def test_latency_and_small_errors_are_no_change() -> None:
    found = against(report(GOOD), report(case(latency_ms=9.0, max_error=2e-7)))
    assert (found.won, found.lost) == ([], [])


def test_merging_joins_a_device_and_keeps_others_apart() -> None:
    merged = merge([report(GOOD), report(REFUSED), report(GOOD, device="onnxruntime:CPU")])
    assert [each.device for each in merged.reports] == ["openvino:NPU", "onnxruntime:CPU"]
    assert [each.case for each in merged.reports[0].cases] == ["test_conv", "test_det"]


def test_merging_refuses_two_versions_of_one_device() -> None:
    with pytest.raises(UserError, match="two reports with different versions of driver"):
        merge([report(GOOD, driver="1"), report(REFUSED, driver="2")])


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "cannot be read: No such file or directory"),
        ("not json", "is no report: JSON is malformed"),
        ("{}", "is no report: Object missing required field"),
        ('{"schema":"edgert.coverage/2"}', "is no report: "),
    ],
)
def test_what_is_no_report_is_said(content: str | None, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UserError, match=fault):
        read_reports(path)


NOT_READ = msgspec.structs.replace(
    MODEL,
    placement="unknown",
    numerics="not-run",
    evidence="vendor-compiler",
    share_of_nodes=None,
    share_of_macs=None,
    partitions=None,
    crossings=[],
    refused=[],
    nodes=[],
    reason="it takes no onnx files, only tflite",
)
LAYERS = msgspec.structs.replace(
    MODEL,
    evidence="vendor-emulator",
    crossings=None,
    refused=[],
    nodes=[Node(name="a", operator="ConvRelu", placement="device", cycles=2304, moved_kib=2)],
)


def test_why_a_model_was_not_asked_stands_in_the_text(tmp_path: Path) -> None:
    write([Report(device="vela:ethos-u65-256", versions={}, models=[NOT_READ])], tmp_path / "r.md")
    assert "| yolox | ? it takes no onnx files, only tflite |" in (tmp_path / "r.md").read_text()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the Debian package chromium")
def test_a_browser_draws_the_page(tmp_path: Path) -> None:
    whole = msgspec.structs.replace(report(GOOD, REFUSED), models=[MODEL])
    write([whole, report(GOOD, device="onnxruntime:CPU")], tmp_path / "r.html")
    drawn = draw(tmp_path / "r.html")
    assert "2 of 2 cases" not in drawn
    assert "3 of 3 cases" in drawn
    assert ">✗ 0/1</td>" in drawn
    assert '<th scope="row">Conv</th>' in drawn


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the Debian package chromium")
def test_a_browser_draws_the_devices_of_a_model_side_by_side(tmp_path: Path) -> None:
    answers = {"emulated:NPU": MODEL, "vela:ethos-u65-256": NOT_READ, "rknn:rk3588": LAYERS}
    reports = [Report(device=name, versions={}, models=[one]) for name, one in answers.items()]
    write(reports, tmp_path / "r.html")
    drawn = draw(tmp_path / "r.html")
    assert "3 of 3 answers" in drawn
    assert "<strong>? not run</strong>" in drawn
    assert drawn.count("it takes no onnx files, only tflite</p>") == 1
    assert "50.0 % of nodes" in drawn
    assert "25.0 % of MACs" in drawn
    assert '<td class="fact">1 tensor, 64 bytes</td>' in drawn
    assert '<td class="fact">not told</td>' in drawn
    assert '<td class="supported">✓ 1/1</td><td class="absent"></td>' in drawn
    assert '<td class="cpu">○ 0/1</td>' in drawn


def draw(path: Path) -> str:
    command = [
        "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
        f"--user-data-dir={path.parent / 'profile'}", f"file://{path}",
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
