"""The schema describes every key, and knows the options and ports of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from kinds import corpus_kinds

from edgert.pipeline.schema import schema
from edgert.stages.registry import Registry


def keys_without_description(node: Any, path: str = "") -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from keys_without_description(each, path)
    if not isinstance(node, dict):
        return
    for key, each in node.get("properties", {}).items():
        if "description" not in each and "if" not in path:
            yield f"{path}.{key}"
    for key, each in node.items():
        yield from keys_without_description(each, f"{path}.{key}")


@pytest.mark.parametrize("kinds", [corpus_kinds(), Registry({})], ids=["corpus", "built-in"])
def test_the_schema_is_one_and_describes_every_key(kinds: Registry) -> None:
    whole = schema(kinds)
    Draft202012Validator.check_schema(whole)
    assert list(keys_without_description(whole)) == []


@pytest.fixture(scope="module")
def camera() -> Draft202012Validator:
    whole = schema(corpus_kinds())
    return Draft202012Validator({"$ref": "#/$defs/stage", "$defs": whole["$defs"]})


@pytest.mark.parametrize(
    ("stage", "is_valid"),
    [
        ({"kind": "test.camera", "uri": "x"}, True),
        ({"kind": "test.camera", "uri": "x", "fps": 25, "cores": [0], "worker": "w"}, True),
        ({"kind": "test.camera", "uri": "x", "fps": "${FPS, 25}"}, True),
        ({"kind": "test.camera", "uri": "x", "fps": "many"}, False),
        ({"kind": "test.camera", "uri": "x", "inputs": {}}, False),
        ({"kind": "test.camera"}, False),
        ({"kind": "test.camrea", "uri": "x"}, False),
        ({"kind": "mine.cameras:Thermal", "whatever": 1, "inputs": {"x": ["a.b"]}}, True),
        ({"kind": "mine.cameras:Thermal", "cores": "fast"}, False),
        ({"kind": "test.scale", "inputs": {"image": {"from": "a.b", "queue": {}}}}, True),
        ({"kind": "test.scale", "inputs": {"image": {"from": "a.b", "queue": {"x": 1}}}}, False),
        ({"kind": "test.scale", "inputs": {"image": "a"}}, False),
        ({"kind": "test.scale", "inputs": {}}, False),
        ({"kind": "test.people", "inputs": {"raw": "a.b"}, "area": {"left": 0.5}}, True),
        ({"kind": "test.people", "inputs": {"raw": "a.b"}, "area": {"top": 0.5}}, False),
    ],
)
def test_a_stage_has_the_keys_of_its_kind(
    camera: Draft202012Validator, stage: dict[str, Any], is_valid: bool
) -> None:
    assert camera.is_valid(stage) == is_valid
