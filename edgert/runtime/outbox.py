"""A queue to whose reader nobody waits: for the supervisor, which must never wait for a worker."""

from __future__ import annotations

from collections import deque

from edgert.transport.queue import PipeQueue
from edgert.transport.token import Token


class Outbox(PipeQueue):
    """Tokens leave in order, when there is room."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        super().__init__(read_fd, write_fd)
        self.unsent: deque[Token] = deque()

    def send(self, token: Token) -> None:
        """Send a token, or keep it for later."""
        if self.unsent or not self.send_nowait(token):
            self.unsent.append(token)

    def send_again(self) -> None:
        """Send what was kept, as far as there is room."""
        while self.unsent and self.send_nowait(self.unsent[0]):
            self.unsent.popleft()
