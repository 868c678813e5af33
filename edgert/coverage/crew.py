"""Children that host an adapter, and the work that is dealt out to them.

A child that crashes, hangs or wants too much memory ends the one piece of work it had; the next one
gets a fresh child. One thread for each child, which only waits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from edgert.coverage.adapter import Facts
from edgert.coverage.host import Host
from edgert.coverage.protocol import Ask, Reply, Spec

OnReply = Callable[[Ask, Reply], None]


def ask_facts(spec: Spec) -> Facts:
    """Return what an adapter says of itself; ``unavailable`` where it cannot even start."""
    host = Host(spec)
    try:
        return host.facts
    finally:
        host.close()


def ask_all(
    spec: Spec, asks: Iterable[Ask], jobs: int, timeout_s: float, on_reply: OnReply
) -> None:
    """Deal work out to children with the same adapter.

    Args:
        spec: The adapter.
        asks: The work.
        jobs: How many children at once.
        timeout_s: How long one piece of work may take.
        on_reply: Called for each piece, one at a time, in the order they end.
    """
    crew = _Crew(spec, iter(asks), timeout_s, on_reply)
    with ThreadPoolExecutor(jobs, "coverage") as pool:
        try:
            ended = [pool.submit(crew.serve) for _ in range(jobs)]
            for each in ended:
                each.result()
        finally:
            crew.stop()


class _Crew:
    """The work that is left, shared by the threads."""

    def __init__(
        self, spec: Spec, asks: Iterator[Ask], timeout_s: float, on_reply: OnReply
    ) -> None:
        self._spec = spec
        self._asks = asks
        self._timeout_s = timeout_s
        self._on_reply = on_reply
        self._lock = threading.Lock()
        self._hosts: set[Host] = set()
        self._stopped = False

    def serve(self) -> None:
        """Do work until none is left, with one child after another."""
        host: Host | None = None
        try:
            while (ask := self._next()) is not None:
                if host is None or host.is_gone:
                    host = self._start(host)
                reply = host.ask(ask, self._timeout_s)
                with self._lock:
                    if not self._stopped:
                        self._on_reply(ask, reply)
        finally:
            if host is not None:
                host.close()

    def stop(self) -> None:
        """Kill what runs: what it was asked gets no reply."""
        with self._lock:
            self._stopped = True
            for host in self._hosts:
                host.kill()

    def _next(self) -> Ask | None:
        with self._lock:
            return None if self._stopped else next(self._asks, None)

    def _start(self, before: Host | None) -> Host:
        host = Host(self._spec)
        with self._lock:
            if before is not None:
                before.close()
                self._hosts.discard(before)
            self._hosts.add(host)
            if self._stopped:
                host.kill()
        return host
