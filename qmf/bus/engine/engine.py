"""AMQP 1.0 without I/O: bytes in, bytes out, events out. Client and server use the same engine.

Rules: the owner calls `feed` with what it has read, takes events from `next_event` until there is none, and writes what
`output` returns. Actions (`attach`, `send`, ...) may be called at any time on the owner's thread; their frames are part
of the next `output`. Time is an argument of `tick`. Invalid bytes from the peer end in a `ConnectionFailed` event,
never in an exception.

The protocol itself is proton's (`Connection`, `Transport`, `Collector`). The engine owns every proton object,
translates proton's events, and answers detach, end and close as the protocol requires: this module for the connection;
it has `EngineSessions`, `Links`, `Deliveries` of messages, and `Decisions` about them, which owners call. What happens
per message or per read calls proton's C library directly, the rest uses its Python objects. Two things that proton does
not tell, or cannot do, are done to the bytes that pass: message formats, and flows that ask for an answer
(`qmf/bus/frames/`). This package knows nothing of sockets, asyncio, exchanges and QMF.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import proton
from cproton import ffi, lib, pn_error_text

from qmf.bus.engine.decisions import Decisions
from qmf.bus.engine.deliveries import Deliveries
from qmf.bus.engine.events import (
    ConnectionClosed,
    ConnectionFailed,
    ConnectionOpened,
    EngineEvent,
    EventBatch,
)
from qmf.bus.engine.flow_answers import FlowAnswers
from qmf.bus.engine.link import Link
from qmf.bus.engine.links import Links
from qmf.bus.engine.native import ALL_FLOW, NO_FLOW, Fed, Native, address, native
from qmf.bus.engine.opening import ESTABLISHMENT_FAILED, ConnectionRefusal, FirstBytes, configure, read_open
from qmf.bus.engine.properties import error_of
from qmf.bus.engine.security_layer import NotAuthenticated, SecurityLayer, UnknownProtocol
from qmf.bus.engine.sent_frames import SentFrames
from qmf.bus.engine.sessions import EngineSessions
from qmf.bus.engine.simple_events import SimpleEvents
from qmf.bus.engine.terminus import PROTON_DECODE_ERRORS
from qmf.bus.engine.thread_actions import ThreadActions
from qmf.bus.engine.values import ConnectionSettings
from qmf.bus.frames.walker import Stop, StopKind, walker

#: Bytes of one call of `output`: one system call writes all.
MAX_OUTPUT = 256 * 1024

_DELIVERY = proton.Event.DELIVERY.number
_LINK_FLOW = proton.Event.LINK_FLOW.number
_LINK_DETACH = proton.Event.LINK_REMOTE_DETACH.number
_link: Callable[[Any], proton.Link] = proton.Link.wrap
_session: Callable[[Any], proton.Session] = proton.Session.wrap
_allocate = ffi.new_allocator(should_clear_after_alloc=False)


class Engine:
    """One end of an AMQP connection.

    Attributes:
        settings: of the connection.
        sessions, links: those of the connection.
        deliveries: sends messages.
        decisions: settles those that were received, and those sent that wait for it.
        thread_actions: what other threads may do; None without the compiled functions.
        events: those that wait for `next_event`, but for what proton has not reported yet. After `feed`, these are all
            that there are, and may be taken from the left.
        has_output: False when the last call of `output` has returned all that there was.
        ending: the peer has closed the connection, or it has failed: it may be `finished`.
    """

    def __init__(self, settings: ConnectionSettings, layer: SecurityLayer | None = None) -> None:
        """A client opens the connection and a session at once: their frames are the first `output`.

        Args:
            settings: of the connection.
            layer: what comes before AMQP: SASL; None for nothing.
        """
        self.settings = settings
        self._layer = layer
        self._connection = proton.Connection()
        self.events: deque[EngineEvent | EventBatch] = deque()
        #: By C object.
        self._links: dict[Any, Link] = {}
        self._sent_frames = SentFrames()
        most, compiled = settings.max_message, native()
        self.sessions = EngineSessions(self._connection, self.events, self._links, settings.max_sessions)
        self.links = Links(self._links, self.sessions, self.events, self._sent_frames, most, compiled)
        self.decisions = Decisions(compiled)
        self.deliveries = Deliveries(
            most, self.events, self.links, self.decisions, server=settings.server, native=compiled
        )
        self._simple = None if compiled is None else SimpleEvents(compiled, self.links.table, most, self.deliveries)
        #: C objects of all sessions, by the peer's channel; and of the session that the peer has begun last.
        self._channels: dict[int, Any] = {}
        self._begun: Any = None
        self.has_output = True
        self._failed = self._peer_closed = self.ending = False
        self._first_bytes = FirstBytes()
        self._received_frames = walker(outgoing=False)
        self._answers = FlowAnswers()
        self._transport = proton.Transport(proton.Transport.SERVER if settings.server else proton.Transport.CLIENT)
        self._collector = proton.Collector()
        self._transport_impl: Any = self._transport._impl
        self._collector_impl: Any = self._collector._impl
        self._collector_address = address(self._collector_impl)
        self._transport_address = address(self._transport_impl)
        self.thread_actions = None if compiled is None else self._make_thread_actions(compiled)
        self._connection.collect(self._collector)
        configure(self._connection, self._transport, settings)
        self._transport.bind(self._connection)
        #: Called with proton's C objects: its Python objects for events make those of all that an event may be about.
        self._handlers: dict[int, Callable[[Any], None]] = {
            proton.Event.CONNECTION_REMOTE_OPEN.number: self._on_open,
            proton.Event.CONNECTION_REMOTE_CLOSE.number: self._on_close,
            proton.Event.SESSION_REMOTE_OPEN.number: self._on_begin,
            proton.Event.TRANSPORT_ERROR.number: self._on_failure,
            proton.Event.SESSION_REMOTE_CLOSE.number: self._on_end,
            proton.Event.LINK_REMOTE_OPEN.number: self._on_attach,
            proton.Event.LINK_REMOTE_CLOSE.number: self._on_detach,
            proton.Event.LINK_REMOTE_DETACH.number: self._on_detach,
        }
        self._open_reported = settings.server
        #: Of a server: called with the peer's open, before ours; the reason why the connection is refused, or None.
        #: A refused connection is closed, and not reported.
        self.admit: Callable[[ConnectionOpened], ConnectionRefusal | None] = _admit
        if not settings.server:
            self._connection.open()
            self.sessions.default()

    def feed(self, data: bytes | memoryview) -> bool:
        """Process bytes from the peer, until it returns; True if nothing is to be written but for what owners did."""
        if (layer := self._layer) is not None and not layer.passed:
            try:
                data = layer.feed(data)
            except NotAuthenticated as error:
                self.fail("amqp:unauthorized-access", str(error), authentication=True)
                return False
            except UnknownProtocol as error:
                self.fail("amqp:connection:framing-error", str(error))
                return False
        if self._first_bytes.missing and self._first_bytes.are_of_tls(data):
            self.fail("amqp:connection:framing-error", "the peer uses TLS, this port does not")
        offset, walker = 0, self._received_frames.address
        if walker and (simple := self._simple) is not None and not self._failed:
            read = simple.read(self._transport_address, self._collector_address, data, walker)
            if read is not None:
                return self._end_read(data, *read) and layer is None
        while (stop := self._received_frames.next_stop(data, offset)) is not None:
            self._push(data, offset, stop.start)
            self._push_frame(data, stop)
            offset = stop.end
        self._push(data, offset, len(data))
        self._check_end()
        return False

    def _end_read(self, data: bytes | memoryview, more: bool, offset: int, failure: int | None, idle: bool) -> bool:
        """Go on after `SimpleEvents.read`; returns True if nothing is to be written."""
        if more or failure is not None:
            self._handle_left(failure)
        elif offset == len(data):
            return idle and not self._answers.waits
        self._push(data, offset, len(data))
        self._check_end()
        return False

    def _check_end(self) -> None:
        """Fail if proton takes no more bytes, although the peer has not closed the connection."""
        if not self._peer_closed and not self._failed and lib.pn_transport_capacity(self._transport_impl) < 0:
            # Otherwise the peer's close was read, and what follows it is ignored.
            self.fail("amqp:connection:framing-error", "a frame cannot be decoded")

    def _push(self, data: bytes | memoryview, offset: int, size: int) -> None:
        """Give proton the bytes from `offset` to `size`, and handle the events of all frames that end there."""
        simple = self._simple
        if simple is not None and not self.deliveries.message_format:
            # The compiled functions; events that are not simple are handled before those go on.
            while offset < size and not self._failed:
                before = offset
                more, offset, failure = simple.feed(
                    self._transport_address, self._collector_address, data, offset, size
                )
                if more or failure is not None:
                    self._handle_left(failure)
                elif offset == before:
                    break
            return
        transport = self._transport_impl
        # Released at once, since the owner may reuse its buffer after the call.
        with ffi.from_buffer(data) as source:
            while offset < size and not self._failed:
                room = lib.pn_transport_capacity(transport)
                if room <= 0:
                    break
                count = min(room, size - offset)
                if (result := lib.pn_transport_push(transport, source + offset, count)) != count:
                    self._fail_push(result)
                offset += count
                self._collect()

    def _handle_left(self, failure: int | None) -> None:
        """Handle the events that the compiled functions have left, and what proton returned for bytes, or None."""
        if failure is not None:
            self._fail_push(failure)
        self._collect()

    def _fail_push(self, result: int) -> None:
        error = lib.pn_transport_error(self._transport_impl)
        reason = pn_error_text(error) if result < 0 else "not all bytes were read"
        self.fail("amqp:connection:framing-error", f"[{result}]: {reason}")

    def _push_frame(self, data: bytes | memoryview, stop: Stop) -> None:
        """Give proton a frame that matters: the events that follow are of this frame."""
        links, deliveries = self.links, self.deliveries
        deliveries.message_format = stop.value if stop.kind is StopKind.FORMAT else 0
        flowed: list[Link] = []
        links.flowed, self._begun = flowed, None
        self._push(data, stop.start, stop.end)
        begun, links.flowed, self._begun = self._begun, None, None
        deliveries.message_format = 0
        if stop.kind is StopKind.BEGIN and begun is not None:
            self._channels[stop.channel] = begun
        if self._failed or self._peer_closed:
            return
        if stop.kind is StopKind.LINK_ECHO:
            for link in flowed:
                self._answers.answer(link.session_impl, link, stop.value, self._take_output)
        elif stop.kind is StopKind.AVAILABLE:
            for link in flowed:
                link.available = None if link.is_sender else stop.value
        elif stop.kind is StopKind.SESSION_ECHO and (session := self._channels.get(stop.channel)) is not None:
            self._answers.answer(session, None, 0, self._take_output)

    def ask_state(self, link: Link) -> bool:
        """Ask the peer how many messages wait for credit on a link on which we receive; `Link.available` is its
        answer, when that has come.

        Returns:
            False if it cannot be asked now.
        """
        if self._failed or self._peer_closed or link.is_sender or link.detached:
            return False
        self.has_output = True
        return self._answers.ask(link, self._take_output)

    def output(self) -> bytes:
        """Bytes for the peer, up to `MAX_OUTPUT` or a frame more; empty when there is nothing to send now."""
        if self._layer is not None:
            if data := self._layer.output():
                return data
            if not self._layer.passed:
                return b""  # no AMQP frame may be sent before, not even one with the reason for a failure
            self._layer = None
        answers = self._answers
        if answers.owed and not self._failed and not self._peer_closed:
            answers.answer_owed(self._take_output)
        if answers.ready:
            data = b"".join(answers.ready)
            answers.ready.clear()
            self.has_output = True
            return data
        return self._take_output()

    def _make_thread_actions(self, compiled: Native) -> ThreadActions:
        addresses, parts = (self._transport_address, self._collector_address), (self._sent_frames, self._answers)
        received = self.links.table, self.settings.max_message, self._received_frames.address
        return ThreadActions(compiled, addresses, *parts, self.events, self.deliveries, self.decisions, received)

    def take_read(self, data: bytes, found: Fed) -> bool:
        """Go on after another thread has fed bytes of the peer (`ThreadActions.wait_and_read`); returns as `feed`."""
        batches, more, _, offset, failure, idle = found
        self.deliveries.on_batches(batches, direct=True)
        return self._end_read(data, more, offset, failure, idle)

    def _take_output(self) -> bytes:
        while True:
            if self._simple is None:
                data = self._take_bytes()
            else:
                data, more, unwalked = self._simple.output(
                    self._transport_address, self._collector_address, MAX_OUTPUT, self._sent_frames.walker
                )
                self.has_output = more or len(data) >= MAX_OUTPUT
                if more:
                    self._collect(flow=NO_FLOW)
                if not unwalked:
                    return data
            if not data or (data := self._sent_frames.pass_on(data)):
                return data

    def _take_bytes(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while size < MAX_OUTPUT and (data := self._take_frames()):
            parts.append(data)
            size += len(data)
        self.has_output = size >= MAX_OUTPUT
        return b"".join(parts) if len(parts) != 1 else parts[0]

    def _take_frames(self) -> bytes:
        transport = self._transport_impl
        size = lib.pn_transport_pending(transport)
        # proton raises a flow event for every message that it encodes; only the peer's flow frames count.
        self._collect(flow=NO_FLOW)
        if size <= 0:
            return b""
        buffer = _allocate("char[]", size)
        count = lib.pn_transport_peek(transport, buffer, size)
        if count <= 0:
            return b""
        lib.pn_transport_pop(transport, count)
        data: bytes = ffi.buffer(buffer, count)[:]
        return data

    @property
    def finished(self) -> bool:
        """True when both sides have closed: the socket can be closed once `output` was written.

        proton has no output left as soon as our own close is out. Closing the socket before the peer's close was
        received could reset the connection, and the peer would lose ours.
        """
        closed = self._failed or self._peer_closed
        return closed and not self._answers.ready and lib.pn_transport_pending(self._transport_impl) < 0

    def tick(self, now: float) -> float | None:
        """Process the time: due heartbeats become output, a silent peer becomes `ConnectionFailed`.

        Args:
            now: seconds of any clock that never goes back.

        Returns:
            time on the same clock at which to call again at the latest; None when there is no time-out. That is known
            after `ConnectionOpened`: call again then.
        """
        deadline = self._transport.tick(now)
        self._collect()
        return deadline or None

    def next_event(self) -> EngineEvent | None:
        """The next event, or None."""
        event = self.next_batch()
        if isinstance(event, EventBatch):
            first, *others = event.events()
            self.events.extendleft(reversed(others))
            return first
        return event

    def next_batch(self) -> EngineEvent | EventBatch | None:
        """The next event, or several messages or outcomes that came one after the other; None when there is none."""
        if not self.events:
            self._collect()
        return self.events.popleft() if self.events else None

    def free(self) -> None:
        """Free proton's objects. A second call does nothing.

        Of the other methods only `frames`, and those of `links` and `decisions` about links, which do nothing, may be
        called afterwards.
        """
        if not self._handlers:
            return
        self.links.forget()
        self.sessions.forget()
        self._channels.clear()
        self.events.clear()
        # They know the engine by its methods: without these it is gone with its last user, not when a cycle is found.
        self._handlers.clear()
        self.admit = _admit
        self._answers.forget()
        self._simple = None
        self._transport.unbind()
        self._connection.free()
        self._collector.release()

    # Connection

    @property
    def max_frame(self) -> int:
        """Bytes of the largest frame that both sides accept; known once the peer has opened the connection."""
        remote: int = lib.pn_transport_get_remote_max_frame(self._transport_impl)
        return min(self.settings.max_frame, remote or self.settings.max_frame)

    @property
    def frames(self) -> tuple[int, int]:
        """Frames of AMQP that were received, and that were sent."""
        return lib.pn_transport_get_frames_input(self._transport_impl), lib.pn_transport_get_frames_output(
            self._transport_impl
        )

    def close(self, condition: str = "", description: str = "", info: Mapping[str, object] | None = None) -> None:
        """Close the connection, with an error where `condition` is not empty. A second call does nothing.

        Args:
            condition, description, info: of the error; keys, and values that are text, are sent as symbols.
        """
        if self._connection.state & proton.Endpoint.LOCAL_CLOSED:
            return
        if condition:
            self._connection.condition = ConnectionRefusal(condition, description, info or {}).condition()
        if self._connection.state & proton.Endpoint.LOCAL_UNINIT:
            self._connection.open()
        self._connection.close()

    # Proton's events

    def _collect(self, *, flow: int = ALL_FLOW) -> None:
        collector, links = self._collector_impl, self._links
        if not lib.pn_collector_peek(collector):
            return
        while True:
            simple = None if self._failed or self.deliveries.message_format else self._simple
            if simple is not None and not simple.feed(self._transport_address, self._collector_address, flow=flow)[0]:
                return
            event = lib.pn_collector_peek(collector)
            if not event:
                return
            number = lib.pn_event_type(event)
            if not self._failed:
                try:
                    if number == _DELIVERY:
                        delivery = lib.pn_event_delivery(event)
                        self.deliveries.on_changed(links.get(lib.pn_delivery_link(delivery)), delivery)
                    elif number == _LINK_FLOW:
                        if flow and (link := links.get(lib.pn_event_link(event))) is not None:
                            self.links.on_flow(link)
                    elif (handler := self._handlers.get(number)) is not None:
                        handler(event)
                except PROTON_DECODE_ERRORS as error:
                    self.fail("amqp:decode-error", str(error))
            lib.pn_collector_pop(collector)

    def fail(self, condition: str, description: str, *, authentication: bool = False) -> None:
        """The connection cannot go on: report `ConnectionFailed`. Further calls do nothing."""
        if not self._failed:
            self._failed = self.ending = True
            self.events.append(ConnectionFailed(condition, description, authentication))

    def _on_failure(self, _event: Any) -> None:
        condition = self._transport.condition
        name, description = (
            (condition.name, condition.description or "") if condition else ("amqp:connection:framing-error", "")
        )
        self.fail(name, description)

    def announce(self, name: str, value: str | bool) -> None:
        """Open the connection with one more property; for a server, until `admit` returns."""
        connection = self._connection
        connection.properties = {**(connection.properties or {}), proton.symbol(name): value}

    def _on_open(self, _event: Any) -> None:
        if not self.settings.server:
            return
        connection = self._connection
        event = read_open(connection)
        if not connection.state & proton.Endpoint.LOCAL_UNINIT:
            self.events.append(event)
        elif (refusal := self.admit(event)) is None:
            connection.open()
            self.events.append(event)
        else:
            # The protocol has no refusal: this property says that a close follows the open.
            self.announce(ESTABLISHMENT_FAILED, True)
            connection.condition = refusal.condition()
            connection.open()
            connection.close()

    def _on_close(self, _event: Any) -> None:
        self._peer_closed = self.ending = True
        self.events.append(ConnectionClosed(*error_of(self._connection)))
        self.close()

    def _on_begin(self, event: Any) -> None:
        session = _session(lib.pn_event_session(event))
        self._begun = session._impl
        if session.state & proton.Endpoint.LOCAL_UNINIT:
            if reason := self.sessions.on_begin(session):
                self.fail("amqp:resource-limit-exceeded", reason)
        elif not self._open_reported:
            # A broker that refuses a connection opens it, as the protocol requires, and closes it at once. Only when
            # our session has begun, the connection is known to be accepted.
            self._open_reported = True
            self.events.append(read_open(self._connection))

    def _on_end(self, event: Any) -> None:
        session = _session(lib.pn_event_session(event))
        condition, description = error_of(session)
        self._channels = {channel: each for channel, each in self._channels.items() if each != session._impl}
        self.links.on_end(session, condition, description)
        self.sessions.on_end(session, condition, description)

    def _on_attach(self, event: Any) -> None:
        self.links.on_attach(_link(lib.pn_event_link(event)))

    def _on_detach(self, event: Any) -> None:
        closed = lib.pn_event_type(event) != _LINK_DETACH
        self.links.on_detach(_link(lib.pn_event_link(event)), closed=closed)


def _admit(_: ConnectionOpened) -> ConnectionRefusal | None:
    """Every connection."""
    return None
