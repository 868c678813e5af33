"""Characters that look like a space, or like nothing: named with their place, where they harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgert.errors import Fault, PipelineError
from edgert.pipeline.yamltext import compose

VALID = Path(__file__).parents[2] / "corpus" / "pipelines" / "valid"
FILE = """\
stages:
  camera:
    kind: source.video
    uri: a.mp4
    device:
      - CPU
  prepare: {image: camera.image}
"""


def fault_of(text: str) -> Fault | None:
    try:
        compose(text, "p.yaml")
    except PipelineError as error:
        (fault,) = error.faults
        return fault
    return None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "    kind: source",
            "\u00a0\u00a0\u00a0\u00a0kind: source",
            "3:1: YAML: U+00A0 (no-break space) looks like a space and is none. "
            "Write a space instead",
        ),
        # All of a file that was copied from a web page.
        (
            "  ",
            "\u00a0 ",
            "2:1: YAML: U+00A0 (no-break space) looks like a space and is none. "
            "Write a space instead; 5 other lines have it, too",
        ),
        (
            "    uri",
            "\u3000uri",
            "4:1: YAML: U+3000 (ideographic space) looks like a space and is none. "
            "Write a space instead",
        ),
        (
            "    uri",
            "    \u200buri",
            "4:5: YAML: U+200B (zero width space) cannot be seen. Remove it",
        ),
        (
            "source.video",
            "source\u2060.video",
            "3:17: YAML: U+2060 (word joiner) cannot be seen. "
            "Remove it, or quote the text it belongs to",
        ),
        (
            "a.mp4",
            "a.mp4\u200f",
            "4:15: YAML: U+200F (right-to-left mark) cannot be seen. "
            "Remove it, or quote the text it belongs to",
        ),
        (
            "- CPU",
            "-\u202fCPU",
            "6:8: YAML: U+202F (narrow no-break space) looks like a space and is none. "
            "Write a space instead, or quote the text it belongs to",
        ),
        (
            "    uri",
            "\u00a0\n    uri",
            "4:1: YAML: U+00A0 (no-break space) looks like a space and is none. "
            "Write a space instead, or quote the text it belongs to",
        ),
    ],
)
def test_what_cannot_be_seen_is_named_with_its_place(old: str, new: str, said: str) -> None:
    assert str(fault_of(FILE.replace(old, new))) == f"p.yaml:{said}."


@pytest.mark.parametrize("file", sorted(VALID.glob("*.yaml")), ids=lambda file: file.stem)
def test_a_no_break_space_in_place_of_any_space_is_found_where_it_is(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    for index in (index for index, character in enumerate(text) if character == " "):
        begin = text.rfind("\n", 0, index) + 1
        before = text[begin:index]
        if "#" in before or before.count('"') % 2:
            continue  # a comment, or quoted: there it may stay
        fault = fault_of(f"{text[:index]}\u00a0{text[index + 1 :]}")
        assert fault is not None
        assert "U+00A0" in fault.fault
        assert (fault.line, fault.column) == (text.count("\n", 0, index) + 1, index - begin + 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a.mp4", "10\u202fAM.mp4"),  # as macOS names pictures of its screen
        ("a.mp4", "'\u00a0a.mp4\u200b'"),
        ("a.mp4", "a.mp4 # see:\u00a0there"),
        ("a.mp4", "|\n      \u00a0a.mp4\u00a0"),
        ("a.mp4", "\U0001f469\u200d\U0001f4bb.mp4"),
    ],
)
def test_within_a_text_in_quotes_and_in_comments_they_may_stay(old: str, new: str) -> None:
    assert fault_of(FILE.replace(old, new)) is None


def test_a_fault_of_something_else_before_them_is_told_itself() -> None:
    text = "a: b: c\nd:\u00a0e\n"
    assert str(fault_of(text)).startswith("p.yaml:1:5: YAML: mapping values are not allowed here.")
