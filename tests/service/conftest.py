"""One booted box for all tests of services."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.service.box import Box, booted, why_not

START_WITHIN_S = 10
# Unit -> what is different in it. All are there from the first daemon-reload on: a later one would
# have systemd forget that it has given a service more time to start.
DIFFERENT = {
    "edgert@": "RestartSec=200ms\nWatchdogSec=2\n",
    "edgert@yard": "Nice=19\n",  # it plays a file as fast as it can
    "edgert@slow": f"TimeoutStartSec={START_WITHIN_S}\n",
    "edgert@fails": "ExecStart=\nExecStart=/bin/false\nRestartSec=20ms\n",
}


@pytest.fixture(scope="session")
def box() -> Iterator[Box]:
    """A booted box with edgert in it, whose watchdog and restarts are quicker than the unit's."""
    if reason := why_not():
        pytest.skip(f"no systemd can be booted here: {reason}")
    with booted() as box:
        for unit, text in DIFFERENT.items():
            file = f"/etc/systemd/system/{unit}.service.d/zz-test.conf"
            box.write(file, f"[Service]\n{text}")
        yield box
