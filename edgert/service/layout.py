"""Where everything of a service lies, below / or below the root of an image."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from edgert.errors import UserError

_NAME = re.compile(r"[a-z0-9-]{1,40}")
_ENDING = ".yaml"


def require_name(name: str) -> str:
    """Return a name that a service may have.

    Raises:
        UserError: It may not.
    """
    if not _NAME.fullmatch(name):
        fault = "is not a name of a service"
        raise UserError(f"'{name}'", fault, "Use at most 40 of a-z, 0-9 and '-'")
    return name


def unit_name(name: str) -> str:
    """Return the unit of a pipeline."""
    return f"edgert@{name}.service"


class Layout(NamedTuple):
    """The places.

    Attributes:
        root: Root of the system; ``/`` for this one.
    """

    root: Path = Path("/")

    @property
    def is_here(self) -> bool:
        """Whether it is the system that runs."""
        return self.root == Path("/")

    @property
    def units(self) -> Path:
        """The folder of units that an administrator installs."""
        return self.root / "etc/systemd/system"

    @property
    def sysusers(self) -> Path:
        """The file that names the user."""
        return self.root / "etc/sysusers.d/edgert.conf"

    @property
    def pipelines(self) -> Path:
        """The folder of pipelines."""
        return self.root / "etc/edgert"

    @property
    def record(self) -> Path:
        """The file that says what was written, by checksum."""
        return self.pipelines / ".installed.json"

    def pipeline(self, name: str) -> Path:
        """The file of a pipeline."""
        return self.pipelines / f"{name}{_ENDING}"

    def environment(self, name: str) -> Path:
        """The file of a pipeline's variables."""
        return self.pipelines / f"{name}.env"

    def cores(self, name: str) -> Path:
        """The drop-in with what a pipeline's plan says."""
        return self.units / f"{unit_name(name)}.d" / "plan.conf"

    def names(self) -> list[str]:
        """Return the names of all pipelines that are there."""
        names = (file.name.removesuffix(_ENDING) for file in self.pipelines.glob(f"*{_ENDING}"))
        return sorted(name for name in names if _NAME.fullmatch(name))
