"""A connection of a loop with a gate: the loop's wait reads it, and other threads write to it while the gate is open.

What they do needs no lock: it is one call of a compiled function, which finds out first whether anything has changed
since the thread has looked at what it is based on. Where anything is in the way it does nothing, and the caller has to
hand the matter over to the loop's thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Any, Protocol

from qmf.bus.engine.engine import Engine
from qmf.bus.engine.link import Link
from qmf.bus.engine.native import Fed
from qmf.bus.engine.thread_actions import ThreadActions, UnreadBytes
from qmf.bus.gated_loop import GatedLoop

#: Bytes of a message that another thread sends at most: more might not fit into the socket.
MAX_MESSAGE = 64 * 1024


class LaneUser(Protocol):
    """The protocol of the connection."""

    engine: Engine

    @property
    def at_rest(self) -> bool:
        """True if nothing waits to be written, or to be called."""

    def get_buffer(self, sizehint: int) -> memoryview:
        """See asyncio."""

    def buffer_updated(self, nbytes: int) -> None:
        """See asyncio."""

    def on_read_by_other(self, data: bytes, found: Fed | None) -> None:
        """Another thread has read bytes, and fed them unless `found` is None."""

    def write_now(self) -> None:
        """Write what the engine has."""


class Lane:
    """The lane of one connection.

    Attributes:
        descriptor: of the socket, for reading.
    """

    def __init__(self, loop: GatedLoop, transport: asyncio.Transport, user: LaneUser, actions: ThreadActions) -> None:
        """Have the loop's wait read the socket of a transport, in its place.

        Args:
            loop, transport, user: as of `lane_of`.
            actions: of the user's engine.

        Raises:
            OSError: the process has no file descriptors left.
        """
        self._loop = loop
        self._transport = transport
        self._user = user
        self._actions = actions
        sock = transport.get_extra_info("socket")
        # Another descriptor, for the transport watches its own when it cannot write.
        self.descriptor = os.dup(sock.fileno())
        self._unwritten: list[bytes] = []
        self._unwalked: list[bytes] = []
        self._unread: list[UnreadBytes] = []
        lists = self._unwritten, self._unwalked, self._unread
        self._place = actions.place(loop.gate.address, sock.fileno(), *lists)
        self._given_back = False
        transport.pause_reading()
        loop.read_by(self)

    # SocketReader

    def buffer(self) -> memoryview:
        """See `SocketReader`."""
        return self._user.get_buffer(-1)

    def on_read(self, size: int) -> None:
        """See `SocketReader`."""
        if self._transport.is_closing():
            self.give_back()
        elif not size:
            self._take_in(0)
            self.give_back()
            self._transport.resume_reading()  # it finds the end, or the error
        else:
            self._take_in(size)

    def _take_in(self, size: int) -> None:
        """Process what another thread has read, and then what this one has."""
        try:
            while self._unread:
                self._user.on_read_by_other(*self._unread.pop(0))
            if size:
                self._user.buffer_updated(size)
        except Exception as error:  # noqa: BLE001 - as asyncio does
            message = "Fatal error: protocol.buffer_updated() call failed."
            self._loop.call_exception_handler({"message": message, "exception": error, "transport": self._transport})
            self._transport.abort()

    def on_left(self) -> None:
        """See `SocketReader`."""
        if not self._transport.is_closing():
            self._take_in(0)
        self._user.write_now()

    def give_back(self) -> None:
        """See `SocketReader`."""
        if not self._given_back:
            self._given_back = True
            if not self._loop.stop_reading(self):
                os.close(self.descriptor)

    # For the transport

    def take_left(self) -> bytes:
        """What another thread could not write, which comes before all that the engine has."""
        if self._unwritten:
            data = b"".join(self._unwritten)
            self._unwritten.clear()
            return data
        if self._unwalked:
            data = b"".join(self._unwalked)
            self._unwalked.clear()
            return self._actions.walk(data)
        return b""

    @property
    def has_left(self) -> bool:
        """True if `take_left` has bytes."""
        return bool(self._unwritten or self._unwalked or self._unread)

    # For other threads

    def epoch(self) -> int:
        """What an action is to be based on: after this, look at all that it depends on. 0 if there can be none."""
        epoch = self._loop.gate.epoch()
        if not epoch or self._given_back or self.has_left or not self._user.at_rest or not self._actions.possible:
            return 0
        return 0 if self._transport.is_closing() or self._transport.get_write_buffer_size() else epoch

    def send(self, epoch: int, link: Link, data: bytes, backlog: int, unsettled: dict[int, Any], item: object) -> bool:
        """Send a message and write it, which has to be possible at the epoch.

        Args:
            epoch: of `epoch`.
            link: where it is sent.
            data: the encoded message.
            backlog: see `Deliveries.send_all`.
            unsettled: where `item` is noted by its delivery tag.

        Returns:
            False if something has changed since the epoch, or there is no credit: nothing has happened.
        """
        return self._actions.send(self._place, epoch, link, data, backlog, unsettled, item)

    def accept(self, epoch: int, link: Link, delivery_tags: list[int]) -> bool:
        """Accept messages that were received, and write that; as `send`."""
        return self._actions.accept(self._place, epoch, link, delivery_tags)

    def wait_and_read(self, signal: int, seconds: float, reading: tuple[object, ...]) -> bool | None:
        """Wait for messages of a link, and read them; see `ThreadActions.wait_and_read`."""
        if self._given_back or self._transport.is_closing() or not self._actions.possible:
            return None
        return self._actions.wait_and_read(self._place, signal, seconds, reading)


def lane_of(loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, user: LaneUser) -> Lane | None:
    """The lane of a connection; None for one whose loop has no gate, or that is not plain TCP.

    Args:
        loop: of the transport.
        transport: calls `user` with what it reads.
        user: the protocol.
    """
    if not isinstance(loop, GatedLoop) or transport.get_extra_info("sslcontext") is not None:
        return None
    actions = user.engine.thread_actions
    if actions is None or transport.get_extra_info("socket") is None:
        return None
    with contextlib.suppress(NotImplementedError, OSError):  # one of ours, above another; no descriptors are left
        above: object = transport.get_protocol()
        return Lane(loop, transport, user, actions) if above is user else None
    return None
