"""One adapter in one child, asked again and again; a new child where it crashed or hung."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from edgert.coverage.adapter import Facts
from edgert.coverage.host import Host
from edgert.coverage.protocol import Ask, Reply, Spec
from edgert.errors import DeviceError


class Asking:
    """A device that answers, started when it is first asked.

    Args:
        device: ``adapter:DEVICE``.
        spec: The adapter.
        timeout_s: How long one answer may take.
    """

    def __init__(self, device: str, spec: Spec, timeout_s: float) -> None:
        self.device = device
        self._spec = spec
        self._timeout_s = timeout_s
        self._host: Host | None = None

    def facts(self) -> Facts:
        """Return what the adapter says of itself.

        Raises:
            DeviceError: It cannot answer here, or computes nothing.
        """
        facts = self._here().facts
        if facts.evidence == "unavailable":
            raise DeviceError(f"device {self.device}", facts.reason, facts.mend)
        if not facts.computes:
            fault = "it computes nothing, so there is nothing to compare"
            mend = "'edgert coverage' shows what it says of a model"
            raise DeviceError(f"device {self.device}", fault, mend)
        return facts

    def ask(self, ask: Ask) -> Reply:
        """Ask for one piece of work."""
        return self._here().ask(ask, self._timeout_s)

    def renew(self) -> None:
        """Let the next question go to a fresh child: nothing that was asked before is in it."""
        if self._host is not None:
            self._host.close()
            self._host = None

    def _here(self) -> Host:
        if self._host is not None and self._host.is_gone:
            self.renew()
        if self._host is None:
            self._host = Host(self._spec)
        return self._host

    def __enter__(self) -> Self:
        """Begin without a child."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave no child behind."""
        self.renew()
