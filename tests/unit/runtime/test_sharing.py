"""The memory that workers share with the process they are forked from."""

from __future__ import annotations

import subprocess
import sys

# Makes holes among small objects of every size; then new ones must lie elsewhere: nearly all of
# them, for where eight holes lie in a row they are taken for a new pool.
_HOLES = """
import gc
from edgert.runtime import sharing

sizes = range(64, 513, 64)
blocks = [bytes(size - 33) for size in sizes for _ in range(400)]
holes = {id(block) for block in blocks[::2]}
del blocks[::2]
filling = sharing.settle()
new = [bytes(size - 33) for size in sizes for _ in range(50)]
print(len(holes) > 1500, len(holes & {id(each) for each in new}) < len(new) / 5)
print(gc.isenabled(), gc.get_freeze_count() > 1000)
"""


def test_new_objects_do_not_go_among_those_that_are_shared():
    done = subprocess.run(
        [sys.executable, "-c", _HOLES], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["True", "True", "False", "True"]
