"""Entry point of ``edgert`` and ``python -m edgert``."""

from __future__ import annotations

import sys
from pathlib import Path

from edgert.processes import (
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    TerminatedError,
    hear_sigterm,
    occupy_standard_numbers,
)


def main() -> None:
    """Run the command line."""
    try:
        hear_sigterm()
        occupy_standard_numbers()
        if sys.stderr is None:
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115  it stays open to the end
        forget_current_folder()
        from edgert.cli.main import run
    except TerminatedError:
        sys.exit(EXIT_TERMINATED)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    run()


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
