"""What is shown on standard error while something goes on: one line, written over."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from edgert.runtime.notify import Notifier
    from edgert.runtime.run import Progress

_CLEAR = "\r\x1b[2K"


class StatusLine:
    """A line on a terminal that is written over; on anything else nothing.

    Log lines come above it (``make_way``).
    """

    def __init__(self, stream: TextIO | None = None, *, wanted: bool = True) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self.is_shown = wanted and self._stream.isatty()
        self._last = ""

    def show(self, text: str) -> None:
        """Show a text in place of the last one."""
        if self.is_shown and text != self._last:
            self._last = text
            self._stream.write(f"{_CLEAR}{self._cut(text)}")
            self._stream.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._last:
            self._last = ""
            self._stream.write(_CLEAR)
            self._stream.flush()

    def _cut(self, text: str) -> str:
        """Cut a text to the terminal's width: of a line that wraps only the end can be cleared."""
        columns = os.get_terminal_size(self._stream.fileno()).columns or len(text) + 1
        return text if len(text) < columns else f"{text[: columns - 4]}..."

    def make_way(self, _record: logging.LogRecord) -> bool:
        """Clear the line for a log line: a filter that lets everything pass."""
        self.clear()
        return True


def run_ticker(line: StatusLine, name: str) -> Callable[[Progress], None]:
    """Return what shows the progress of a run on a status line."""

    def tick(progress: Progress) -> None:
        frames = progress.frames
        if progress.phase == "starting":
            line.show(f"{name}: starting")
            return
        again = f"restarts {progress.restarts}  " if progress.restarts else ""
        away = "".join(f"  {source}" for source in progress.away())
        line.show(
            f"{name}: {progress.phase}  {frames['processed']} frames  {progress.fps:.1f}/s  "
            f"dropped {frames['dropped']}  lost {frames['lost']}  {again}{progress.elapsed_s:.0f} s"
            f"{away}"
        )

    return tick


def pull_ticker(
    line: StatusLine, tell: Callable[[str], None], notifier: Notifier | None = None
) -> Callable[[str, int, int], None]:
    """Return what says that something is pulled: once in words, then as a share on the line."""
    told: set[str] = set()

    def tick(name: str, done: int, total: int) -> None:
        if name not in told:
            told.add(name)
            line.clear()
            tell(f"pulling {name}")
        if notifier:
            notifier.pulling(name)
        if total:
            line.show(f"pulling {name}: {done / total:.0%} of {total / 1e6:.1f} MB")

    return tick
