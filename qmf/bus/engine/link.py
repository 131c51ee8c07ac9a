"""The engine's handle of one link."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol

import proton

from qmf.bus.engine.native import HOLDS, QUIET, SKIP, TAGGED, set_flags
from qmf.bus.engine.resumption import Resumption
from qmf.bus.engine.values import Terminus

#: Property of a link on which a client sends: true if outcomes of messages with a correlation id need not be sent at
#: once. It says for them what the field `batchable` of a transfer would say, which proton does not set.
BATCHABLE = "qmf.batchable"


class BatchOwner(Protocol):
    """Takes what happens most on a link while bytes of the peer are fed, without an event."""

    def on_deliveries(self, batch: Any) -> None:
        """Messages arrived: a `DeliveryBatch`."""

    def on_accepted(self, batch: Any) -> None:
        """The peer accepted and settled messages: an `AcceptedBatch`."""


class Link:
    """A link of a connection, seen from one side. Compared by identity.

    Attributes:
        name: chosen by the side that asked for the link.
        is_sender: True when we are the sender, and the peer the receiver.
        source, target: as the peer gave them in its attach, known from then on; None for a null terminus, with which
            a peer announces that it refuses the link.
        presettled: True when the sender settles every message at once, so that there are no outcomes.
        settles_second: True when the receiver settles only after the sender has (`Decisions.set_outcome`).
        properties: of the link as the peer sent them, by name; known from its attach on.
        resumption: of a link that can be resumed, as the peer sent it in its attach; None for any other link. The
            delivery tags of such a link are chosen by the sender's owner, and are the same on both sides.
        max_message: bytes of the largest message that the peer accepts, where we are the sender; 0 for no limit.
        keeps_unsettled: set by the owner of a link on which we send: messages that the peer accepts without settling
            them stay unsettled until `Decisions.settle_sent`.
        quiet: of a link on which we send: that the peer has given credit is not reported, see `set_quiet`.
        count_available: set by the owner of a link on which we send: counts the messages that wait for credit, for a
            peer that asks; None to tell no number.
        joined: set by the owner of a link that can be resumed, on which we receive: messages that come one after the
            other are a `DeliveryBatch`, as they are on other links.
        available: of a link on which we receive: how many messages wait for credit at the peer, as it told last
            (`Engine.ask_state`); None if it has not.
        direct: set by the owner: called with messages and acceptances in place of the events, unless others wait to be
            taken, or the compiled functions are missing. It must not write.
        raw, session, impl, session_impl, address, session_address, table, place, received, sent, accepting, confirming,
            transactional, chunks, chunks_size, message_format, draining, detached, handle: for the engine alone.
    """

    __slots__ = (
        "_joined",
        "_keeps_unsettled",
        "accepting",
        "address",
        "available",
        "chunks",
        "chunks_size",
        "confirming",
        "count_available",
        "detached",
        "direct",
        "draining",
        "handle",
        "impl",
        "is_sender",
        "max_message",
        "message_format",
        "name",
        "place",
        "presettled",
        "properties",
        "quiet",
        "raw",
        "received",
        "resumption",
        "sent",
        "session",
        "session_address",
        "session_impl",
        "settles_second",
        "source",
        "table",
        "target",
        "transactional",
    )

    def __init__(self, raw: proton.Link) -> None:
        self.name: str = raw.name or ""
        self.is_sender: bool = raw.is_sender
        self.source: Terminus | None = None
        self.target: Terminus | None = None
        self.presettled = False
        self.settles_second = False
        self.properties: Mapping[str, object] = {}
        self.resumption: Resumption | None = None
        self.max_message = 0
        self.quiet = False
        self._joined = self._keeps_unsettled = False
        self.raw = raw
        self.session = raw.session
        #: The C objects behind `raw` and `session`, which live as long as those do. What is needed for every message is
        #: called on them directly, without proton's Python objects in between.
        self.impl: Any = raw._impl
        self.session_impl: Any = self.session._impl
        #: The same as addresses, and the place in the table of links, for the compiled functions; unused without them.
        self.address = self.session_address = 0
        self.table: bytearray | None = None
        self.place = 0
        #: Unsettled deliveries as C objects, or their numbers for the compiled functions: received ones by delivery
        #: tag, and the tags of sent ones. Both are cleared when the link ends: proton frees the deliveries then, and
        #: must not be called with them later.
        self.received: dict[int, Any] = {}
        self.sent: dict[Any, int] = {}
        #: Of a client's link: the state with which the peer accepted the last message in a transaction, encoded; as a
        #: rule the next ones have the same.
        self.accepting = b""
        #: Tags of received messages with an outcome that the peer has to settle first.
        self.confirming: dict[Any, int] = {}
        #: Sent messages with an outcome that wait for `settle_sent`: those in a transaction that has not ended, and
        #: those of a link that holds them. By delivery tag.
        self.transactional: dict[int, Any] = {}
        #: Transfers of the message that is being received: AMQP allows one at a time per link.
        self.chunks: list[bytes] = []
        self.chunks_size = 0
        #: Format of the message that is being received.
        self.message_format = 0
        #: Of a link on which we send: its number in our frames, once our attach is written.
        self.handle: int | None = None
        self.count_available: Callable[[], int] | None = None
        self.available: int | None = None
        self.direct: BatchOwner | None = None
        #: The peer was asked to use or return all credit, and has not done so yet.
        self.draining = False
        #: We have detached the link and wait for the peer's answer, or it has ended.
        self.detached = False

    @property
    def keeps_unsettled(self) -> bool:
        """See above."""
        return self._keeps_unsettled

    @keeps_unsettled.setter
    def keeps_unsettled(self, keeps_unsettled: bool) -> None:
        self._keeps_unsettled = keeps_unsettled
        self.mark_row()

    @property
    def joined(self) -> bool:
        """See above."""
        return self._joined

    @joined.setter
    def joined(self, joined: bool) -> None:
        self._joined = joined
        self.mark_row()

    def set_quiet(self, quiet: bool) -> None:
        """For the owner of a link on which we send: whether it need not know that the peer has given credit; that the
        peer wants it used up is reported either way.
        """
        self.quiet = quiet
        self.mark_row()

    @property
    def flags(self) -> int:
        """For the row in the table of links: whether events of the link are simple, and what they mean."""
        tagged = self.resumption is not None and not self.is_sender
        if self.detached or self.chunks or (tagged and not self._joined):
            return SKIP
        return (TAGGED if tagged else 0) | (HOLDS if self._keeps_unsettled else 0) | (QUIET if self.quiet else 0)

    def mark_row(self) -> None:
        """Something that the flags depend on has changed."""
        if self.table is not None:
            set_flags(self.table, self.place, self.flags)

    def set_row(self, table: bytearray, place: int) -> None:
        """The link has a row in another table."""
        self.table, self.place = table, place

    @property
    def session_id(self) -> Hashable:
        """Identifies the session among those of the connection."""
        key: Hashable = self.session_impl
        return key

    @property
    def named(self) -> bool:
        """False for a link that the peer has given no name, against the protocol."""
        return self.raw.name is not None

    def mark_detached(self) -> None:
        """The link is detached: forget its deliveries."""
        self.detached = True
        self.mark_row()
        self.received.clear()
        self.sent.clear()
        self.confirming.clear()
        self.transactional.clear()
        self.chunks.clear()
        self.chunks_size = 0
        self.count_available = self.direct = None

    def __repr__(self) -> str:
        return f"<Link {self.name!r} {'out' if self.is_sender else 'in'}>"
