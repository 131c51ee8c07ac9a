"""AMQP 1.0 without I/O: bytes in, bytes out, events out. Client and server use the same engine.

Rules: the owner calls `feed` with what it read, then writes what `output` returns, then takes `next_event` until there
is none. Actions (`attach`, `send`, ...) may be called at any time on the owner's thread; what they have to say waits
in `output`. Time is an argument of `tick`. A peer that sends nonsense ends in a `Failed` event, never in an exception.

The work is proton's (`Connection`, `Transport`, `Collector`); this module owns every proton object, translates its
events, and answers detach, end and close as the protocol wants it; `deliveries.py` does the same for messages. What
happens per message or per read goes to proton's C library directly, the rest through its Python objects. Neither
module knows anything of sockets, asyncio, exchanges or QMF.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import proton
from cproton import ffi, lib, pn_error_text

from qmf.bus.engine.deliveries import Deliveries
from qmf.bus.engine.events import (
    Closed,
    CreditChanged,
    EngineEvent,
    Failed,
    LinkAttached,
    LinkDetached,
    LinkRequested,
    Opened,
)
from qmf.bus.engine.link import Link
from qmf.bus.engine.terminus import NONSENSE, read_terminus, write_terminus
from qmf.bus.engine.values import ConnectionSettings, Outcome, Terminus

#: How TLS starts, plain and after AMQP's own header for it. proton would shake hands, with nothing to show.
_TLS_HANDSHAKE = b"\x16"
_TLS_HEADER = b"AMQP\x02"

_DELIVERY = proton.Event.DELIVERY.number
_LINK_FLOW = proton.Event.LINK_FLOW.number
_wrap: Callable[[Any], proton.Event] = proton.Event.wrap
_allocate = ffi.new_allocator(should_clear_after_alloc=False)


class Engine:
    """One end of an AMQP connection."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self.settings = settings
        self._events: deque[EngineEvent] = deque()
        #: By the C object, which each of them keeps alive.
        self._links: dict[Any, Link] = {}
        self._deliveries = Deliveries(settings.max_message, self._events.append, self.detach)
        self._session: proton.Session | None = None
        self._failed = False
        #: The peer closed the connection.
        self._over = False
        self._start = b""
        self._connection = proton.Connection()
        self._transport = proton.Transport(proton.Transport.SERVER if settings.server else proton.Transport.CLIENT)
        self._collector = proton.Collector()
        self._transport_impl: Any = self._transport._impl
        self._collector_impl: Any = self._collector._impl
        self._connection.collect(self._collector)
        self._introduce()
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
        self._announced = settings.server
        if not settings.server:
            self._connection.open()
            self._begin()

    def _introduce(self) -> None:
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
            # With SASL offered but not required, proton takes peers with and without the SASL layer.
            transport.require_auth(False)
        if settings.mechanisms is not None:
            sasl = transport.sasl()
            sasl.allowed_mechs(" ".join(settings.mechanisms))
            # TLS is asyncio's, so that proton takes every connection for unencrypted and would never use PLAIN.
            sasl.allow_insecure_mechs = True
        if settings.username is not None:
            connection.user = settings.username
            connection.password = settings.password or ""

    # Bytes and time

    def feed(self, data: bytes | memoryview) -> None:
        """Take bytes that the peer sent. They are not used after the call."""
        if len(self._start) < len(_TLS_HEADER):
            self._start += data[: len(_TLS_HEADER) - len(self._start)]
            if self._start.startswith((_TLS_HANDSHAKE, _TLS_HEADER)):
                self.fail("amqp:connection:framing-error", "the peer speaks TLS, this port does not")
        # Let go of at once: who lent the bytes takes them back as soon as this ends.
        with ffi.from_buffer(data) as source:
            self._push(source, len(data))

    def _push(self, source: Any, size: int) -> None:
        transport = self._transport_impl
        offset = 0
        while offset < size and not self._failed:
            room = lib.pn_transport_capacity(transport)
            if room <= 0:
                # The peer's closing frame was read; nothing that follows it has a meaning.
                return
            count = min(room, size - offset)
            if (taken := lib.pn_transport_push(transport, source + offset, count)) != count:
                words = pn_error_text(lib.pn_transport_error(transport)) if taken < 0 else "not all bytes were taken"
                self.fail("amqp:connection:framing-error", f"[{taken}]: {words}")
            offset += count
            self._collect()

    def output(self) -> bytes:
        """Bytes for the peer; empty when there is nothing to send now."""
        transport = self._transport_impl
        size = lib.pn_transport_pending(transport)
        # proton tells of every message that it encoded as if the credit had changed; only the peer's word counts.
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
        """True when both sides have said all: the socket can be closed once `output` was written.

        proton has no output left as soon as our own close frame is out. Closing the socket before the peer's has
        come could reset the connection, and take our frame from the peer.
        """
        return (self._failed or self._over) and lib.pn_transport_pending(self._transport_impl) < 0

    def tick(self, now: float) -> float | None:
        """Let time pass: heartbeats become output, a silent peer becomes `Failed`.

        Args:
            now: seconds of any clock that never goes back.

        Returns:
            when to call again at the latest, on the same clock; None when no time-out is agreed on (yet: call again
            after `Opened`).
        """
        deadline = self._transport.tick(now)
        self._collect()
        return deadline or None

    @property
    def waiting(self) -> bool:
        """True when `next_event` has something at hand."""
        return bool(self._events)

    def next_event(self) -> EngineEvent | None:
        """What happened next, or None."""
        if not self._events:
            self._collect()
        return self._events.popleft() if self._events else None

    def release(self) -> None:
        """Free proton's objects. Nothing may be called afterwards but `accept`, `flow`, `credit`, which do nothing
        then.

        A second call does nothing.
        """
        if not self._handlers:
            return
        for link in self._links.values():
            link.forget()
        self._links.clear()
        self._events.clear()
        self._session = None
        self._handlers.clear()
        self._transport.unbind()
        self._connection.free()
        self._collector.release()

    # Connection

    @property
    def mechanism(self) -> str | None:
        """SASL mechanism that was chosen, or None."""
        return self._transport.sasl().mech or None if self.settings.mechanisms is not None else None

    def close(self, condition: str = "", description: str = "") -> None:
        """Close the connection, giving a reason when `condition` is not empty."""
        if self._connection.state & proton.Endpoint.LOCAL_CLOSED:
            return
        if condition:
            self._connection.condition = proton.Condition(condition, description)
        if self._connection.state & proton.Endpoint.LOCAL_UNINIT:
            self._connection.open()
        self._connection.close()

    # Links

    def attach(self, name: str, *, sending: bool, node: Terminus, credit: int = 0, settled: bool = False) -> Link:
        """Ask the peer for a link. `LinkAttached` or `LinkDetached` answers.

        Args:
            name: unique among the links of this connection.
            sending: True for messages from us to the peer.
            node: the target of a sending link, the source of a receiving one.
            credit: for a receiving link: messages that we take at once.
            settled: the sending side shall settle every message at once.
        """
        session = self._session or self._begin()
        raw = session.sender(name) if sending else session.receiver(name)
        write_terminus(raw.target if sending else raw.source, node)
        if not sending:
            raw.max_message_size = self.settings.max_message
        if settled:
            raw.snd_settle_mode = proton.Link.SND_SETTLED
        link = self._adopt(raw)
        raw.open()
        if credit and isinstance(raw, proton.Receiver):
            raw.flow(credit)
        return link

    def _begin(self) -> proton.Session:
        self._session = self._connection.session()
        self._session.open()
        return self._session

    def accept_link(self, link: Link, *, source: Terminus | None, target: Terminus | None) -> None:
        """Grant a link that the peer asked for, telling it the nodes as they really are."""
        raw = link.raw
        write_terminus(raw.source, source)
        write_terminus(raw.target, target)
        raw.snd_settle_mode = raw.remote_snd_settle_mode
        raw.rcv_settle_mode = raw.remote_rcv_settle_mode
        if not link.sending:
            raw.max_message_size = self.settings.max_message
        raw.open()

    def refuse_link(self, link: Link, condition: str, description: str) -> None:
        """Refuse a link that the peer asked for: an attach with a null node, then a detach that says why."""
        raw = link.raw
        write_terminus(raw.source if link.sending else raw.target, None)
        raw.open()
        self.detach(link, condition, description)

    def detach(self, link: Link, condition: str = "", description: str = "") -> None:
        """End a link, giving a reason when `condition` is not empty. `LinkDetached` confirms."""
        if link.closing:
            return
        link.forget()
        if condition:
            link.raw.condition = proton.Condition(condition, description)
        link.raw.close()

    def flow(self, link: Link, credit: int) -> None:
        """Take `credit` more messages on a receiving link."""
        if not link.closing and not link.sending:
            lib.pn_link_flow(link.impl, credit)

    def credit(self, link: Link) -> int:
        """Messages that may be sent (or may still arrive) on a link."""
        if link.closing:
            return 0
        credit: int = lib.pn_link_credit(link.impl)
        return credit

    def drained(self, link: Link) -> None:
        """Tell the peer that there is nothing more to send now, if it asked for that."""
        if not link.closing and lib.pn_link_get_drain(link.impl):
            lib.pn_link_drained(link.impl)

    def backlog(self, link: Link) -> int:
        """Bytes given to `send` on the session of this link that are not yet in `output`."""
        if link.closing:
            return 0
        size: int = lib.pn_session_outgoing_bytes(link.session_impl)
        return size

    # Messages

    def send(self, link: Link, data: bytes, *, settled: bool = False) -> int:
        """Send one message; the owner checks `credit` before.

        Returns:
            delivery_tag that `Settled` will carry, unless `settled`.
        """
        return self._deliveries.send(link, data, settled=settled)

    def settle(
        self,
        link: Link,
        delivery_tag: int,
        outcome: Outcome = Outcome.ACCEPTED,
        condition: str = "",
        description: str = "",
    ) -> None:
        """Tell the peer what became of its message, and forget it. Does nothing when the link is gone."""
        self._deliveries.settle(link, delivery_tag, outcome, condition, description)

    # From proton's events to ours

    def _collect(self, *, flow: bool = True) -> None:
        collector, links = self._collector_impl, self._links
        while event := lib.pn_collector_peek(collector):
            number = lib.pn_event_type(event)
            if not self._failed:
                try:
                    if number == _DELIVERY:
                        delivery = lib.pn_event_delivery(event)
                        self._deliveries.changed(links.get(lib.pn_delivery_link(delivery)), delivery)
                    elif number == _LINK_FLOW:
                        if flow and (link := links.get(lib.pn_event_link(event))) is not None:
                            self._on_flow(link)
                    elif (handler := self._handlers.get(number)) is not None:
                        handler(_wrap(event))
                except NONSENSE as error:
                    self.fail("amqp:decode-error", str(error))
            lib.pn_collector_pop(collector)

    def fail(self, condition: str, description: str, *, authentication: bool = False) -> None:
        """The connection cannot go on. The first reason counts."""
        if not self._failed:
            self._failed = True
            self._events.append(Failed(condition, description, authentication))

    def _on_failure(self, _event: proton.Event) -> None:
        condition = self._transport.condition
        name, words = (
            (condition.name, condition.description or "") if condition else ("amqp:connection:framing-error", "")
        )
        outcome = self._transport.sasl().outcome if self.settings.mechanisms is not None else None
        self.fail(name, words, authentication=outcome not in (None, proton.SASL.OK))

    def _on_open(self, _event: proton.Event) -> None:
        if self.settings.server:
            if self._connection.state & proton.Endpoint.LOCAL_UNINIT:
                self._connection.open()
            self._announce()

    def _announce(self) -> None:
        offered = self._connection.remote_offered_capabilities
        if offered is None:
            names: frozenset[str] = frozenset()
        elif isinstance(offered, str):
            names = frozenset([str(offered)])
        else:
            names = frozenset(str(name) for name in getattr(offered, "elements", offered))
        said = self._connection.remote_properties
        properties = {str(name): value for name, value in said.items()} if isinstance(said, dict) else {}
        self._events.append(Opened(self._connection.remote_container or "", names, properties))

    def _on_close(self, _event: proton.Event) -> None:
        self._over = True
        self._events.append(Closed(*_words(self._connection)))
        self.close()

    def _on_begin(self, event: proton.Event) -> None:
        session = event.session
        assert session is not None
        if session.state & proton.Endpoint.LOCAL_UNINIT:
            session.open()
        elif not self._announced:
            # A broker that refuses a connection opens it, as the protocol wants, and closes it at once. Only with our
            # session begun it is known that we may stay.
            self._announced = True
            self._announce()

    def _on_end(self, event: proton.Event) -> None:
        session = event.session
        assert session is not None
        condition, description = _words(session)
        for impl, link in list(self._links.items()):
            if link.raw.session == session:
                self._events.append(LinkDetached(link, condition, description, link.closing))
                link.forget()
                del self._links[impl]
        if session == self._session:
            self._session = None
        session.close()
        session.free()

    def _on_attach(self, event: proton.Event) -> None:
        raw = event.link
        assert raw is not None
        known = self._find(raw)
        link = known or self._adopt(raw)
        link.source = read_terminus(raw.remote_source)
        link.target = read_terminus(raw.remote_target)
        link.settled = (raw.remote_snd_settle_mode if known is None else raw.snd_settle_mode) == proton.Link.SND_SETTLED
        if known is None:
            self._events.append(LinkRequested(link))
        elif (link.target if link.sending else link.source) is not None:
            self._events.append(LinkAttached(link))
        # A null node announces a refusal; the detach that follows says why.

    def _on_detach(self, event: proton.Event) -> None:
        raw = event.link
        assert raw is not None
        link = self._find(raw)
        if link is None:
            return
        self._events.append(LinkDetached(link, *_words(raw), link.closing))
        if not link.closing:
            # A detach that keeps the link (closed=false) is answered alike. We never resume one.
            if event.type == proton.Event.LINK_REMOTE_DETACH:
                raw.detach()
            else:
                raw.close()
        del self._links[link.impl]
        link.forget()
        raw.free()

    def _on_flow(self, link: Link) -> None:
        if link.sending and not link.closing:
            self._events.append(CreditChanged(link))

    # Links by C object

    def _adopt(self, raw: proton.Link) -> Link:
        link = Link(raw)
        self._links[link.impl] = link
        return link

    def _find(self, raw: proton.Link) -> Link | None:
        return self._links.get(raw._impl)


def _words(endpoint: proton.Connection | proton.Session | proton.Link) -> tuple[str, str]:
    condition = endpoint.remote_condition
    return (condition.name, condition.description or "") if condition else ("", "")
