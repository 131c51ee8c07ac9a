"""AMQP 1.0 without I/O: bytes in, bytes out, events out. Client and server use the same engine.

Rules: the owner calls `feed` with what it has read, takes events from `next_event` until there is none, and writes what
`output` returns. Actions (`attach`, `send`, ...) may be called at any time on the owner's thread; their frames are part
of the next `output`. Time is an argument of `tick`. Invalid bytes from the peer end in a `ConnectionFailed` event,
never in an exception.

The protocol itself is proton's (`Connection`, `Transport`, `Collector`). This module owns every proton object,
translates proton's events, and answers detach, end and close as the protocol requires; `deliveries.py` does the same
for messages. What happens per message or per read calls proton's C library directly, the rest uses its Python objects.
This package knows nothing of sockets, asyncio, exchanges and QMF.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import proton
from cproton import ffi, lib, pn_error_text

from qmf.bus.engine.deliveries import Deliveries
from qmf.bus.engine.events import (
    ConnectionClosed,
    ConnectionFailed,
    ConnectionOpened,
    CreditChanged,
    EngineEvent,
    LinkAttached,
    LinkDetached,
    LinkRequested,
    SessionEnded,
)
from qmf.bus.engine.link import Link
from qmf.bus.engine.session import EngineSession
from qmf.bus.engine.terminus import PROTON_DECODE_ERRORS, read_terminus, write_terminus
from qmf.bus.engine.values import ConnectionSettings, Outcome, Terminus

#: First bytes of TLS, plain and after AMQP's own header for it. proton would start a handshake without a certificate.
_TLS_HANDSHAKE = b"\x16"
_TLS_HEADER = b"AMQP\x02"

_DELIVERY = proton.Event.DELIVERY.number
_LINK_FLOW = proton.Event.LINK_FLOW.number
_wrap: Callable[[Any], proton.Event] = proton.Event.wrap
_allocate = ffi.new_allocator(should_clear_after_alloc=False)


class Engine:
    """One end of an AMQP connection.

    Attributes:
        settings: as it was created with.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        """A client opens the connection and a session at once: their frames are the first `output`."""
        self.settings = settings
        self._events: deque[EngineEvent] = deque()
        #: By C object, which each link keeps alive.
        self._links: dict[Any, Link] = {}
        self._deliveries = Deliveries(settings.max_message, self._events.append, self.detach, server=settings.server)
        self._session: EngineSession | None = None
        self._sessions: list[EngineSession] = []
        self._failed = False
        self._peer_closed = False
        self._first_bytes = b""
        self._connection = proton.Connection()
        self._transport = proton.Transport(proton.Transport.SERVER if settings.server else proton.Transport.CLIENT)
        self._collector = proton.Collector()
        self._transport_impl: Any = self._transport._impl
        self._collector_impl: Any = self._collector._impl
        self._connection.collect(self._collector)
        self._configure()
        self._transport.bind(self._connection)
        self._handlers: dict[int, Callable[[proton.Event], None]] = {
            proton.Event.CONNECTION_REMOTE_OPEN.number: self._on_open,
            proton.Event.CONNECTION_REMOTE_CLOSE.number: self._on_close,
            proton.Event.SESSION_REMOTE_OPEN.number: self._on_begin,
            proton.Event.SESSION_REMOTE_CLOSE.number: self._on_end,
            proton.Event.LINK_REMOTE_OPEN.number: self._on_attach,
            proton.Event.LINK_REMOTE_CLOSE.number: self._on_detach,
            proton.Event.LINK_REMOTE_DETACH.number: self._on_detach,
            proton.Event.TRANSPORT_ERROR.number: self._on_failure,
        }
        self._open_reported = settings.server
        if not settings.server:
            self._connection.open()
            self._session = self.begin()

    def _configure(self) -> None:
        settings, connection, transport = self.settings, self._connection, self._transport
        connection.container = settings.container
        if settings.hostname is not None:
            connection.hostname = settings.hostname
        if settings.capabilities:
            connection.offered_capabilities = [proton.symbol(name) for name in settings.capabilities]
        if settings.properties:
            connection.properties = {proton.symbol(name): value for name, value in settings.properties.items()}
        if settings.idle_timeout is not None:
            transport.idle_timeout = settings.idle_timeout
        transport.max_frame_size = settings.max_frame
        if settings.server:
            # With SASL offered but not required, proton accepts peers with and without the SASL layer.
            transport.require_auth(False)
        if settings.mechanisms is not None:
            sasl = transport.sasl()
            sasl.allowed_mechs(" ".join(settings.mechanisms))
            # TLS is asyncio's: to proton every connection looks unencrypted, on which it would not use PLAIN.
            sasl.allow_insecure_mechs = True
        if settings.username is not None:
            connection.user = settings.username
            connection.password = settings.password or ""

    # Bytes and time

    def feed(self, data: bytes | memoryview) -> None:
        """Process bytes from the peer. `data` is not used after the call."""
        if len(self._first_bytes) < len(_TLS_HEADER):
            self._first_bytes += data[: len(_TLS_HEADER) - len(self._first_bytes)]
            if self._first_bytes.startswith((_TLS_HANDSHAKE, _TLS_HEADER)):
                self.fail("amqp:connection:framing-error", "the peer uses TLS, this port does not")
        # Released at once, since the owner may reuse its buffer after the call.
        with ffi.from_buffer(data) as source:
            self._push(source, len(data))

    def _push(self, source: Any, size: int) -> None:
        transport = self._transport_impl
        offset = 0
        while offset < size and not self._failed:
            room = lib.pn_transport_capacity(transport)
            if room <= 0:
                # The peer's close was read; what follows it is ignored.
                return
            count = min(room, size - offset)
            if (result := lib.pn_transport_push(transport, source + offset, count)) != count:
                reason = pn_error_text(lib.pn_transport_error(transport)) if result < 0 else "not all bytes were read"
                self.fail("amqp:connection:framing-error", f"[{result}]: {reason}")
            offset += count
            self._collect()

    def output(self) -> bytes:
        """Bytes for the peer; empty when there is nothing to send now."""
        transport = self._transport_impl
        size = lib.pn_transport_pending(transport)
        # proton raises a flow event for every message that it encodes; only the peer's flow frames count.
        self._collect(flow=False)
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
        return (self._failed or self._peer_closed) and lib.pn_transport_pending(self._transport_impl) < 0

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

    @property
    def has_events(self) -> bool:
        """True when events wait in the queue of `next_event`."""
        return bool(self._events)

    def next_event(self) -> EngineEvent | None:
        """The next event, or None."""
        if not self._events:
            self._collect()
        return self._events.popleft() if self._events else None

    def free(self) -> None:
        """Free proton's objects. A second call does nothing.

        Of the other methods only `settle`, `detach`, `add_credit`, `credit`, `answer_drain` and `backlog` may be called
        afterwards, and do nothing.
        """
        if not self._handlers:
            return
        for link in self._links.values():
            link.mark_detached()
        self._links.clear()
        self._events.clear()
        self._session = None
        self._sessions.clear()
        self._handlers.clear()
        self._transport.unbind()
        self._connection.free()
        self._collector.release()

    # Connection

    @property
    def sasl_mechanism(self) -> str | None:
        """SASL mechanism that is used, or None."""
        return self._transport.sasl().mech or None if self.settings.mechanisms is not None else None

    def close(self, condition: str = "", description: str = "") -> None:
        """Close the connection, with an error where `condition` is not empty. A second call does nothing."""
        if self._connection.state & proton.Endpoint.LOCAL_CLOSED:
            return
        if condition:
            self._connection.condition = proton.Condition(condition, description)
        if self._connection.state & proton.Endpoint.LOCAL_UNINIT:
            self._connection.open()
        self._connection.close()

    # Sessions

    def begin(self) -> EngineSession:
        """Begin a session, besides the one that a client has from the start."""
        session = EngineSession(self._connection.session())
        self._sessions.append(session)
        session.raw.open()
        return session

    def end(self, session: EngineSession) -> None:
        """End a session with its links. `SessionEnded` confirms, after a `LinkDetached` for each link."""
        if session.ended:
            return
        session.ended = True
        for link in self._links.values():
            if link.session == session.raw:
                link.mark_detached()
        session.raw.close()

    # Links

    def attach(
        self,
        name: str,
        *,
        is_sender: bool,
        terminus: Terminus,
        credit: int = 0,
        presettled: bool = False,
        session: EngineSession | None = None,
        own_terminus: Terminus | None = None,
        properties: Mapping[str, object] | None = None,
    ) -> Link:
        """Ask the peer for a link. `LinkAttached` or `LinkDetached` answers.

        Args:
            name: unique among the links of this connection.
            is_sender: True for messages from us to the peer.
            terminus: the target of a link on which we send, the source of one on which we receive.
            credit: for a link on which we receive: messages that the peer may send at once.
            presettled: ask for the sender to settle every message at once.
            session: None for the session that a client has from the start.
            own_terminus: the terminus of our side.
            properties: of the link, by name.
        """
        if session is None:
            session = self._session = self._session or self.begin()
        raw = session.raw.sender(name) if is_sender else session.raw.receiver(name)
        write_terminus(raw.target if is_sender else raw.source, terminus)
        if own_terminus is not None:
            write_terminus(raw.source if is_sender else raw.target, own_terminus)
        if properties:
            values: dict[Any, Any] = {proton.symbol(key): value for key, value in properties.items()}
            raw.properties = values
        if not is_sender:
            raw.max_message_size = self.settings.max_message
        if presettled:
            raw.snd_settle_mode = proton.Link.SND_SETTLED
        link = self._add_link(raw)
        raw.open()
        if credit and isinstance(raw, proton.Receiver):
            raw.flow(credit)
        return link

    def accept_link(self, link: Link, *, source: Terminus | None, target: Terminus | None) -> None:
        """Grant a link that the peer asked for.

        Args:
            link: of `LinkRequested`.
            source, target: as granted, which may differ from what the peer asked for.
        """
        raw = link.raw
        write_terminus(raw.source, source)
        write_terminus(raw.target, target)
        raw.snd_settle_mode = raw.remote_snd_settle_mode
        raw.rcv_settle_mode = raw.remote_rcv_settle_mode
        if not link.is_sender:
            raw.max_message_size = self.settings.max_message
        raw.open()

    def refuse_link(self, link: Link, condition: str, description: str) -> None:
        """Refuse a link that the peer asked for: an attach with a null terminus, then a detach with the error."""
        raw = link.raw
        write_terminus(raw.source if link.is_sender else raw.target, None)
        raw.open()
        self.detach(link, condition, description)

    def detach(self, link: Link, condition: str = "", description: str = "") -> None:
        """End a link, with an error where `condition` is not empty. `LinkDetached` confirms."""
        if link.detached:
            return
        link.mark_detached()
        if condition:
            link.raw.condition = proton.Condition(condition, description)
        link.raw.close()

    def add_credit(self, link: Link, credit: int) -> None:
        """Allow the peer to send `credit` more messages on a link on which we receive."""
        if not link.detached and not link.is_sender:
            lib.pn_link_flow(link.impl, credit)

    def drain(self, link: Link, credit: int) -> None:
        """Ask the peer to send what it has now, for the credit it holds and `credit` more, and to return the rest.

        `Drained` follows, after the messages.
        """
        if not link.detached and not link.is_sender:
            link.draining = True
            lib.pn_link_drain(link.impl, credit)

    def credit(self, link: Link) -> int:
        """Messages that we may send, or the peer may still send, on a link."""
        if link.detached:
            return 0
        credit: int = lib.pn_link_credit(link.impl)
        return credit

    def answer_drain(self, link: Link) -> None:
        """If the peer has asked to use up its credit (drain): there is nothing more to send now, drop the credit."""
        if not link.detached and lib.pn_link_get_drain(link.impl):
            lib.pn_link_drained(link.impl)

    def backlog(self, link: Link) -> int:
        """Bytes given to `send` on the session of this link that are not yet in `output`."""
        if link.detached:
            return 0
        size: int = lib.pn_session_outgoing_bytes(link.session_impl)
        return size

    # Messages

    def send(self, link: Link, data: bytes, *, settled: bool = False, transaction: bytes | None = None) -> int:
        """Send one message. The owner has checked `credit` before.

        Args:
            link: on which we send.
            data: the encoded message.
            settled: settle it at once: there will be no outcome.
            transaction: id of the transaction that the message is part of.

        Returns:
            delivery tag, the same as in `OutcomeReceived`.
        """
        return self._deliveries.send(link, data, settled=settled, transaction=transaction)

    def settle(
        self,
        link: Link,
        delivery_tag: int,
        outcome: Outcome = Outcome.ACCEPTED,
        condition: str = "",
        description: str = "",
    ) -> None:
        """Settle a message that was received. Does nothing when the link has ended, or the message was settled before.

        Args:
            link, delivery_tag: of `Delivery`.
            outcome: for the peer.
            condition, description: error, for a rejected message.
        """
        self._deliveries.settle(link, delivery_tag, outcome, condition, description)

    def modify(self, link: Link, delivery_tag: int, *, failed: bool, undeliverable: bool) -> None:
        """Settle a message that was received with the outcome modified: it returns to its node.

        Args:
            link, delivery_tag: of `Delivery`.
            failed: the attempt to deliver it counts.
            undeliverable: it must not be sent on this link again.
        """
        self._deliveries.modify(link, delivery_tag, failed=failed, undeliverable=undeliverable)

    def set_outcome(self, link: Link, delivery_tag: int, outcome: Outcome, transaction: bytes | None = None) -> None:
        """Give a message that was received an outcome without settling it.

        Within a transaction `settle` follows when that has ended. Without one, the peer settles, which
        `OutcomeConfirmed` reports.
        """
        self._deliveries.set_outcome(link, delivery_tag, outcome, transaction)

    def declare(self, link: Link, delivery_tag: int, transaction: bytes) -> None:
        """Settle a message to the coordinator with the id of the transaction that it has declared."""
        self._deliveries.declare(link, delivery_tag, transaction)

    def settle_sent(self, link: Link, delivery_tag: int, outcome: Outcome) -> None:
        """Settle a message that we sent, whose outcome was within a transaction that has ended."""
        self._deliveries.settle_sent(link, delivery_tag, outcome)

    # Proton's events

    def _collect(self, *, flow: bool = True) -> None:
        collector, links = self._collector_impl, self._links
        while event := lib.pn_collector_peek(collector):
            number = lib.pn_event_type(event)
            if not self._failed:
                try:
                    if number == _DELIVERY:
                        delivery = lib.pn_event_delivery(event)
                        self._deliveries.on_changed(links.get(lib.pn_delivery_link(delivery)), delivery)
                    elif number == _LINK_FLOW:
                        if flow and (link := links.get(lib.pn_event_link(event))) is not None:
                            self._on_flow(link)
                    elif (handler := self._handlers.get(number)) is not None:
                        handler(_wrap(event))
                except PROTON_DECODE_ERRORS as error:
                    self.fail("amqp:decode-error", str(error))
            lib.pn_collector_pop(collector)

    def fail(self, condition: str, description: str, *, authentication: bool = False) -> None:
        """The connection cannot go on: report `ConnectionFailed`. Further calls do nothing."""
        if not self._failed:
            self._failed = True
            self._events.append(ConnectionFailed(condition, description, authentication))

    def _on_failure(self, _event: proton.Event) -> None:
        condition = self._transport.condition
        name, description = (
            (condition.name, condition.description or "") if condition else ("amqp:connection:framing-error", "")
        )
        outcome = self._transport.sasl().outcome if self.settings.mechanisms is not None else None
        self.fail(name, description, authentication=outcome not in (None, proton.SASL.OK))

    def _on_open(self, _event: proton.Event) -> None:
        if self.settings.server:
            if self._connection.state & proton.Endpoint.LOCAL_UNINIT:
                self._connection.open()
            self._report_open()

    def _report_open(self) -> None:
        offered = self._connection.remote_offered_capabilities
        if offered is None:
            names: frozenset[str] = frozenset()
        elif isinstance(offered, str):
            names = frozenset([str(offered)])
        else:
            names = frozenset(str(name) for name in getattr(offered, "elements", offered))
        properties = _text_keys(self._connection.remote_properties)
        self._events.append(ConnectionOpened(self._connection.remote_container or "", names, properties))

    def _on_close(self, _event: proton.Event) -> None:
        self._peer_closed = True
        self._events.append(ConnectionClosed(*_error_of(self._connection)))
        self.close()

    def _on_begin(self, event: proton.Event) -> None:
        session = event.session
        assert session is not None
        if session.state & proton.Endpoint.LOCAL_UNINIT:
            session.open()
        elif not self._open_reported:
            # A broker that refuses a connection opens it, as the protocol requires, and closes it at once. Only when
            # our session has begun, the connection is known to be accepted.
            self._open_reported = True
            self._report_open()

    def _on_end(self, event: proton.Event) -> None:
        session = event.session
        assert session is not None
        condition, description = _error_of(session)
        for impl, link in list(self._links.items()):
            if link.raw.session == session:
                self._events.append(LinkDetached(link, condition, description, link.detached))
                link.mark_detached()
                del self._links[impl]
        for own in self._sessions:
            if own.raw == session:
                self._events.append(SessionEnded(own, condition, description, own.ended))
                own.ended = True
                self._sessions.remove(own)
                if own is self._session:
                    self._session = None
                break
        session.close()
        session.free()

    def _on_attach(self, event: proton.Event) -> None:
        raw = event.link
        assert raw is not None
        known = self._link_of(raw)
        link = known or self._add_link(raw)
        link.source = read_terminus(raw.remote_source)
        link.target = read_terminus(raw.remote_target)
        link.properties = _text_keys(raw.remote_properties)
        link.max_message = raw.remote_max_message_size
        mode = raw.remote_snd_settle_mode if known is None else raw.snd_settle_mode
        link.presettled = mode == proton.Link.SND_SETTLED
        if known is None:
            self._events.append(LinkRequested(link))
        elif (link.target if link.is_sender else link.source) is not None:
            self._events.append(LinkAttached(link))
        # A null terminus announces a refusal; the error is in the detach that follows.

    def _on_detach(self, event: proton.Event) -> None:
        raw = event.link
        assert raw is not None
        link = self._link_of(raw)
        if link is None:
            return
        self._events.append(LinkDetached(link, *_error_of(raw), link.detached))
        if not link.detached:
            # A detach with closed=false, which allows to resume the link, is answered alike. We never resume a link.
            if event.type == proton.Event.LINK_REMOTE_DETACH:
                raw.detach()
            else:
                raw.close()
        del self._links[link.impl]
        link.mark_detached()
        raw.free()

    def _on_flow(self, link: Link) -> None:
        if link.detached:
            return
        if link.is_sender:
            self._events.append(CreditChanged(link))
        elif link.draining:
            self._deliveries.check_drained(link)

    # Links by C object

    def _add_link(self, raw: proton.Link) -> Link:
        link = Link(raw)
        self._links[link.impl] = link
        return link

    def _link_of(self, raw: proton.Link) -> Link | None:
        return self._links.get(raw._impl)


def _text_keys(properties: object) -> Mapping[str, object]:
    return {str(name): value for name, value in properties.items()} if isinstance(properties, dict) else {}


def _error_of(endpoint: proton.Connection | proton.Session | proton.Link) -> tuple[str, str]:
    condition = endpoint.remote_condition
    return (condition.name, condition.description or "") if condition else ("", "")
