"""Takes the credentials out of text before anybody reads it: logs, errors, plans, summaries."""

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


def redact(text: str) -> str:
    """Return a text in which no URL has credentials any more, neither before its host nor after ?.

    Rather too much is hidden than too little: of ``rtsp://host/a@b`` the host goes, too.
    """
    if "://" not in text:
        return text
    return _QUERY.sub(rf"\1{HIDDEN}", _USERINFO.sub(f"{HIDDEN}@", text))


def redact_all(value: Any) -> Any:
    """Return plain data (mappings, lists, scalars) in which every text is redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact_all(key): redact_all(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_all(item) for item in value]
    return value
