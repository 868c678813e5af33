"""docs/service.md: its files are saved and its commands run, in a box, as root."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edgert.device import cores
from tests.docs.walkthrough import blocks
from tests.service.box import PROGRAM, Box

pytestmark = pytest.mark.process


@pytest.fixture
def video(tmp_path: Path) -> bytes:
    """A second of a picture that moves."""
    import av
    import numpy as np

    file = tmp_path / "street.avi"
    with av.open(str(file), "w") as container:
        stream = container.add_stream("mjpeg", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuvj420p"
        for shade in range(25):
            frame = av.VideoFrame.from_ndarray(np.full((48, 64, 3), shade * 9, np.uint8))
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.read_bytes()


def test_the_walk_through(box: Box, video: bytes) -> None:
    box.run("ln", "-sf", PROGRAM, "/usr/local/bin/edgert")
    for name in ("street", "other"):
        box.write(f"/srv/{name}.avi", video)
    core = cores.allowed()[0]
    said = []
    for file, text in blocks("service.md"):
        if file:
            box.write(f"/srv/{file}", text.replace('cores: "0"', f'cores: "{core}"'))
        else:
            said.append(box.shell(f"set -e; export PATH=$PATH:/usr/local/bin; cd /srv; {text}"))
    installed, looked, changed, removed = said
    assert installed.endswith("edgert@yard.service is enabled and ready\n")
    used = "/etc/systemd/system/edgert@yard.service.d/plan.conf\n"
    assert (used in installed) == (len(cores.allowed()) > 1)
    assert re.search(r"^yard +enabled +active \(running\) +0 +running: ", looked, re.M)
    assert re.search(r"^yard: running for \d+ s, ", looked, re.M)
    assert "unchanged /etc/edgert/yard.yaml\n" in changed
    assert "kept      /etc/edgert/yard.env (it is yours)\n" in changed
    assert "removed   /etc/edgert/yard.yaml\n" in removed
    assert box.run("test", "-s", "/var/lib/edgert/yard/yard.mp4").returncode == 0
