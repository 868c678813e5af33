"""A directory that images drop into: each file once, and none that is still being written.

A file counts as whole when the kernel says that its writer has closed it or moved it there, or,
where the kernel does not tell (files from before, network file systems, folders below), when it
has not changed between two looks.
"""

from __future__ import annotations

import select
import stat
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from edgert.stages.live import OFFLINE, ONLINE, Condition, Unseen
from edgert.stages.source.files import is_image, natural
from edgert.stages.source.inotify import CREATE, Inotify

LOOK_EVERY_S = 1.0
LOOK_SHARE = 0.05  # of the time at most goes into looking through a large folder
UNCHANGED_S = 1.0
OPEN_UNCHANGED_S = 10.0  # of a file that was seen to be created and not to be closed

Look = tuple[int, int]  # size, time of the last change


class DropFolder:
    """A ``Feed`` (``stages/live.py``) of paths."""

    def __init__(self, folder: Path, *, recursive: bool) -> None:
        self._folder = folder
        self._recursive = recursive
        self._inotify: Inotify | None = None
        self._whole: deque[Path] = deque()
        self._taken: dict[Path, Look] = {}  # of what is still there
        self._seen: dict[Path, tuple[Look, float]] = {}  # not whole yet: how it was, since when
        self._open: set[Path] = set()
        self._look_again_s = 0.0
        self.condition = Condition(state=ONLINE, epochs=1)

    @property
    def ready_fd(self) -> int:
        """What the kernel tells through; -1 where it does not: then looking alone finds files."""
        return self._inotify.fd if self._inotify else -1

    def start(self) -> None:
        """Begin to watch."""
        self._watch()

    def wait_online(self) -> None:
        """A directory is always there, or was refused by the plan."""

    def take_unseen(self) -> Unseen:
        """Return nothing: files wait."""
        return Unseen()

    def is_ready(self) -> bool:
        """Whether a whole file waits."""
        if not self._whole:
            self._hear()
            if time.monotonic() >= self._look_again_s:
                self._look()
        return bool(self._whole)

    def take(self) -> Path:
        """Return the next whole file; wait for it where there is none."""
        while not self.is_ready():
            select.select([fd for fd in (self.ready_fd,) if fd >= 0], [], [], LOOK_EVERY_S)
        return self._whole.popleft()

    def close(self) -> None:
        """Stop watching."""
        if self._inotify:
            self._inotify.close()
            self._inotify = None

    def _watch(self) -> None:
        try:
            self._inotify = Inotify(self._folder)
        except OSError:
            self._inotify = None  # looking finds everything, only later

    def _hear(self) -> None:
        for name, flags in self._inotify.events() if self._inotify else ():
            path = self._folder / name
            if flags & CREATE:
                self._open.add(path)
                continue
            self._open.discard(path)
            look = _look_at(path)
            if look is not None and is_image(path):
                self._accept(path, look)

    def _look(self) -> None:
        """Look through the folder for what the kernel did not tell."""
        start_s = time.monotonic()
        try:
            found = dict(self._looks())
        except OSError as error:
            self._note_gone(error)
            found = {}
        else:
            self._note_there()
        self._taken = {path: look for path, look in self._taken.items() if path in found}
        self._seen = {path: seen for path, seen in self._seen.items() if path in found}
        self._open &= found.keys()
        for path in sorted(found, key=natural):
            if self._taken.get(path) != found[path]:
                self._consider(path, found[path], start_s)
        end_s = time.monotonic()
        self._look_again_s = end_s + max(LOOK_EVERY_S, (end_s - start_s) / LOOK_SHARE)

    def _looks(self) -> Iterator[tuple[Path, Look]]:
        files = self._folder.rglob("*") if self._recursive else self._folder.iterdir()
        for path in filter(is_image, files):
            look = _look_at(path)
            if look is not None:
                yield path, look

    def _consider(self, path: Path, look: Look, now_s: float) -> None:
        known = self._seen.get(path)
        if known is None or known[0] != look:
            self._seen[path] = (look, now_s)
        elif now_s - known[1] >= (OPEN_UNCHANGED_S if path in self._open else UNCHANGED_S):
            self._accept(path, look)

    def _accept(self, path: Path, look: Look) -> None:
        self._seen.pop(path, None)
        self._open.discard(path)
        if self._taken.get(path) != look:
            self._taken[path] = look
            self._whole.append(path)

    def _note_gone(self, error: OSError) -> None:
        reason = f"the directory cannot be read ({(error.strerror or str(error)).lower()})"
        if self.condition.state != OFFLINE:
            self.condition = Condition(OFFLINE, reason, epochs=1)
            self.close()

    def _note_there(self) -> None:
        if self.condition.state == OFFLINE:
            self.condition = Condition(ONLINE, self.condition.reason, reconnects=1, epochs=1)
            self._watch()


def _look_at(path: Path) -> Look | None:
    try:
        found = path.stat()
    except OSError:
        return None  # it has gone again
    return (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None
