"""Keys for results that leave this machine: CurveZMQ, encrypted, and each side proves who it is.

NAME.key_secret    of the sink, mode 0600; NAME.key is handed to subscribers
clients/*.key      who may subscribe; without this folder, whoever has the sink's NAME.key
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgert.errors import UserError
from edgert.options import Options, option
from edgert.paths import below

if TYPE_CHECKING:
    import zmq

_MEND = "make keys by `edgert keys NAME`"
_KEY_FILE_BYTES = 10_000


class CurveOptions(Options):
    """``curve:`` of ``sink.zmq``."""

    secret_file: str = option(
        min_length=1,
        description="The sink's secret key (`edgert keys NAME` makes it), this user's alone; "
        "relative to the file.",
    )
    clients: str = option(
        default="",
        description="A folder with the public keys (`*.key`) of who may subscribe. Without it, "
        "whoever has the sink's public key.",
    )


def read_secret(options: CurveOptions, folder: str, place: str) -> tuple[bytes, bytes]:
    """Return the sink's public and secret key.

    Raises:
        UserError: There is none, it is no key, or others can read it.
    """
    from zmq.auth import load_certificate

    path = below(folder, options.secret_file)
    where = f"{place}, key '{path}'"
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _KEY_FILE_BYTES:
            raise UserError(where, "is no key file", _MEND)
        if found.st_mode & 0o077:
            raise UserError(where, "can be read by others", f"`chmod 600 {path}`")
        public, secret = load_certificate(path)
    except OSError as error:
        raise UserError(where, f"cannot be read: {error.strerror}", _MEND) from error
    except ValueError:  # without its text, which might be the key's
        raise UserError(where, "is no key file", _MEND) from None
    if secret is None:
        raise UserError(where, "is a public key", "give the file NAME.key_secret")
    return public, secret


def clients_folder(options: CurveOptions, folder: str, place: str) -> Path | None:
    """Return where the public keys of subscribers are; None where they need none.

    Raises:
        UserError: There is no key.
    """
    if not options.clients:
        return None
    path = below(folder, options.clients)
    if not any(path.glob("*.key")):
        fault = "has no file *.key: nobody could subscribe"
        raise UserError(
            f"{place}, folder '{path}'", fault, "put the subscribers' public keys there"
        )
    return path


class Keeper:
    """Lets in who has a key, for as long as it is open.

    Args:
        context: The ZeroMQ context of the socket, which is not bound yet.
        socket: The socket.
        options: The keys.
        folder: Folder that relative paths start from.
        place: The stage, for errors.
    """

    def __init__(
        self,
        context: zmq.Context[Any],
        socket: zmq.Socket[bytes],
        options: CurveOptions,
        folder: str,
        place: str,
    ) -> None:
        from zmq.auth.thread import ThreadAuthenticator

        socket.curve_publickey, socket.curve_secretkey = read_secret(options, folder, place)
        socket.curve_server = True
        clients = clients_folder(options, folder, place)
        self._authenticator = ThreadAuthenticator(context) if clients else None
        if self._authenticator is not None:
            self._authenticator.start()
            self._authenticator.configure_curve(domain="*", location=str(clients))

    def close(self) -> None:
        """Let nobody in any more."""
        if self._authenticator is not None:
            self._authenticator.stop()
