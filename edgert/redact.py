"""What no text may have when it leaves: credentials, in data, too; and what steers a terminal."""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "***"
# Greedy up to the last "@" before a blank: a password may hold "/", "@", ":", "?" or a quote.
_USERINFO = re.compile(r"(?<=://)\S*@")
# Cameras take them in the query as well.
_QUERY = re.compile(
    r"(?i)(?<=[?&])([a-z_-]*(?:user|usr|login|pass|pwd|token|secret|auth|key|sig)[a-z_-]*=)[^&#\s'\"<>]*"
)
# All of C0 but tab and line feed, DEL, C1, and Unicode's marks that turn the direction of text:
# with them a name is shown as another (UAX #9).
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def redact(text: str) -> str:
    """Return a text in which no URL has credentials any more, neither before its host nor after ?.

    Rather too much is hidden than too little: of ``rtsp://host/a@b`` the host goes, too.
    """
    if "://" not in text:
        return text
    return _QUERY.sub(rf"\1{HIDDEN}", _USERINFO.sub(f"{HIDDEN}@", text))


def for_terminals(text: str) -> str:
    """Return a text without credentials and without control characters, line ends and tabs aside.

    Runtimes quote what is in a damaged or hostile model; it must not steer a terminal.
    """
    return _CONTROL.sub(_escaped, redact(text))


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def redact_all(value: Any) -> Any:
    """Return plain data (mappings, lists, scalars) in which every text is redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact_all(key): redact_all(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_all(item) for item in value]
    return value
