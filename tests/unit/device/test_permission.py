"""What lets a user open a node."""

from __future__ import annotations

import grp
import os

import pytest

from edgert.device import permission
from edgert.device.permission import User

NODE = "/dev/accel/accel0"
NAMELESS = 54321  # a group that no database knows
NOBODY_YET = User("ana", frozenset({1000}), frozenset({1000}))


@pytest.mark.parametrize(
    ("mode", "gid", "user", "said"),
    [
        (0o660, NAMELESS, NOBODY_YET, f"Run: sudo usermod -aG {NAMELESS} ana, then log out"),
        (0o660, NAMELESS, NOBODY_YET._replace(groups_at_login={NAMELESS}), "log out and in again"),
        (0o660, NAMELESS, NOBODY_YET._replace(groups={NAMELESS}), "something else refuses"),
        (0o660, 0, NOBODY_YET, f"Give {NODE} to a group with a udev rule"),
        (0o600, NAMELESS, NOBODY_YET, f"Give {NODE} to a group with a udev rule"),
        (0o640, NAMELESS, NOBODY_YET, f"Give {NODE} to a group with a udev rule"),
    ],
)
def test_the_mend(mode, gid, user, said):
    assert said in permission.advise(mode, gid, NODE, user)


def test_a_group_is_called_by_its_name():
    group = next(entry for entry in grp.getgrall() if entry.gr_gid != 0)
    said = permission.advise(0o660, group.gr_gid, NODE, NOBODY_YET)
    assert f"-aG {group.gr_name} ana" in said


def test_this_user_and_its_own_file(tmp_path):
    file = tmp_path / "node"
    file.touch(0o660)
    assert permission.may_use(file)
    assert not permission.may_use(tmp_path / "absent")
    assert os.getegid() in permission.this_user().groups
    assert permission.mend(file, "node")
