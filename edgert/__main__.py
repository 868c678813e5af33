"""Entry point of ``edgert`` and ``python -m edgert``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from edgert.processes import EXIT_INTERRUPTED, EXIT_TERMINATED, TerminatedError, hear_sigterm


def main() -> None:
    """Run the command line."""
    try:
        hear_sigterm()
        occupy_standard_numbers()
        forget_current_folder()
        from edgert.cli.main import run
    except TerminatedError:
        sys.exit(EXIT_TERMINATED)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    run()


def occupy_standard_numbers() -> None:
    """Open what the caller has closed of descriptors 0 to 2.

    Else a pipe or a segment of a run would get such a number, and with it what libraries print.
    Standard output refuses to be written, so that results are not lost in silence.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # takes the lowest free number: this one
            os.set_inheritable(number, True)  # noqa: FBT003  has no keyword
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115  it stays open to the end


def forget_current_folder() -> None:
    """Take the current folder from the head of ``sys.path``, where ``python -m`` puts it.

    A module that lies beside a pipeline file is nothing to import (``stages/code.py``). The folder
    stays where edgert itself was found there: a source tree that is not installed.
    """
    here = Path.cwd()
    if sys.path[:1] in ([""], [str(here)]) and Path(__file__).parents[1] != here:
        del sys.path[0]


if __name__ == "__main__":
    main()
