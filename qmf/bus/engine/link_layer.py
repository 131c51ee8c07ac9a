"""The part of an engine that owns its sessions and links, and through `deliveries.py` its messages."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import proton
from cproton import lib

from qmf.bus.engine.deliveries import Deliveries
from qmf.bus.engine.events import (
    CreditChanged,
    EngineEvent,
    EventBatch,
    LinkAttached,
    LinkDetached,
    LinkRequested,
    SessionEnded,
)
from qmf.bus.engine.link import Link
from qmf.bus.engine.native import native
from qmf.bus.engine.outcome_layer import OutcomeLayer
from qmf.bus.engine.properties import error_of, text_keys, write_properties
from qmf.bus.engine.resumption import LINK_RESUMPTION, Resumption, read_resumption
from qmf.bus.engine.sent_frames import SentFrames
from qmf.bus.engine.session import EngineSession
from qmf.bus.engine.simple_events import SimpleEvents
from qmf.bus.engine.terminus import read_terminus, write_terminus
from qmf.bus.engine.values import ConnectionSettings, Terminus


class LinkLayer(OutcomeLayer):
    """Sessions, links and messages of a connection; the base of `Engine`.

    Attributes:
        settings: of the connection.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        compiled = native()
        super().__init__(compiled)
        self.settings = settings
        self._connection = proton.Connection()
        self._events: deque[EngineEvent | EventBatch] = deque()
        #: By C object, which each link keeps alive.
        self._links: dict[Any, Link] = {}
        self._sent_frames = SentFrames()
        #: While a frame that matters is handled: the session or the link that it is for.
        self._subjects: list[proton.Session | Link] | None = None
        self._deliveries = Deliveries(
            settings.max_message, self._events, self.detach, server=settings.server, native=compiled
        )
        self._simple: SimpleEvents | None = None
        if compiled is not None:
            deliveries = self._deliveries
            self._simple = SimpleEvents(compiled, self._links, settings.max_message, deliveries, self._on_flow)
        #: The session that a client has from the start, and all sessions that this side began.
        self._session: EngineSession | None = None
        self._sessions: list[EngineSession] = []
        #: C objects of the sessions that the peer has begun: those granted, and those refused that it has not ended.
        self._peer_sessions: set[Any] = set()
        self._refused_sessions: set[Any] = set()
        #: C objects of all sessions, by the peer's channel.
        self._channels: dict[int, Any] = {}

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

    def end_with_links(self, links: Iterable[Link], condition: str, description: str) -> None:
        """End the sessions that the peer began for some links, with an error. `LinkDetached` confirms for each link."""
        for session in {link.session_id: link.session for link in links}.values():
            session.condition = proton.Condition(condition, description)
            self.end(EngineSession(session))

    # Links

    def attach(
        self,
        name: str,
        *,
        is_sender: bool,
        terminus: Terminus,
        credit: int = 0,
        presettled: bool = False,
        unsettled: bool = False,
        session: EngineSession | None = None,
        own_terminus: Terminus | None = None,
        properties: Mapping[str, object] | None = None,
        resumption: Resumption | None = None,
    ) -> Link:
        """Ask the peer for a link. `LinkAttached` or `LinkDetached` answers.

        Args:
            name: unique among the links of this connection.
            is_sender: True for messages from us to the peer.
            terminus: the target of a link on which we send, the source of one on which we receive.
            credit: for a link on which we receive: messages that the peer may send at once.
            presettled: ask for the sender to settle every message at once.
            unsettled: ask for the sender to settle none before the receiver has decided.
            session: None for the session that a client has from the start.
            own_terminus: the terminus of our side.
            properties: of the link, by name.
            resumption: of a link that can be resumed. Its receiver settles second: `settle` is replaced by
                `set_outcome`, which the peer confirms.
        """
        if session is None:
            session = self._session = self._session or self.begin()
        raw = session.raw.sender(name) if is_sender else session.raw.receiver(name)
        write_terminus(raw.target if is_sender else raw.source, terminus)
        if own_terminus is not None:
            write_terminus(raw.source if is_sender else raw.target, own_terminus)
        write_properties(raw, properties or {}, resumption)
        if resumption is not None:
            raw.rcv_settle_mode = proton.Link.RCV_SECOND
        if not is_sender:
            raw.max_message_size = self.settings.max_message
        if presettled or unsettled:
            raw.snd_settle_mode = proton.Link.SND_SETTLED if presettled else proton.Link.SND_UNSETTLED
        link = self._add_link(raw)
        raw.open()
        if credit and isinstance(raw, proton.Receiver):
            raw.flow(credit)
        return link

    def accept_link(
        self, link: Link, *, source: Terminus | None, target: Terminus | None, resumption: Resumption | None = None
    ) -> None:
        """Grant a link that the peer asked for.

        Args:
            link: of `LinkRequested`.
            source, target: as granted, which may differ from what the peer asked for.
            resumption: of a link that can be resumed, as the peer has asked for.
        """
        raw = link.raw
        write_terminus(raw.source, source)
        write_terminus(raw.target, target)
        raw.snd_settle_mode = raw.remote_snd_settle_mode
        raw.rcv_settle_mode = raw.remote_rcv_settle_mode
        if not link.is_sender:
            raw.max_message_size = self.settings.max_message
        write_properties(raw, {}, resumption)
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
        """Allow the peer to send `credit` more messages on a link on which we receive; or fewer, if it is below 0."""
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

    @property
    def link_count(self) -> int:
        """Links that both sides have not ended yet."""
        return len(self._links)

    def backlog(self, link: Link) -> int:
        """Bytes given to `send` on the session of this link that are not yet in `output`."""
        if link.detached:
            return 0
        size: int = lib.pn_session_outgoing_bytes(link.session_impl)
        return size

    def room(self, link: Link, backlog: int) -> int:
        """Messages that may be sent now: the credit, or -1 if too much waits to be written.

        Args:
            link: on which we send.
            backlog: bytes given to `send` on the session that may wait.
        """
        if link.detached:
            return 0
        if self._simple is not None:
            return self._simple.room(link, backlog)
        credit = self.credit(link)
        if credit <= 0:
            return 0
        return credit if self.backlog(link) < backlog else -1

    # Messages

    def send(
        self,
        link: Link,
        data: bytes,
        *,
        settled: bool = False,
        transaction: bytes | None = None,
        delivery_tag: int | None = None,
        message_format: int = 0,
    ) -> int:
        """Send one message. The owner has checked `credit` before.

        Args:
            link: on which we send.
            data: the encoded message.
            settled: settle it at once: there will be no outcome.
            transaction: id of the transaction that the message is part of.
            delivery_tag: on a link that can be resumed; each one is used for one message, on whatever connection.
            message_format: of the message, in 32 bits.

        Returns:
            delivery tag, the same as in `OutcomeReceived`.
        """
        if self._accept_later:
            self.accept_waiting()
        return self._deliveries.send(
            link,
            data,
            settled=settled,
            transaction=transaction,
            delivery_tag=delivery_tag,
            message_format=message_format,
        )

    def send_all(
        self,
        link: Link,
        messages: list[bytes],
        start: int,
        backlog: int,
        *,
        settled: bool = False,
        transaction: bytes | None = None,
    ) -> range:
        """Send messages, as long as there is credit, and not too much waits to be written. The link cannot be resumed.

        Args:
            link: on which we send.
            messages: encoded ones.
            start: the first of them that is sent.
            backlog: bytes given to `send` on the session that may wait.
            settled, transaction: as of `send`, for all of them.

        Returns:
            delivery tags of those that were sent.
        """
        if link.detached:
            return range(0)
        if self._accept_later:
            self.accept_waiting()
        sent = self._deliveries.send_all(link, messages, start, backlog, settled=settled, transaction=transaction)
        return range(self._deliveries.next_tag - sent, self._deliveries.next_tag)

    # Proton's events

    def _link_handlers(self) -> dict[int, Callable[[proton.Event], None]]:
        """By number of the event; what happens for every message has no handler here."""
        return {
            proton.Event.SESSION_REMOTE_CLOSE.number: self._on_end,
            proton.Event.LINK_REMOTE_OPEN.number: self._on_attach,
            proton.Event.LINK_REMOTE_CLOSE.number: self._on_detach,
            proton.Event.LINK_REMOTE_DETACH.number: self._on_detach,
        }

    def _on_end(self, event: proton.Event) -> None:
        session = event.session
        assert session is not None
        condition, description = error_of(session)
        self._peer_sessions.discard(session._impl)
        self._refused_sessions.discard(session._impl)
        for impl, link in list(self._links.items()):
            if link.raw.session == session:
                self._events.append(LinkDetached(link, condition, description, link.detached, closed=False))
                link.mark_detached()
                self._remove_link(impl)
        for own in self._sessions:
            if own.raw == session:
                self._events.append(SessionEnded(own, condition, description, own.ended))
                own.ended = True
                self._sessions.remove(own)
                if own is self._session:
                    self._session = None
                break
        self._channels = {channel: each for channel, each in self._channels.items() if each != session._impl}
        session.close()
        session.free()

    def _on_attach(self, event: proton.Event) -> None:
        raw = event.link
        assert raw is not None
        if raw.session.state & proton.Endpoint.LOCAL_CLOSED:
            return  # sent before the peer knew that its session is ended
        known = self._link_of(raw)
        link = known or self._add_link(raw)
        link.source = read_terminus(raw.remote_source)
        link.target = read_terminus(raw.remote_target)
        link.properties = text_keys(raw.remote_properties)
        link.resumption = read_resumption(link.properties.get(LINK_RESUMPTION))
        link.mark_row()
        link.max_message = raw.remote_max_message_size
        mode = raw.remote_snd_settle_mode if known is None else raw.snd_settle_mode
        link.presettled = mode == proton.Link.SND_SETTLED
        # The receiver's mode is the one that counts; one that is asked for a link grants what the sender wants.
        settling = raw.rcv_settle_mode if known is not None and not link.is_sender else raw.remote_rcv_settle_mode
        link.settles_second = settling == proton.Link.RCV_SECOND
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
        closed = event.type != proton.Event.LINK_REMOTE_DETACH
        self._events.append(LinkDetached(link, *error_of(raw), link.detached, closed))
        if not link.detached:
            # A detach with closed=false, which allows to resume the link, is answered alike.
            if closed:
                raw.close()
            else:
                raw.detach()
        self._remove_link(link.impl)
        link.mark_detached()
        raw.free()

    def _on_flow(self, link: Link) -> None:
        if link.detached:
            return
        if self._subjects is not None:
            self._subjects.append(link)
        if link.is_sender:
            self._events.append(CreditChanged(link))
        elif link.draining:
            self._deliveries.check_drained(link)

    # Links by C object

    def _add_link(self, raw: proton.Link) -> Link:
        link = Link(raw)
        self._links[link.impl] = link
        self._sent_frames.expect(link)
        if self._simple is not None:
            self._simple.add(link)
        return link

    def _remove_link(self, impl: Any) -> None:
        self._sent_frames.forget(self._links.pop(impl))
        if self._simple is not None:
            self._simple.forget_table()

    def _link_of(self, raw: proton.Link) -> Link | None:
        return self._links.get(raw._impl)

    def _forget_links(self) -> None:
        for link in self._links.values():
            link.mark_detached()
        self._links.clear()
        self._channels.clear()
        if self._simple is not None:
            self._simple.forget_table()
        self._session = None
        self._sessions.clear()
