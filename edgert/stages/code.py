"""Where classes of stages may come from: installed packages, PYTHONPATH, and folders named for it.

The folder in which edgert is started is none of them: a module beside a pipeline file that somebody
sent would else run as soon as the file is checked.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from edgert.errors import UserError
from edgert.paths import below

VARIABLE = "EDGERT_CODE"


def allow(folders: Iterable[str], source: str) -> None:
    """Let modules of these folders be named in pipeline files.

    They come last: none of them can stand in for a library.

    Args:
        folders: The folders.
        source: Who named them, for errors.

    Raises:
        UserError: One is no folder, or others can write to it.
    """
    for folder in folders:
        path = below(Path.cwd(), folder)
        place = f"{source}, folder '{path}'"
        try:
            mode = path.stat().st_mode
        except OSError as error:
            mend = "make it, or name another"
            raise UserError(place, f"cannot be used: {error.strerror}", mend) from error
        if not stat.S_ISDIR(mode):
            raise UserError(place, "is no folder", "name the folder of the module")
        if mode & stat.S_IWOTH:
            raise UserError(place, "can be written by everybody", f"`chmod o-w {path}`")
        if str(path) not in sys.path:
            sys.path.append(str(path))


def allow_environment() -> None:
    """Let modules of the folders in EDGERT_CODE be named, which are separated as in PATH.

    Raises:
        UserError: As ``allow``.
    """
    given = os.environ.get(VARIABLE, "")
    allow((folder for folder in given.split(os.pathsep) if folder), VARIABLE)
