"""Which edgert a service starts, and whether the user of services can start it at all."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

from edgert.errors import UserError

DEFAULT = Path("/opt/edgert/bin/edgert")
_HIDDEN = ("/root", "/home", "/run/user", "/tmp", "/var/tmp")  # noqa: S108  by ProtectHome=, PrivateTmp=
_MEND = (
    "Install it below /opt: python3 -m venv /opt/edgert && /opt/edgert/bin/pip install "
    "'edgert[all]'; then call /opt/edgert/bin/edgert service install"
)


def own_program() -> Path:
    """Return the program of the environment that this process runs in.

    Raises:
        UserError: A service could not run it.
    """
    program = Path(sys.prefix) / "bin" / "edgert"
    package = Path(__file__).parent
    for path in (program, package, Path(sys.base_prefix)):
        require_visible(path)
    return program


def require_visible(path: Path) -> None:
    """Refuse what a service of another user, with ProtectHome= and PrivateTmp=, cannot read.

    Raises:
        UserError: It is hidden from it, or not there.
    """
    place, real = f"edgert in '{path}'", path.resolve()
    for hidden in _HIDDEN:
        if any(each.is_relative_to(hidden) for each in (path, real)):
            raise UserError(place, f"a service cannot see what is below {hidden}", _MEND)
    for folder in (real, *real.parents):
        try:
            may_enter = folder.stat().st_mode & stat.S_IXOTH
        except OSError as error:
            raise UserError(place, f"is not there ({error.strerror})", _MEND) from error
        if not may_enter:
            raise UserError(place, f"others than its owner may not enter '{folder}'", _MEND)
