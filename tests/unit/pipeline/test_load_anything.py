"""Whatever stands in a file: a document, or the faults of it, and never anything else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kinds import corpus_kinds

from edgert.errors import Fault, PipelineError
from edgert.pipeline.check import check
from edgert.pipeline.load import load, read

CORPUS = Path(__file__).parents[2] / "corpus" / "pipelines"
GOOD = (CORPUS / "valid" / "two-streams.yaml").read_text(encoding="utf-8")
KINDS = corpus_kinds()
many = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

Examine = Callable[..., None]


def faults_of(file: Path, set_: tuple[str, ...]) -> tuple[Fault, ...]:
    """Return every fault; what has none in itself must load."""
    try:
        document = read(file, {}, set_)
    except PipelineError as error:
        return error.faults
    if not document.faults:
        load(file, {}, set_)
    return check(document, KINDS).faults


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    file = tmp_path / "p.yaml"

    def examined(data: bytes, *set_: str) -> None:
        file.write_bytes(data)
        assert all(str(fault) for fault in faults_of(file, set_))

    return examined


@many
@given(st.binary(max_size=300))
def test_any_bytes(examine: Examine, data: bytes) -> None:
    examine(data)


@many
@given(st.text(max_size=300))
def test_any_text(examine: Examine, text: str) -> None:
    examine(text.encode("utf-8", "surrogatepass"))


YAML_PIECES = st.sampled_from(
    [
        *"[]{}:,-?&*!|>'\"%@`#\n ",
        *("a: ", "- ", "\n  ", "<<: ", "&a ", "*a", "!!int ", "!!float ", "!!bool ", "!!null "),
        *("!!binary ", "!!set ", "!!omap ", "!!timestamp ", "!!python/name:os.system ", "!x "),
        *("0x_", "0b", "1:30", "1e999", ".inf", ".nan", "2024-01-01", "=", "9" * 5000, "\x00"),
        *("${A, b}", "${", "$${", "---\n", "...\n", "stages:\n", "version: 1\n", "kind: "),
    ]
)


@many
@given(st.lists(YAML_PIECES, max_size=25).map("".join))
def test_any_pieces_of_yaml(examine: Examine, text: str) -> None:
    examine(text.encode())


@many
@given(st.integers(0, len(GOOD)), st.integers(0, 40), st.one_of(YAML_PIECES, st.text(max_size=10)))
def test_a_good_file_with_one_part_replaced(
    examine: Examine, start: int, length: int, new: str
) -> None:
    text = GOOD[:start] + new + GOOD[start + length :]
    examine(text.encode("utf-8", "replace"))


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["camera.image", "prepare.tensor", "b.image", "a", "${A, 1}", "auto"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["from", "queue", "slots", "left", "0"]), inner, max_size=3
        ),
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["kind", "inputs", "worker", "cores", "uri", "mean", "area", "labels", "batch", "requests"]
)
KIND_NAMES = st.sampled_from([*KINDS.names(), "kinds:Camera", "kinds:Area", "kinds:", "a.b:C", ""])
INPUTS = st.dictionaries(
    st.sampled_from(["image", "frames", "tensor", "detections", "raw"]), VALUES, max_size=2
)
STAGES = st.one_of(
    VALUES,
    st.fixed_dictionaries({"kind": KIND_NAMES}, optional={"inputs": INPUTS, "cores": VALUES}),
    st.dictionaries(KEYS, VALUES, max_size=5),
)
FILES = st.fixed_dictionaries(
    {
        "version": st.one_of(st.just(1), VALUES),
        "name": st.one_of(st.just("a"), VALUES),
        "stages": st.one_of(
            VALUES,
            st.dictionaries(
                st.sampled_from(["camera", "prepare", "a", "b", "A b"]), STAGES, max_size=4
            ),
        ),
    },
    optional={"limits": VALUES, "restart": VALUES},
)


@many
@given(FILES)
def test_any_structure(examine: Examine, value: object) -> None:
    examine(yaml.safe_dump(value, allow_unicode=True).encode("utf-8", "replace"))


@many
@given(st.text(max_size=20).flatmap(lambda text: st.sampled_from(_SETTINGS).map(text.join)))
def test_any_setting(examine: Examine, setting: str) -> None:
    examine(GOOD.encode(), setting)


_SETTINGS = [
    ["", ""],
    ["cam1.uri=", ""],
    ["limits.", "=2"],
    ["stages.cam1.inputs", "=x"],
    ["cam1.", ""],
]
