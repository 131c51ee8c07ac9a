"""An engine on an asyncio transport: the only I/O of this package and of the embedded broker.

Rules: each read does feed, dispatch, flush in this order, so that all answers, of the owner and of proton, are written
together; where tasks wait for what was read, they send before that (`flush_last`). Every write is done by `_flush`, but
for those of other threads (`lane.py`). Output that is caused outside of a read is written once per turn of the loop
and, for the peer to work at the same time, after every `MAX_ACTIONS` messages; less often while several connections of
a broker have output, since their peers have work already. While the transport's buffer is full, nothing is taken from
the engine, and `can_send` asks owners to stop sending.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from typing import Any, cast

from qmf.bus.channels import client_channel, server_channel
from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import ConnectionFailed, ConnectionOpened
from qmf.bus.engine.link import Link
from qmf.bus.engine.native import Fed
from qmf.bus.lane import Lane, lane_of
from qmf.bus.transport_owner import NO_OWNER, TransportOwner
from qmf.sasl.channel import Channel

#: Bytes that may wait in the engine per session before `can_send` becomes False. Enough for one turn of the loop at
#: full speed; a message of any size may be sent while less than this is waiting.
MAX_BACKLOG = 256 * 1024

#: Messages, or other actions on the engine, after which output is written before the turn of the loop ends; times the
#: number of connections that have output, up to `MAX_FACTOR`.
MAX_ACTIONS = 16
MAX_FACTOR = 4

#: Bytes written for tasks in one turn of the loop, from which on the thread yields its processor before more is read.
GIVE_WAY = 4096
_give_way: Callable[[], object] = getattr(os, "sched_yield", lambda: None)

#: Bytes of the buffer for reading, at first and at most. It grows while reads fill it, so that a busy connection needs
#: few reads and a quiet one little memory.
MIN_READ_BUFFER = 4 * 1024
MAX_READ_BUFFER = 256 * 1024

#: Seconds that `accept_later` may take. Answers to requests come sooner, mostly; and whoever closes a connection after
#: the last outcome does not notice it.
ACCEPT_DELAY = 0.01

#: Seconds that a transport which is being closed may take to write its buffer. It is aborted then: a peer that does not
#: read would keep it open.
LINGER = 3.0


class PendingWrites:
    """What transports that work for each other share.

    Attributes:
        count: transports with output that is to be written in this turn of the loop.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class AmqpTransport(asyncio.BufferedProtocol):
    """Connects one engine, one asyncio transport and one owner.

    Attributes:
        engine: of the connection.
        octets_in, octets_out: bytes that were read and written; without those of TLS, and of `lane`.
        lane: how other threads write to the connection; None where they do not.
    """

    def __init__(
        self, engine: Engine, owner: TransportOwner, *, throttle: bool = False, pending: PendingWrites | None = None
    ) -> None:
        """Connect an engine with its owner; there is no asyncio transport yet.

        Args:
            engine: of the connection.
            owner: notified of what happens.
            throttle: stop reading while the peer does not read. For servers: a client that only writes cannot fill our
                memory with answers. Never for both ends of a connection: each would wait for the other.
            pending: shared with the other connections of a broker; None for a connection on its own.
        """
        self.engine = engine
        self.octets_in = self.octets_out = 0
        self.lane: Lane | None = None
        self._owner = owner
        self._throttle = throttle
        self._pending = pending or PendingWrites()
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._scheduled: asyncio.Handle | None = None
        #: Actions since a write was scheduled.
        self._actions = 0
        #: Until messages of `accept_later` are accepted.
        self._accept_timer: asyncio.TimerHandle | None = None
        self._paused = False
        #: A view, since asyncio's TLS writes to slices of it, and a slice of a bytearray would be a copy.
        self._buffer = memoryview(bytearray(MIN_READ_BUFFER))
        #: True while events are handled: the output that they cause is written afterwards.
        self._dispatching = False
        self._flush_requested = False
        #: `flush_last` was called for what is being read.
        self._flushes_last = False
        #: Of `call_last`, and of `call_before_write`.
        self._last: list[Callable[[], object]] = []
        self._before_write: list[Callable[[], object]] = []
        #: Calls of `hold_output`, and the end that waits for them.
        self._holds = 0
        self._close_after_holds = False
        #: `can_send` was False because of the backlog: `on_writable` is due when there is room.
        self._backlog_full = False

    # For owners

    def flush_soon(self, actions: int = 1) -> None:
        """Write the engine's output in this turn of the loop; to be called after actions on the engine.

        Args:
            actions: number of them.
        """
        if self._dispatching:
            self._flush_requested = True
        elif self._transport is not None:
            if self._scheduled is None:
                self._scheduled = self._loop.call_soon(self._flush_scheduled)
                self._pending.count += 1
                self._actions = -1
            self._actions += actions
            if self._actions >= MAX_ACTIONS and self._actions >= MAX_ACTIONS * min(self._pending.count, MAX_FACTOR):
                self._actions = 0
                self._flush()

    def flush_last(self) -> None:
        """Write the engine's output after all that is scheduled by now: what that sends is written together with it.

        For answers that tasks wait for: many tasks continue in the same turn of the loop. If they send much, the thread
        yields its processor afterwards, since the peer may be waiting for it.
        """
        if self._transport is None:
            return
        if self._scheduled is None:
            self._pending.count += 1
            self._actions = 0
        else:
            self._scheduled.cancel()
        self._scheduled = self._loop.call_soon(self._flush_tasks, self.octets_out)
        self._flushes_last = True

    def perform(self, action: Callable[[], object]) -> None:
        """Call something that acts on the engine, and write its output at once: nothing else is sent in this turn."""
        if self._dispatching or self._transport is None:
            action()
            return
        self._dispatching, self._flush_requested = True, False
        try:
            action()
        finally:
            self._dispatching = False
        if self._flush_requested:
            self.write_now()
        else:
            self._end_turn()

    def write_now(self) -> None:
        """Write what actions on the engine have caused at once, not at the end of the turn."""
        if self._dispatching:
            self._flush_requested = True
            return
        self._flush()
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._end_scheduled()
            return
        if self.engine.events and self._dispatch():
            self._flush()
        if self._last or self._backlog_full:
            self._end_turn()

    def write_meanwhile(self) -> None:
        """As `write_now`, also while events are handled of which more are to come: the peer works at the same time."""
        self._flush()

    def call_last(self, callback: Callable[[], object]) -> None:
        """Call something after the events that came together were handled, and what they caused was written.

        For what wakes another thread: it could do nothing before, since this one has the interpreter.
        """
        if self._dispatching:
            self._last.append(callback)
        else:
            callback()

    def call_before_write(self, callback: Callable[[], object]) -> None:
        """Call something once, before output is written: it acts on the engine. `flush_soon` says when that is."""
        self._before_write.append(callback)

    def accept_later(self, link: Link, delivery_tag: int) -> None:
        """Accept a message that was received together with whatever is sent next, or after `ACCEPT_DELAY`.

        For a peer that does not wait for it, so that it is not woken for that alone.
        """
        self.engine.decisions.accept_later(link, delivery_tag)
        if self._accept_timer is None:
            self._accept_timer = self._loop.call_later(ACCEPT_DELAY, self._accept_waiting)

    def can_send(self, link: Link) -> bool:
        """True when there is credit on `link`, and a message would be written without piling up in memory."""
        return self.room(link) > 0

    def room(self, link: Link) -> int:
        """Messages that may be sent on `link` now: the credit; 0 if they would pile up in memory."""
        if self._paused:
            return 0
        room = self.engine.links.room(link, MAX_BACKLOG)
        if room < 0:
            self._backlog_full = True
            return 0
        return room

    def send_all(
        self,
        link: Link,
        messages: list[bytes],
        *,
        settled: bool = False,
        transaction: bytes | None = None,
        delivery_tags: list[int] | None = None,
    ) -> list[int]:
        """Send messages on `link`, in their order, while `can_send` is true; returns their delivery tags.

        Args:
            link, messages, settled, transaction, delivery_tags: see `Deliveries.send_all`.
        """
        tags: list[int] = []
        while not self._paused:
            sent = self.engine.deliveries.send_all(
                link,
                messages,
                len(tags),
                MAX_BACKLOG,
                settled=settled,
                transaction=transaction,
                delivery_tags=delivery_tags,
            )
            if sent:
                tags += sent
                self.flush_soon(len(sent))
            if len(tags) >= len(messages) or not self.room(link):
                break
        return tags

    def send_one(
        self, link: Link, data: bytes, *, settled: bool = False, transaction: bytes | None = None
    ) -> int | None:
        """Send a message on `link` if `can_send` is true; returns its delivery tag, else None.

        Args:
            link, settled, transaction: see `Deliveries.send_all`.
            data: the encoded message.
        """
        if self._paused:
            return None
        tags = self.engine.deliveries.send_all(link, [data], 0, MAX_BACKLOG, settled=settled, transaction=transaction)
        if not tags:
            self.room(link)
            return None
        if self._dispatching:
            self._flush_requested = True
        else:
            self.flush_soon()
        return tags[0]

    def hold_output(self) -> Callable[[], None]:
        """Write nothing, as long as what was answered is not certain yet; returns what ends that, to be called once."""
        self._holds += 1

        def release() -> None:
            self._holds -= 1
            if not self._holds:
                self.flush_soon()
                if self._close_after_holds:
                    self.close()

        return release

    def close(self) -> None:
        """Write what is waiting, then close the transport. `on_disconnected` follows within `LINGER` seconds."""
        if self._holds:
            if not self._close_after_holds:
                self._close_after_holds = True
                self._stop_timer()
                self._timer = self._loop.call_later(LINGER, self.abort)
            return
        self._flush()
        self._close_transport()

    def abort(self) -> None:
        """Close the transport at once. `on_disconnected` follows."""
        if self._transport is not None:
            self._transport.abort()

    def give_up(self) -> None:
        """Abort when `create_connection` was cancelled. uvloop closes the transport then without reporting its end."""
        if self._transport is not None:
            self._transport.abort()
            self.connection_lost(None)

    @property
    def at_rest(self) -> bool:
        """See `LaneUser`."""
        return not (self._scheduled or self._paused or self._holds or self._before_write or self._last)

    @property
    def connected(self) -> bool:
        """True from `on_connected` until `on_disconnected`."""
        return self._transport is not None

    @property
    def peer_address(self) -> str:
        """Address and port of the peer."""
        return self._address("peername")

    @property
    def local_address(self) -> str:
        """Our own address and port."""
        return self._address("sockname")

    def _address(self, which: str) -> str:
        name = self._transport.get_extra_info(which) if self._transport is not None else None
        if not isinstance(name, tuple):
            return "unknown"
        host = f"[{name[0]}]" if ":" in name[0] else name[0]
        return f"{host}:{name[1]}"

    def client_channel(self) -> Channel:
        """The channel to a server, while connected."""
        assert self._transport is not None
        return client_channel(self._transport)

    def server_channel(self, certificate: bytes | None) -> Channel:
        """The channel to a client, while connected; `certificate` is ours as DER, or None."""
        assert self._transport is not None
        return server_channel(self._transport, certificate)

    # asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        # Transports of other loops than asyncio's have its methods without being derived from its class.
        self._transport = cast("asyncio.Transport", transport)
        # asyncio's own selector loop does this, other loops need not. Without it a request would wait until the one
        # before was acknowledged.
        if (sock := transport.get_extra_info("socket")) is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._owner.on_connected()
        self._tick()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """See asyncio."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """See asyncio."""
        buffer = self._buffer
        self.octets_in += nbytes
        self._on_read(self.engine.feed, buffer[:nbytes])
        if nbytes == len(buffer) < MAX_READ_BUFFER:
            self._buffer = memoryview(bytearray(2 * nbytes))

    def on_read_by_other(self, data: bytes, found: Fed | None) -> None:
        """See `LaneUser`."""
        if found is None:
            self._on_read(self.engine.feed, data)
        else:
            self._on_read(self.engine.take_read, data, found)

    def _on_read(self, feed: Callable[..., bool], *what: Any) -> None:
        self._dispatching, self._flush_requested, self._flushes_last = True, False, False
        try:
            idle = feed(*what)
        finally:
            self._dispatching = False
        if not idle or self._flush_requested or self.engine.events:
            self._dispatch()
            if not self._flushes_last:
                self._flush()
            if self.engine.events:  # proton detects some errors, failed authentication among them, only when it writes
                self._dispatch()
                self._flush()
        if self._last or self._backlog_full:
            self._end_turn()

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
        if self._transport is None:  # after `give_up`
            return
        self._transport = None
        if self.lane is not None:
            self.lane.give_back()
            self.lane = None  # each knows the other
        if self._scheduled is not None:
            self._pending.count -= 1
        for handle in (self._timer, self._scheduled, self._accept_timer):
            if handle is not None:
                handle.cancel()
        self._timer = self._scheduled = self._accept_timer = None
        self._before_write.clear()
        self.engine.free()
        owner, self._owner = self._owner, NO_OWNER  # each knows the other; both are gone with their last user
        owner.on_disconnected(exc)
        self._end_turn()

    # Writing, dispatching, time

    def _flush(self) -> None:
        transport = self._transport
        if transport is None or transport.is_closing() or self._holds:
            return
        if self._before_write:
            before, self._before_write = self._before_write, []
            for callback in before:
                callback()
        if self.lane is not None and (data := self.lane.take_left()):
            transport.write(data)
        while not self._paused and (data := self.engine.output()):
            self.octets_out += len(data)
            transport.write(data)
            if not self.engine.has_output:
                break
        if self.engine.ending and not self._paused and self.engine.finished:
            self._close_transport()

    def _close_transport(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.close()
        self._stop_timer()
        self._timer = self._loop.call_later(LINGER, self.abort)

    def _flush_scheduled(self) -> None:
        self._flush()
        self._end_scheduled()

    def _flush_tasks(self, octets_before: int) -> None:
        self._flush_scheduled()
        if self.octets_out - octets_before >= GIVE_WAY:
            _give_way()

    def _end_scheduled(self) -> None:
        """What was scheduled is written."""
        self._scheduled = None
        self._pending.count -= 1
        if self._dispatch():
            self._flush()
        self._end_turn()

    def _accept_waiting(self) -> None:
        self._accept_timer = None
        if self._transport is not None:
            self.engine.decisions.accept_waiting()
            self._flush()

    def _dispatch(self) -> bool:
        """Call the owner with all events; returns True when there may be output now."""
        happened = self._flush_requested = False
        self._dispatching = True
        try:
            events = self.engine.events
            while events and self._transport is not None:
                event = events.popleft()
                happened = True
                self._owner.on_event(event)
                if type(event) is ConnectionOpened:
                    self._tick()
                    self.lane = lane_of(self._loop, self._transport, self)
                elif type(event) is ConnectionFailed:
                    self.engine.close(event.condition, event.description)
                    self.close()
                    return False
            if self._transport is not None and not self._paused:
                self._owner.on_writable()
        finally:
            self._dispatching = False
        return happened or self._flush_requested

    def _end_turn(self) -> None:
        """After a write: call `on_writable` in the next turn of the loop, if `can_send` was False before."""
        if self._backlog_full and not self._paused:
            self._backlog_full = False
            self.flush_soon()
        if self._last:
            last, self._last = self._last, []
            for callback in last:
                callback()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        if self._transport is None or self._transport.is_closing() or self._close_after_holds:
            return
        self._stop_timer()
        deadline = self.engine.tick(self._loop.time())
        self._timer = None if deadline is None else self._loop.call_at(deadline, self._tick)
        self.flush_soon()
