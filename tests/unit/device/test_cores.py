"""Cores: classes from trees of files, the key ``cores:``, and pinning in a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgert.device import cores
from edgert.device.cores import Resolution, resolve
from edgert.errors import ResourceError

HYBRID = {"p-cores": (0, 1, 2, 3), "e-cores": (4, 5, 6, 7)}


def write(root: Path, files: dict[str, object]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{content}\n")
    return root


def each_core(file: str, values: list[int]) -> dict[str, object]:
    return {f"devices/system/cpu/cpu{core}/{file}": value for core, value in enumerate(values)}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, {}),
        (
            {"devices/cpu_core/cpus": "0-3", "devices/cpu_atom/cpus": "4-7"},
            HYBRID,
        ),
        ({"devices/cpu_core/cpus": "0-3", "devices/cpu_atom/cpus": ""}, {}),
        (each_core("cpu_capacity", [1024, 1024, 1024, 1024]), {}),
        (
            each_core("cpu_capacity", [446, 446, 446, 446, 1024, 1024]),
            {"p-cores": (4, 5), "e-cores": (0, 1, 2, 3)},
        ),
        (
            each_core("cpu_capacity", [360, 360, 760, 760, 1024]),
            {"p-cores": (2, 3, 4), "e-cores": (0, 1)},
        ),
        (
            each_core("cpufreq/cpuinfo_max_freq", [1800000, 1800000, 2400000]),
            {"p-cores": (2,), "e-cores": (0, 1)},
        ),
        # Favoured cores of one type are a little faster, which makes no class.
        (each_core("cpufreq/cpuinfo_max_freq", [5300000, 5100000, 5100000]), {}),
        ({"devices/system/cpu/cpufreq/x": 1, "devices/system/cpu/cpuidle/y": 1}, {}),
    ],
)
def test_classes_are_read_from_what_the_kernel_says(tmp_path, files, found):
    assert cores.classes(write(tmp_path, files)) == found


def test_this_machine_has_both_classes_or_none():
    assert set(cores.classes()) in (set(), {"p-cores", "e-cores"})


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        (None, (0, 1, 2, 5)),
        ("any", (0, 1, 2, 5)),
        ("0-1,5", (0, 1, 5)),
        (" 5 , 0 ", (0, 5)),
        ((5, 0, 5), (0, 5)),
        ("p-cores", (0, 1, 2)),
        ("e-cores", (5,)),
    ],
)
def test_a_key_comes_to_cores_of_the_mask(key, wanted):
    assert resolve(key, (0, 1, 2, 5), HYBRID) == Resolution(wanted)


def test_a_class_the_machine_lacks_means_any_and_is_said():
    found = resolve("e-cores", (0, 1), {})
    assert found.cores == (0, 1)
    assert found.note == "this machine has no e-cores: `e-cores` means any core here"


def test_a_class_outside_the_mask_means_any_and_is_said():
    found = resolve("e-cores", (0, 1), HYBRID)
    assert found.cores == (0, 1)
    assert "may use no e-cores" in found.note


@pytest.mark.parametrize("key", ["", "x", "1-", "-1", "3-1", "0,,1", "0-99999999999", "½", "²", ()])
def test_a_malformed_key_is_refused_with_the_forms_there_are(key):
    with pytest.raises(ResourceError, match=r"`p-cores`, `e-cores`, `any`"):
        resolve(key, (0, 1), {})


@pytest.mark.parametrize("key", ["0-3", (0, 2, 3)])
def test_cores_outside_the_mask_are_refused_by_name(key):
    with pytest.raises(ResourceError) as caught:
        resolve(key, (0, 1), {}, "stage 'a', key 'cores'")
    said = str(caught.value)
    assert "of 0" in said
    assert " this process may not use 2-3, only 0-1. " in said
    assert caught.value.exit_code == 2


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_list_survives_being_written_and_read(numbers):
    assert cores.parse_list(cores.as_list(tuple(numbers))) == tuple(sorted(numbers))


def in_a_process(code: str) -> str:
    """Run code that changes its own affinity."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    return done.stdout.strip()


def test_pin_keeps_the_process_and_its_threads_there():
    last = max(os.sched_getaffinity(0))
    code = f"""if True:
        import os, threading
        from edgert.device import cores
        cores.pin(({last},))
        seen = []
        thread = threading.Thread(target=lambda: seen.append(cores.allowed()))
        thread.start()
        thread.join()
        print(cores.allowed(), *seen)
    """
    assert in_a_process(code) == f"({last},) ({last},)"


def test_pin_says_what_could_be_had():
    absent = (8191,)
    with pytest.raises(ResourceError, match="cores 8191: cannot be pinned to"):
        cores.pin(absent)


def test_pin_refuses_to_get_only_some():
    code = """if True:
        import os
        from edgert.device import cores
        from edgert.errors import ResourceError
        first = min(cores.allowed())
        try:
            cores.pin((first, 8191))
        except ResourceError as error:
            print(error)
    """
    assert "could be had" in in_a_process(code)
