"""Archives made for tests, and a real https server with a certificate made for it."""

from __future__ import annotations

import http.server
import ssl
import subprocess
import threading
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Site:
    """What the server has: path -> content, or (status, headers, content)."""

    base: str
    context: ssl.SSLContext
    authority: Path
    pages: dict[str, bytes | tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    stalled: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)


def make_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # duplicate names are among what is tried
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return path


def make_certificate(folder: Path) -> tuple[Path, Path]:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return key, certificate


class Server(http.server.ThreadingHTTPServer):
    """Clients that leave in the middle are what is tested here: not worth a traceback."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[Site]:
    key, certificate = make_certificate(folder)
    server = Server(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    inside = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    inside.load_cert_chain(certificate, key)
    server.socket = inside.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    trusting = ssl.create_default_context(cafile=str(certificate))
    site = Site(f"https://localhost:{server.server_port}", trusting, certificate)
    server.RequestHandlerClass = handler_of(site)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield site
    finally:
        site.go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()


def handler_of(site: Site) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # noqa: N802  the name http.server calls
            site.asked.append(self.path)
            page = site.pages.get(self.path, (404, {}, b""))
            status, headers, content = (200, {}, page) if isinstance(page, bytes) else page
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            if "X-Stall" in headers:
                self.wfile.write(content[: len(content) // 2])
                self.wfile.flush()
                site.stalled.set()
                site.go_on.wait()
                content = content[len(content) // 2 :]
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
