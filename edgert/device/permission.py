"""May this process use a device's node, and if not, what would let it."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

MayUse = Callable[[Path], bool]
_GROUP_OPENS = stat.S_IRGRP | stat.S_IWGRP


class User(NamedTuple):
    """Who this process is.

    Attributes:
        name: Name, or number where it has none (as in containers).
        groups: Groups of the process.
        groups_at_login: Groups it would have after a new login.
    """

    name: str
    groups: frozenset[int]
    groups_at_login: frozenset[int]


def may_use(node: Path) -> bool:
    """Return whether this process may read and write a node; access lists count too."""
    return os.access(node, os.R_OK | os.W_OK)


def mend(node: Path, name: str) -> str:
    """Say what would let this user open a node that is there, called ``name`` in the text."""
    status = node.stat()
    return advise(status.st_mode, status.st_gid, name, this_user())


def advise(mode: int, gid: int, name: str, user: User) -> str:
    """Say what would let a user open a node.

    Args:
        mode: Permissions of the node.
        gid: Its group.
        name: How it is called in the text.
        user: Who wants to open it.
    """
    group = _group_name(gid)
    # A node of root's own group has been given to nobody: there is no group to join.
    if gid == 0 or mode & _GROUP_OPENS != _GROUP_OPENS:
        return f"Give {name} to a group with a udev rule (MODE=0660), and join that group"
    if gid in user.groups:
        return f"Its group {group} is yours: something else refuses, such as a sandbox's rules"
    if gid in user.groups_at_login:
        return f"You are in group {group}, but not since this login: log out and in again"
    return f"Run: sudo usermod -aG {group} {user.name}, then log out and in again"


def this_user() -> User:
    """Return who this process is."""
    uid, groups = os.geteuid(), frozenset({os.getegid(), *os.getgroups()})
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return User(str(uid), groups, groups)
    return User(entry.pw_name, groups, frozenset(os.getgrouplist(entry.pw_name, entry.pw_gid)))


def _group_name(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
