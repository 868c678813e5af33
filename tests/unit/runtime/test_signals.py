"""No signal is lost, whatever was under way when it came."""

from __future__ import annotations

import subprocess
import sys

SWALLOWED = """if True:
    import os, signal
    from edgert.processes import TerminatedError, hear_sigterm
    from edgert.runtime.signals import SignalWatch
    hear_sigterm()
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except TerminatedError:
        pass  # as a callback that Python itself calls would
    with SignalWatch().watching():
        print("runs on")
"""


def test_a_stop_that_was_swallowed_before_the_run_ends_it() -> None:
    command = [sys.executable, "-c", SWALLOWED]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout == ""
    assert done.stderr.rstrip().endswith("TerminatedError")


HEARD = """if True:
    import os, signal
    from edgert.runtime.signals import SignalWatch
    with SignalWatch().watching() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        print(signals.hear())
        os.kill(os.getpid(), signal.SIGINT)
        print(signals.hear())
"""


def test_two_that_come_at_once_are_one() -> None:
    command = [sys.executable, "-c", HEARD]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["1", "1"]
