"""Where profiles are: those that come with edgert, the user's own, or a path."""

from __future__ import annotations

import os
from pathlib import Path

from edgert.errors import UserError
from edgert.pipeline.near import choices

SHIPPED = Path(__file__).parent / "shipped"
_ENDING = ".yaml"


def own_folder() -> Path | None:
    """Return the folder of the user's own profiles; None for a user without a home directory."""
    # The XDG rule: a relative path in the variable is to be ignored.
    base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    try:
        root = base if base.is_absolute() else Path("~/.config").expanduser()
    except RuntimeError:
        return None
    return root / "edgert" / "profiles"


def known() -> dict[str, Path]:
    """Return the file of every profile by its name; the user's own go before those of edgert."""
    files = [*_files(own_folder()), *_files(SHIPPED)]
    by_name: dict[str, Path] = {}
    for file in files:
        by_name.setdefault(file.stem, file)
    return by_name


def locate(asked: str) -> Path:
    """Return the file of a profile.

    Args:
        asked: Its name, or a path (what has a slash in it, or ends in ``.yaml``).

    Raises:
        UserError: There is no profile of that name.
    """
    if "/" in asked or asked.endswith(_ENDING):
        return Path(asked)
    files = known()
    if asked not in files:
        mend = choices(asked, sorted(files), "Profiles")
        raise UserError("--profile", f"there is no profile '{asked}'", mend)
    return files[asked]


def is_shipped(file: Path) -> bool:
    """Return whether a profile comes with edgert."""
    return file.parent == SHIPPED


def _files(folder: Path | None) -> list[Path]:
    return sorted(folder.glob(f"*{_ENDING}")) if folder else []
