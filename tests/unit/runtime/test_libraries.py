"""Libraries whose pages are let go: less is mapped, and they work as before."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from edgert.runtime.libraries import let_go_of_libraries

# A whole page of code, 65536 bytes at most, with the address of a variable in it.
_RELOCATED = """
int answer = 42;
__attribute__((aligned(65536))) int ask(void) { return *(volatile int *)&answer; }
__attribute__((aligned(65536))) int next(void) { return 0; }
"""

_LETS_GO = """
import re, sys
import cv2, numpy, msgspec
from pathlib import Path
from edgert.runtime.libraries import let_go_of_libraries

def file_kb():
    return int(re.search(r"RssFile:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

def results():
    picture = numpy.arange(64 * 64, dtype=numpy.uint8).reshape(64, 64)
    small = cv2.resize(picture, (17, 13), interpolation=cv2.INTER_AREA)
    return small.tobytes(), msgspec.json.decode("[1, 2.5]"), numpy.linalg.det(picture[:2, :2])

before, mapped = results(), file_kb()
let_go_of_libraries()
print(file_kb() < mapped * 0.6, results() == before)
"""


def test_libraries_that_are_let_go_work_as_before():
    done = subprocess.run(
        [sys.executable, "-c", _LETS_GO], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["True", "True"]


# As a hook or a tracer does: the first byte of a function is replaced, its page is read-only again.
_CHANGES = """
import ctypes, mmap
from edgert.runtime.libraries import let_go_of_libraries

libc = ctypes.CDLL(None)
labs = ctypes.cast(libc.labs, ctypes.c_void_p).value
page = ctypes.c_void_p(labs // mmap.PAGESIZE * mmap.PAGESIZE)
write, read = (mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC), (mmap.PROT_READ | mmap.PROT_EXEC)
assert libc.mprotect(page, ctypes.c_size_t(mmap.PAGESIZE), write) == 0
before = ctypes.string_at(labs, 1)
changed = bytes([before[0] ^ 1])
ctypes.memmove(labs, changed, 1)
assert libc.mprotect(page, ctypes.c_size_t(mmap.PAGESIZE), read) == 0
let_go_of_libraries()
print(ctypes.string_at(labs, 1) == changed)
"""


def test_code_that_was_changed_at_run_time_stays():
    done = subprocess.run(
        [sys.executable, "-c", _CHANGES], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["True"]


def test_code_that_the_loader_has_written_to_stays(tmp_path: Path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source, library = tmp_path / "relocated.c", tmp_path / "librelocated.so"
    source.write_text(_RELOCATED)
    options = ["-shared", "-fno-pic", "-mcmodel=large", "-Wl,-z,notext"]
    made = subprocess.run([compiler, *options, "-o", library, source], check=False)
    if made.returncode:
        pytest.skip("the compiler makes no library whose code is relocated")
    loaded = ctypes.CDLL(str(library))
    assert loaded.ask() == 42
    let_go_of_libraries()
    assert loaded.ask() == 42
