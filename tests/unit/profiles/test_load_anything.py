"""Whatever stands in a profile: a profile, or its faults, and never anything else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgert.errors import Fault, PipelineError
from edgert.profiles.load import load_profile

CORPUS = Path(__file__).parents[2] / "corpus" / "profiles"
GOOD = (CORPUS / "valid" / "most.yaml").read_text(encoding="utf-8")
KEYS = [
    "sources",
    "match",
    "source",
    "cores",
    "p-cores",
    "accelerators",
    "device",
    "kinds",
    "value",
]
many = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(KEYS)
values = st.recursive(
    scalars | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=8,
)
Examine = Callable[[str], None]


@pytest.fixture
def examine(tmp_path: Path) -> Examine:
    """Load a text as ``most.yaml``; faults have a place and a text."""

    def load(text: str) -> None:
        file = tmp_path / "most.yaml"
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
        faults: tuple[Fault, ...] = ()
        try:
            load_profile(file)
        except PipelineError as error:
            faults = error.faults
        assert all(fault.place and fault.fault and fault.file for fault in faults)

    return load


@many
@given(st.text(max_size=200))
def test_any_text(examine: Examine, text: str) -> None:
    examine(text)


@many
@given(st.integers(0, len(GOOD) - 1), st.integers(0, 30), st.text(max_size=6))
def test_a_good_profile_that_was_damaged(examine: Examine, at: int, cut: int, put: str) -> None:
    examine(GOOD[:at] + put + GOOD[at + cut :])


@many
@given(st.sampled_from(list(yaml.safe_load(GOOD))), values)
def test_any_value_of_a_key(examine: Examine, key: str, value: object) -> None:
    whole = yaml.safe_load(GOOD) | {key: value}
    whole["sources"] = value if key == "sources" else {"manual": SOURCE}
    examine(yaml.safe_dump(whole))


SOURCE = {"title": "Manual", "url": "u", "version": "1", "as_of": "2026-11-30"}
