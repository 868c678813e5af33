"""Follows a file that grows, line by line."""

from __future__ import annotations

from pathlib import Path


class Lines:
    """Whole lines that were added to a file since the last look; the file may come later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = 0

    def take(self) -> list[bytes]:
        """Return them."""
        try:
            with self.path.open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        return whole.splitlines()
