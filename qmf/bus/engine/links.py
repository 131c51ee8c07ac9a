"""The links of a connection: attached, granted, refused, ended; and their credit."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import proton
from cproton import lib

from qmf.bus.engine.events import (
    CreditChanged,
    Drained,
    EngineEvent,
    EventBatch,
    LinkAttached,
    LinkDetached,
    LinkRequested,
)
from qmf.bus.engine.link import Link
from qmf.bus.engine.link_table import LinkTable
from qmf.bus.engine.native import Native
from qmf.bus.engine.properties import error_of, text_keys, write_properties
from qmf.bus.engine.resumption import LINK_RESUMPTION, Resumption, read_resumption
from qmf.bus.engine.sent_frames import SentFrames
from qmf.bus.engine.session import EngineSession
from qmf.bus.engine.sessions import EngineSessions
from qmf.bus.engine.terminus import read_terminus, write_terminus
from qmf.bus.engine.values import Terminus


class Links:
    """The links of a connection.

    Attributes:
        by_impl: the links that both sides have not ended yet, by C object, which each link keeps alive.
        table: of the links, for the compiled functions.
        flowed: while a frame that asks for an answer is handled: the links whose flows have come; else None.
    """

    def __init__(
        self,
        by_impl: dict[Any, Link],
        sessions: EngineSessions,
        events: deque[EngineEvent | EventBatch],
        sent_frames: SentFrames,
        max_message: int,
        native: Native | None,
    ) -> None:
        """Make the links of an engine, which has none yet.

        Args:
            by_impl: as the attribute; empty.
            sessions: of the connection.
            events: of the engine, where those of links are appended.
            sent_frames: learn the handles of links.
            max_message: bytes of the largest message that is accepted.
            native: the compiled functions; None to do without.
        """
        self.by_impl = by_impl
        self.table = LinkTable(by_impl)
        self.flowed: list[Link] | None = None
        self._sessions = sessions
        self._events = events
        self._sent_frames = sent_frames
        self._max_message = max_message
        self._native = native

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
            session = self._sessions.default()
        raw = session.raw.sender(name) if is_sender else session.raw.receiver(name)
        write_terminus(raw.target if is_sender else raw.source, terminus)
        if own_terminus is not None:
            write_terminus(raw.source if is_sender else raw.target, own_terminus)
        write_properties(raw, properties or {}, resumption)
        if resumption is not None:
            raw.rcv_settle_mode = proton.Link.RCV_SECOND
        if not is_sender:
            raw.max_message_size = self._max_message
        if presettled or unsettled:
            raw.snd_settle_mode = proton.Link.SND_SETTLED if presettled else proton.Link.SND_UNSETTLED
        link = self._add(raw)
        raw.open()
        if credit and isinstance(raw, proton.Receiver):
            raw.flow(credit)
        return link

    def accept(
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
        lib.pn_link_set_snd_settle_mode(link.impl, lib.pn_link_remote_snd_settle_mode(link.impl))
        lib.pn_link_set_rcv_settle_mode(link.impl, lib.pn_link_remote_rcv_settle_mode(link.impl))
        if not link.is_sender:
            raw.max_message_size = self._max_message
        write_properties(raw, {}, resumption)
        raw.open()

    def refuse(self, link: Link, condition: str, description: str) -> None:
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
        if self._native is not None:
            room: int = self._native.room(link.address, link.session_address, backlog)
            return room
        credit = self.credit(link)
        if credit <= 0:
            return 0
        return credit if self.backlog(link) < backlog else -1

    def check_drained(self, link: Link) -> None:
        """Report the end of a drain: the peer has used all credit for messages, or returned the rest."""
        if not lib.pn_link_draining(link.impl) and not lib.pn_link_queued(link.impl):
            link.draining = False
            lib.pn_link_set_drain(link.impl, False)
            self._events.append(Drained(link))

    def forget(self) -> None:
        """Forget all links, since the connection is gone."""
        for link in self.by_impl.values():
            link.mark_detached()
        self.by_impl.clear()
        self.table.clear()

    # What the peer does

    def on_attach(self, raw: proton.Link) -> None:
        """The peer asks for a link, or grants one."""
        impl = raw._impl
        if lib.pn_session_state(lib.pn_link_session(impl)) & proton.Endpoint.LOCAL_CLOSED:
            return  # sent before the peer knew that its session is ended
        known = self.by_impl.get(impl)
        link = known or self._add(raw)
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

    def on_detach(self, raw: proton.Link, *, closed: bool) -> None:
        """The peer ends a link, or only suspends it; or it confirms that."""
        link = self.by_impl.get(raw._impl)
        if link is None:
            return
        self._events.append(LinkDetached(link, *error_of(raw), link.detached, closed))
        if not link.detached:
            # A detach with closed=false, which allows to resume the link, is answered alike.
            if closed:
                raw.close()
            else:
                raw.detach()
        self._remove(link.impl)
        link.mark_detached()
        raw.free()

    def on_flow(self, link: Link) -> None:
        """The peer has changed the credit of a link, or used it up."""
        if link.detached:
            return
        if self.flowed is not None:
            self.flowed.append(link)
        if link.is_sender:
            if not link.quiet or lib.pn_link_get_drain(link.impl):
                self._events.append(CreditChanged(link))
        elif link.draining:
            self.check_drained(link)

    def on_end(self, session: proton.Session, condition: str, description: str) -> None:
        """The peer ends a session: its links are gone."""
        for impl, link in list(self.by_impl.items()):
            if link.raw.session == session:
                self._events.append(LinkDetached(link, condition, description, link.detached, closed=False))
                link.mark_detached()
                self._remove(impl)

    def _add(self, raw: proton.Link) -> Link:
        link = Link(raw)
        self.by_impl[link.impl] = link
        self._sent_frames.expect(link)
        self.table.add(link)
        return link

    def _remove(self, impl: Any) -> None:
        self._sent_frames.forget(self.by_impl.pop(impl))
        self.table.clear()
