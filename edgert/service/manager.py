"""What the service manager is asked: to know new units, to enable them, and how they do."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from edgert.errors import ResourceError, RunError
from edgert.service.layout import Layout, unit_name

_WITHIN_S = 60
_PROPERTIES = ("UnitFileState", "ActiveState", "SubState", "StatusText", "NRestarts", "Result")


class State(NamedTuple):
    """How a service does, in systemd's words.

    Attributes:
        name: Its name.
        enabled: ``enabled`` where it starts with the machine.
        active: ``active``, ``activating``, ``inactive``, ``failed`` ...
        sub: The same more finely.
        status: What it last said of itself.
        restarts: How often systemd started it again.
        result: How its last run ended.
    """

    name: str
    enabled: str
    active: str
    sub: str
    status: str
    restarts: int
    result: str


def make_user(layout: Layout) -> None:
    """Make the user that services run as."""
    _run("systemd-sysusers", *_root(layout), layout.sysusers.name)


def enable(layout: Layout, name: str) -> None:
    """Have a service start with the machine."""
    reload_units(layout)
    _run("systemctl", *_root(layout), "enable", unit_name(name))


def restart(name: str) -> None:
    """Start a service, anew where it runs; returns when it is ready.

    Raises:
        RunError: It did not get ready.
    """
    _run("systemctl", "restart", unit_name(name))


def disable(layout: Layout, name: str) -> None:
    """Stop a service, which drains it, and have it start no more."""
    now = ("--now",) if _runs(layout) else ()
    _run("systemctl", *_root(layout), "disable", *now, unit_name(name))


def reload_units(layout: Layout) -> None:
    """Let the manager know that units have come or gone."""
    if _runs(layout):
        _run("systemctl", "daemon-reload")


def state(name: str) -> State:
    """Return how a service does.

    Raises:
        ResourceError: Systemd does not run this machine.
    """
    if not _runs(Layout()):
        raise ResourceError("systemd", "does not run this machine", "Ask where it does")
    wanted = [f"--property={name}" for name in _PROPERTIES]
    lines = _run("systemctl", "show", unit_name(name), *wanted).splitlines()
    said = dict(line.split("=", 1) for line in lines if "=" in line)
    return State(
        name=name,
        enabled=said.get("UnitFileState", ""),
        active=said.get("ActiveState", ""),
        sub=said.get("SubState", ""),
        status=said.get("StatusText", ""),
        restarts=int(said.get("NRestarts") or 0),
        result=said.get("Result", ""),
    )


def _runs(layout: Layout) -> bool:
    """Whether it is the system that runs, and systemd is what runs it."""
    return layout.is_here and Path("/run/systemd/system").is_dir()


def _root(layout: Layout) -> tuple[str, ...]:
    return () if layout.is_here else (f"--root={layout.root}",)


def _run(*command: str) -> str:
    called = " ".join(command)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_WITHIN_S, check=False
        )
    except FileNotFoundError as error:
        mend = "Install systemd, or run edgert by what your system has for services"
        raise ResourceError(command[0], "is not there", mend) from error
    except subprocess.TimeoutExpired as error:
        raise RunError(called, f"did not end within {_WITHIN_S} s") from error
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"ended with code {done.returncode}"
        raise RunError(called, said, "Run it as root; `journalctl -xe` may say more")
    return done.stdout
