"""The examples of the page about results are results."""

from __future__ import annotations

import json
import re
from pathlib import Path

from edgert.results import Result, decode, encode_line

PAGE = (Path(__file__).parents[2] / "docs" / "results.md").read_text(encoding="utf-8")


def test_each_task_has_an_example_that_is_one() -> None:
    examples = re.findall(r"```json\n(.*?)\n```", PAGE, re.DOTALL)
    for example in examples:
        assert json.loads(encode_line(decode(example))) == json.loads(example)
    tasks = {kind.__struct_config__.tag for kind in Result.__args__}
    assert {json.loads(example)["task"] for example in examples} == tasks
    assert set(re.findall(r"^## ([a-z]+)$", PAGE, re.MULTILINE)) == tasks
