"""An engine on an asyncio transport: the only I/O of this room and of the embedded broker.

Rules: each read does feed, dispatch, flush in this order: what handlers and proton itself answer is written together.
Each write passes `_flush`. What is caused outside of a read is written once per turn of the loop, however many messages
that is. While the transport's buffer is full nothing is taken from the engine, and `ready` tells owners to stop filling
it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Protocol

from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import EngineEvent, Failed, Opened
from qmf.bus.engine.link import Link

#: Bytes that may wait in the engine for one session before owners are asked to stop. Enough for one turn of the loop at
#: full speed; a message of any size passes when less than this is waiting.
BACKLOG = 256 * 1024

#: Bytes of the buffer for reading, at first and at most: it grows while reads fill it, so that a busy connection needs
#: few of them and a quiet one little memory.
READ = 4 * 1024
READ_MOST = 256 * 1024

#: Seconds that a closed transport may take to write what it holds. A peer that does not read would keep it for ever.
LINGER = 3.0


class TransportOwner(Protocol):
    """Who uses a wire. Called on the loop's thread; must not block."""

    def made(self) -> None:
        """The transport is connected."""

    def handle(self, event: EngineEvent) -> None:
        """Something happened on the connection."""

    def writable(self) -> None:
        """Output was written; links that were not `ready` may be now."""

    def lost(self, error: Exception | None) -> None:
        """The transport is gone, by our doing (None), the peer's (None) or an error. Called once, last."""


class AmqpTransport(asyncio.BufferedProtocol):
    """Joins one engine, one transport and one owner."""

    def __init__(self, engine: Engine, owner: TransportOwner, *, throttle: bool = False) -> None:
        """Args:

        throttle: stop reading while the peer does not read. For servers: a client that only writes cannot fill our
            memory with answers. Never for both ends of a connection: each would wait for the other.
        """
        self.engine = engine
        self._owner = owner
        self._throttle = throttle
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._scheduled: asyncio.Handle | None = None
        self._paused = False
        self._buffer = bytearray(READ)
        #: True while events are handled: what that causes is written at the end of it.
        self._dispatching = False
        self._touched = False
        #: Somebody was told that there is no room, and has to be told when there is.
        self._full = False

    # For owners

    def flush_soon(self) -> None:
        """Have output written soon; call after every action on the engine."""
        if self._dispatching:
            self._touched = True
        elif self._scheduled is None and self._transport is not None:
            self._scheduled = self._loop.call_soon(self._run)

    def ready(self, link: Link) -> bool:
        """True while a message for `link` would go out without piling up here."""
        if self._paused or self.engine.credit(link) <= 0:
            return False
        if self.engine.backlog(link) < BACKLOG:
            return True
        self._full = True
        return False

    def close(self) -> None:
        """Write what is waiting, then close the transport. `TransportOwner.lost` follows, within `LINGER` seconds."""
        self._flush()
        self._shut()

    def abort(self) -> None:
        """Close the transport at once. `TransportOwner.lost` follows."""
        if self._transport is not None:
            self._transport.abort()

    @property
    def connected(self) -> bool:
        """True from `TransportOwner.made` until `TransportOwner.lost`."""
        return self._transport is not None

    @property
    def peer(self) -> str:
        """Address and port of the other side."""
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        if not isinstance(name, tuple):
            return "unknown"
        host = f"[{name[0]}]" if ":" in name[0] else name[0]
        return f"{host}:{name[1]}"

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        # asyncio's own selector loop does this, other loops need not: without it a request would wait for the
        # acknowledgement of the one before.
        if (sock := transport.get_extra_info("socket")) is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._owner.made()
        self._tick()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """See asyncio."""
        # A view, since asyncio's TLS fills slices of it, and a slice of a bytearray would be a copy.
        return memoryview(self._buffer)

    def buffer_updated(self, nbytes: int) -> None:
        """See asyncio."""
        buffer = self._buffer
        with memoryview(buffer) as view, view[:nbytes] as data:
            self.engine.feed(data)
        if nbytes == len(buffer) < READ_MOST:
            self._buffer = bytearray(2 * nbytes)
        self._dispatch()
        self._flush()
        if self.engine.waiting:  # proton notices some faults, a refused user's among them, only when it writes
            self._dispatch()
            self._flush()
        self._again()

    def pause_writing(self) -> None:
        """See asyncio."""
        self._paused = True
        if self._throttle and self._transport is not None and self._transport.is_reading():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """See asyncio."""
        self._paused = False
        if self._throttle and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        self.flush_soon()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._transport = None
        for handle in (self._timer, self._scheduled):
            if handle is not None:
                handle.cancel()
        self._timer = self._scheduled = None
        self.engine.release()
        self._owner.lost(exc)

    # The one way out, and the rest of the cycle

    def _flush(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        while not self._paused and (data := self.engine.output()):
            transport.write(data)
        if not self._paused and self.engine.finished:
            self._shut()

    def _shut(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.close()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(LINGER, self.abort)

    def _run(self) -> None:
        self._scheduled = None
        self._flush()
        if self._dispatch():
            self._flush()
        self._again()

    def _dispatch(self) -> bool:
        """Hand events to the owner; True when there may be something to write now."""
        happened = self._touched = False
        self._dispatching = True
        try:
            while self._transport is not None and (event := self.engine.next_event()) is not None:
                happened = True
                self._owner.handle(event)
                if isinstance(event, Opened):
                    self._tick()
                elif isinstance(event, Failed):
                    self.engine.close(event.condition, event.description)
                    self.close()
                    return False
            if self._transport is not None and not self._paused:
                self._owner.writable()
        finally:
            self._dispatching = False
        return happened or self._touched

    def _again(self) -> None:
        """What was just written may have made the room that somebody waits for."""
        if self._full and not self._paused:
            self._full = False
            self.flush_soon()

    def _tick(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._timer is not None:
            self._timer.cancel()
        deadline = self.engine.tick(self._loop.time())
        self._timer = None if deadline is None else self._loop.call_at(deadline, self._tick)
        self.flush_soon()
