"""``sink.zmq``: results published to whoever subscribes, by ZeroMQ."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from edgert.errors import BusyError, UserError
from edgert.options import option
from edgert.results import encode_line
from edgert.stages.base import (
    Inputs,
    Outputs,
    PlanContext,
    Ports,
    Stage,
    StageContext,
    StageOptions,
)
from edgert.stages.sink.address import IPC, check_address, default_address, make_folder
from edgert.stages.sink.curve import CurveOptions, Keeper, clients_folder, read_secret
from edgert.stages.sink.message import RESULT_INPUTS, ResultMaker, require_one
from edgert.tensor import PortSpec

if TYPE_CHECKING:
    import zmq

LINGER_MS = 1000


class ZmqOptions(StageOptions):
    """Options of ``sink.zmq``."""

    address: str = option(
        default="",
        description="Where it is published: `ipc://PATH` or `tcp://HOST:PORT`; without it, a "
        "socket named after the stage in the user's runtime folder, logged at the start.",
    )
    curve: CurveOptions | None = option(
        default=None,
        description="Keys, with which an address that other machines reach is allowed: what is "
        "published is encrypted, and nobody without a key gets it.",
    )
    insecure: bool = option(
        default=False,  # noqa: FBT003
        description="Allow an address that other machines reach without keys: whoever reaches it "
        "reads every result. Told at each start.",
    )
    wait_for: int = option(
        default=0,
        ge=0,
        le=10_000,
        description="How many subscriptions must be there before the first frame.",
    )
    wait_s: float = option(
        default=10.0,
        ge=0,
        le=600,
        description="How long they are waited for; then it starts without.",
    )
    queue: int = option(
        default=1000,
        ge=1,
        le=1_000_000,
        description="Results kept for a subscriber that is slow; then they are lost.",
    )


class ZmqSink(Stage):
    """Publishes ``[stream, JSON line]`` for every frame.

    Nobody can slow the pipeline down: what is lost to a slow or an absent subscriber is counted.

    Attributes:
        unheard: Results published while nobody subscribed.
        overrun: Results that at least one subscriber was too slow for.
    """

    inputs: ClassVar = RESULT_INPUTS
    options: ClassVar = ZmqOptions

    @classmethod
    def plan(cls, options: ZmqOptions, inputs: Ports, context: PlanContext) -> dict[str, PortSpec]:
        """Check what arrives, and the address."""
        require_one(inputs, context.place)
        address = options.address or default_address(context.name)
        is_guarded = options.curve is not None or options.insecure
        check_address(address, context.place, is_guarded=is_guarded)
        if options.curve is not None:
            read_secret(options.curve, context.folder, context.place)
            clients_folder(options.curve, context.folder, context.place)
        return {}

    def __init__(self, options: ZmqOptions, context: StageContext) -> None:
        super().__init__(options, context)
        self._results = ResultMaker(context)
        self._subscriptions = 0
        self._is_bound = False
        self._keeper: Keeper | None = None
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self.unheard = 0
        self.overrun = 0

    def open(self) -> None:
        """Bind the socket and wait for the subscriptions asked for."""
        import zmq

        self._zmq = zmq
        self.address = self.settings.address or default_address(self.context.name)
        self._context = zmq.Context()
        self._socket: zmq.Socket[bytes] = self._context.socket(zmq.XPUB)
        self._socket.set(zmq.XPUB_VERBOSER, 1)  # each subscriber's word, not only the first's
        self._socket.set(zmq.XPUB_NODROP, 1)  # tell of a full queue instead of dropping silently
        self._socket.set(zmq.SNDHWM, self.settings.queue)
        self._socket.set(zmq.LINGER, LINGER_MS)
        try:
            self._guard()
            self._bind()
        except UserError:
            self.close()
            raise
        self.context.report["address"] = self.address
        self.context.log.info("%s: publishes at %s", self.context.place, self.address)
        self._wait_for_subscriptions()

    def process(self, inputs: Inputs, outputs: Outputs) -> None:
        """Publish the result of one frame."""
        result = self._results.make(inputs)
        self._hear()
        if not self._subscriptions:
            if not self.unheard:
                self.context.log.warning("%s: nobody subscribes", self.context.place)
            self.unheard += 1
            return
        self._send([result.stream.encode(), encode_line(result)])

    def close(self) -> None:
        """Give what is queued a second to leave, and say what was lost."""
        if self._context is None:
            return
        self._socket.close()
        if self._keeper is not None:
            self._keeper.close()
            self._keeper = None
        self._context.term()
        self._context = None
        if self._is_bound and self.address.startswith(IPC):
            Path(self.address.removeprefix(IPC)).unlink(missing_ok=True)  # ZeroMQ leaves it
        for count, what in (
            (self.unheard, "were published while nobody subscribed"),
            (self.overrun, "did not reach a subscriber that was too slow"),
        ):
            if count:
                self.context.log.warning("%s: %d results %s", self.context.place, count, what)

    def _guard(self) -> None:
        """Ask for keys; say so where results are open to everybody."""
        curve, place = self.settings.curve, self.context.place
        if curve is not None and self._context is not None:
            folder = self.context.folder
            self._keeper = Keeper(self._context, self._socket, curve, folder, place)
        elif self.settings.insecure:
            said = "%s: insecure: whoever reaches '%s' reads every result"
            self.context.log.warning(said, place, self.address)

    def _bind(self) -> None:
        if self.address.startswith(IPC):
            path = self.address.removeprefix(IPC)
            make_folder(path, self.context.place)
            _check_unused(path, self.context.place)
        before = os.umask(0o177)  # a socket of this user alone
        try:
            self._socket.bind(self.address)
            self._is_bound = True
        except self._zmq.ZMQError as error:
            place = f"{self.context.place}, address '{self.address}'"
            raise UserError(
                place, f"cannot be bound: {error.strerror}", "give another `address`"
            ) from error
        finally:
            os.umask(before)

    def _wait_for_subscriptions(self) -> None:
        wanted = self.settings.wait_for
        ends_s = time.monotonic() + self.settings.wait_s
        while self._subscriptions < wanted and (left_s := ends_s - time.monotonic()) > 0:
            self._socket.poll(int(left_s * 1000) + 1)
            self._hear()
        if self._subscriptions < wanted:
            self.context.log.warning(
                "%s: %d of %d subscriptions after %g s: starts without",
                self.context.place, self._subscriptions, wanted, self.settings.wait_s,
            )  # fmt: skip

    def _hear(self) -> None:
        """Take in who came and who went."""
        while self._has_news():
            said = self._socket.recv(self._zmq.NOBLOCK)
            if said[:1] == b"\x01":
                self._subscriptions += 1
            elif said[:1] == b"\x00":
                self._subscriptions -= 1

    def _has_news(self) -> bool:
        events: Any = self._socket.get(self._zmq.EVENTS)
        return bool(events & self._zmq.POLLIN)

    def _send(self, parts: list[bytes]) -> None:
        try:
            self._socket.send_multipart(parts, self._zmq.NOBLOCK, copy=True)
        except self._zmq.Again:
            self.overrun += 1
            self._send_to_those_with_room(parts)

    def _send_to_those_with_room(self, parts: list[bytes]) -> None:
        # With XPUB_NODROP one full queue keeps a message from everybody.
        self._socket.set(self._zmq.XPUB_NODROP, 0)
        try:
            self._socket.send_multipart(parts, self._zmq.NOBLOCK)
        finally:
            self._socket.set(self._zmq.XPUB_NODROP, 1)


def _check_unused(path: str, place: str) -> None:
    """Refuse a socket that another run listens at: binding would silently take its place."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return
    raise BusyError(
        f"{place}, address '{IPC}{path}'",
        "another process publishes there",
        "stop it, or give another `address`",
    )
