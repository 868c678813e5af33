"""The text of every unit: as shipped in systemd/, with the program and what the plan says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from edgert.service.layout import Layout
from edgert.service.program import DEFAULT

SHIPPED = Path(__file__).parent / "units"

_LIBRARY = re.compile(r"libsystemd-shared-(\d+)")
_SINCE = re.compile(r"-(\d+)\.conf$")


def template(program: Path) -> str:
    """Return the unit that every pipeline is an instance of."""
    return (SHIPPED / "edgert@.service").read_text().replace(str(DEFAULT), str(program))


def systemd_version(root: Path) -> int:
    """Return the version of the systemd below a root; 0 where there is none."""
    folders = (
        root / "usr/lib/systemd",
        *root.glob("usr/lib/*/systemd"),
        root / "usr/lib64/systemd",
    )
    files = (file.name for folder in folders for file in folder.glob("libsystemd-shared-*"))
    return max((int(found[1]) for name in files if (found := _LIBRARY.match(name))), default=0)


def shared(layout: Layout, program: Path) -> dict[Path, str]:
    """Return the files that all pipelines share, by where they go.

    Drop-ins have in their names the version of systemd that first had what they say: an older one
    would warn of them.
    """
    version = systemd_version(layout.root)
    folder = layout.units / "edgert@.service.d"
    drop_ins = {
        folder / file.name: file.read_text()
        for file in sorted((SHIPPED / "drop-ins").glob("*.conf"))
        if (since := _SINCE.search(file.name)) and version >= int(since[1])
    }
    return {
        layout.sysusers: (SHIPPED / "edgert.sysusers.conf").read_text(),
        layout.units / "edgert.slice": (SHIPPED / "edgert.slice").read_text(),
        layout.units / "edgert@.service": template(program),
        **drop_ins,
    }


def environment(name: str) -> str:
    """Return the file of a pipeline's variables, as it is at first."""
    return (
        f"# Variables of /etc/edgert/{name}.yaml, one NAME=value a line; only root can read it.\n"
        "#EDGERT_INPUT=rtsp://camera/stream\n"
        f"#EDGERT_OUTPUT=/var/lib/edgert/{name}/results.jsonl\n"
    )


def cores(used: Iterable[int]) -> str:
    """Return the drop-in that keeps a pipeline on the cores of its plan."""
    listed = " ".join(map(str, sorted(set(used))))
    return f"# From the plan of the pipeline.\n[Service]\nCPUAffinity={listed}\n"
