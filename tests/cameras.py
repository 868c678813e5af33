"""Cameras for tests: a real RTSP server, an MJPEG server, and a proxy that harms what passes."""

from __future__ import annotations

import io
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

SYSTEM_PYTHON = "/usr/bin/python3"
SERVER = Path(__file__).parent / "rtsp_server.py"
NEEDED = "python3-gi, gir1.2-gst-rtsp-server-1.0, gstreamer1.0-plugins-base and -good"


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def make_h264(path: Path, source: Path | None, seconds: int = 20) -> Path:
    """Encode a video as cameras send it; of a test picture where there is no source."""
    name = str(source) if source else f"testsrc2=size=320x240:rate=10:duration={seconds}"
    with av.open(name, format=None if source else "lavfi") as reader, av.open(path, "w") as writer:
        options = {"preset": "ultrafast", "tune": "zerolatency", "g": "10"}
        stream: Any = writer.add_stream("libx264", rate=10, options=options)
        for number, frame in enumerate(reader.decode(video=0)):
            if number == 10 * seconds:
                break
            if not number:
                stream.width, stream.height, stream.pix_fmt = frame.width, frame.height, "yuv420p"
            picture = frame.reformat(format="yuv420p")
            picture.pts, picture.time_base = number, Fraction(1, 10)
            writer.mux(stream.encode(picture))
        writer.mux(stream.encode(None))
    return path


class RtspServer:
    """A server in a process of its own, at the same port whenever it is started."""

    def __init__(self, video: Path, credentials: str = "") -> None:
        self.port = free_port()
        self._command = [SYSTEM_PYTHON, str(SERVER), str(self.port), str(video)]
        self._command += [credentials] if credentials else []
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"rtsp://127.0.0.1:{self.port}/cam"

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout
        assert self._process.stdout.readline() == "ready\n"

    def signal(self, number: signal.Signals) -> None:
        assert self._process
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None


def require_gstreamer() -> None:
    code = (
        "import gi; gi.require_version('GstRtspServer', '1.0'); gi.require_version('Gst', '1.0');"
        "from gi.repository import Gst, GstRtspServer; Gst.init(None);"
        "assert Gst.ElementFactory.find('qtdemux') and Gst.ElementFactory.find('rtph264pay')"
    )
    there = Path(SYSTEM_PYTHON).exists() and not subprocess.call(
        [SYSTEM_PYTHON, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    if not there:
        pytest.skip(f"no RTSP server: install {NEEDED}")


@contextmanager
def rtsp_server(video: Path, credentials: str = "") -> Iterator[RtspServer]:
    server = RtspServer(video, credentials)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class Proxy:
    """Passes on what a server sends, and harms it on request.

    Attributes:
        spoil: Whether bytes of the pictures are overwritten.
        hold: Whether nothing passes, in either direction, while connections stay.
    """

    def __init__(self, port: int) -> None:
        self.spoil = False
        self.hold = False
        self._target = port
        self._over = threading.Event()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def cut(self) -> None:
        """Cut every connection where it is."""
        for pair in self._pairs:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        for end in (self._listener, *(end for pair in self._pairs for end in pair)):
            end.close()

    def _run(self) -> None:
        while not self._over.is_set():
            ends = {client: (server, 0) for client, server in self._pairs}
            ends |= {server: (client, 1) for client, server in self._pairs}
            ends = {} if self.hold else ends
            for ready in select.select([self._listener, *ends], [], [], 0.05)[0]:
                if ready is self._listener:
                    self._accept()
                else:
                    self._pass_on(ready, *ends[ready])

    def _accept(self) -> None:
        client = self._listener.accept()[0]
        try:
            server = socket.create_connection(("127.0.0.1", self._target), timeout=1)
        except OSError:  # the camera is off
            client.close()
            return
        server.settimeout(None)
        self._pairs.append((client, server))

    def _pass_on(self, one: socket.socket, other: socket.socket, from_server: int) -> None:
        try:
            data = one.recv(1 << 16)
            if not data:
                raise ConnectionResetError
            other.sendall(_spoilt(data) if self.spoil and from_server else data)
        except OSError:
            self._pairs = [pair for pair in self._pairs if one not in pair]
            one.close()
            other.close()


def _spoilt(data: bytes) -> bytes:
    """Overwrite bytes in the middle of what looks like pictures."""
    if len(data) < 400 or data.startswith(b"RTSP"):
        return data
    middle = len(data) // 2
    return data[:middle] + os.urandom(64) + data[middle + 64 :]


def jpeg(width: int, height: int, level: int = 90) -> bytes:
    rows, columns = np.mgrid[:height, :width]
    pixels = ((rows + columns * 2 + level) % 256).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(np.dstack([pixels, pixels, pixels])).save(buffer, "JPEG")
    return buffer.getvalue()


class MjpegServer:
    """An HTTP camera: sends ``picture`` again and again to each client.

    Attributes:
        picture: The JPEG that is sent.
        wait_s: Seconds between two of them.
        frozen: While set, it sends nothing and keeps the connection.
        credentials: What it asks for, as in an Authorization header; empty for nothing.
    """

    def __init__(self, picture: bytes, wait_s: float = 0.02) -> None:
        self.picture = picture
        self.wait_s = wait_s
        self.frozen = threading.Event()
        self.credentials = ""
        self.over = threading.Event()
        self.connections: list[socket.socket] = []
        self._server: ThreadingHTTPServer | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/video.mjpg"

    def start(self) -> None:
        camera = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if camera.credentials and self.headers["Authorization"] != camera.credentials:
                    self.send_response(401)
                    self.send_header("WWW-Authenticate", 'Basic realm="camera"')
                    self.end_headers()
                    return
                camera.connections.append(self.connection)
                self.send_response(200)
                self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=b")
                self.end_headers()
                with suppress(OSError):
                    camera.send(self.wfile)

            def log_message(self, *_: Any) -> None:
                return

        self.over.clear()
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def send(self, into: Any) -> None:
        while not self.over.wait(self.wait_s):
            if not self.frozen.is_set():
                head = f"--b\r\nContent-Type: image/jpeg\r\nContent-Length: {len(self.picture)}"
                into.write(head.encode() + b"\r\n\r\n" + self.picture + b"\r\n")
                into.flush()

    def stop(self) -> None:
        """End every connection, and take no more."""
        self.over.set()
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.connections.clear()


@contextmanager
def mjpeg_server(width: int = 64, height: int = 48, wait_s: float = 0.02) -> Iterator[MjpegServer]:
    server = MjpegServer(jpeg(width, height), wait_s)
    server.start()
    try:
        yield server
    finally:
        server.stop()
