"""Events of a connection, as `Engine.next_event` returns them: small frozen objects without anything of proton.

Their order is that of the peer's frames. For a link, `LinkRequested` or `LinkAttached` comes first, unless the link is
refused, and `LinkDetached` last. After `ConnectionFailed` there are no more events. When the connection ends, its links
are not reported one by one; when a session ends, they are.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import attrs

from qmf.bus.engine.link import Link
from qmf.bus.engine.session import EngineSession
from qmf.bus.engine.values import Outcome


@attrs.frozen
class ConnectionOpened:
    """The connection can be used: the peer has opened it and, on the client's side, begun the session.

    Attributes:
        container: the peer's container id, or empty.
        capabilities: that the peer offers.
        properties: of the connection, such as `product`.
        desired: capabilities that the peer asks for.
    """

    container: str
    capabilities: frozenset[str]
    properties: Mapping[str, object] = attrs.field(factory=dict)
    desired: frozenset[str] = frozenset()

    @property
    def product(self) -> str:
        """Product name of the peer, or empty."""
        product = self.properties.get("product")
        return product if isinstance(product, str) else ""


@attrs.frozen
class ConnectionClosed:
    """The peer has closed the connection, or confirmed our close; the engine has answered.

    Attributes:
        condition, description: the peer's error; empty when it gave none.
    """

    condition: str
    description: str


@attrs.frozen
class ConnectionFailed:
    """The connection cannot go on: invalid frames, an encoding error, a missing heartbeat, or failed authentication.

    Attributes:
        condition, description: the error, as proton or the peer gives it.
        authentication: True when the SASL layer ended without success.
    """

    condition: str
    description: str
    authentication: bool = False


@attrs.frozen
class LinkRequested:
    """The peer asks for a link; to be answered with `Links.accept` or `Links.refuse`.

    Attributes:
        link: with source and target as the peer wants them.
    """

    link: Link


@attrs.frozen
class LinkAttached:
    """The peer has granted a link that we asked for with `Links.attach`.

    Attributes:
        link: with source and target as the peer granted them.
    """

    link: Link


@attrs.frozen
class LinkDetached:
    """A link has ended, or was refused. The engine ignores all further calls for it.

    Attributes:
        link: which.
        condition, description: the peer's error; empty when it gave none.
        answer: True when this confirms our own `Links.detach`.
        closed: False when the peer only suspends the link, or its session has ended: it may be resumed.
    """

    link: Link
    condition: str
    description: str
    answer: bool
    closed: bool = True


@attrs.frozen
class CreditChanged:
    """The peer has given credit on a link of which we are the sender, or asks to use it up (drain).

    Attributes:
        link: see `Links.credit` and `Links.answer_drain`.
    """

    link: Link


@attrs.frozen(weakref_slot=False)
class Delivery:
    """A message has arrived, all its transfers joined.

    Attributes:
        link: on which link.
        delivery_tag: for `Decisions.settle`; None when the peer has settled the message already.
        data: the encoded message.
        transaction: id of the transaction that the message is part of, or None; only on the server's side.
        message_format: what the bytes mean, in 32 bits; 0 for a message as AMQP defines it.
    """

    link: Link
    delivery_tag: int | None
    data: bytes
    transaction: bytes | None = None
    message_format: int = 0


@attrs.frozen
class MessageTooLarge:
    """A message has arrived that is larger than a client accepts. It was released, and the link is being detached.

    Attributes:
        link: on which link.
        size: bytes of the message.
        settled: True if the peer had settled it already, so that it is lost.
    """

    link: Link
    size: int
    settled: bool


@attrs.frozen(weakref_slot=False)
class OutcomeReceived:
    """The peer has settled a message that we sent.

    Attributes:
        link: on which link it was sent.
        delivery_tag: as `Deliveries.send` returned it.
        outcome: of the message; accepted when the peer settled it without one.
        condition, description: the peer's error, for a rejected message; else empty.
        failed: of a modified message: the attempt to deliver it counts.
        undeliverable: of a modified message: it must not be sent on this link again.
        annotations: of a modified message: what is to be merged into its message annotations, as an encoded map; empty
            for nothing.
        transaction: id of the transaction in which the peer decided, or which it has declared; else None.
        final: False if the outcome depends on the transaction, or the link holds its messages (`Link.keeps_unsettled`):
            `Decisions.settle_sent` settles the message.
    """

    link: Link
    delivery_tag: int
    outcome: Outcome
    condition: str = ""
    description: str = ""
    failed: bool = False
    undeliverable: bool = False
    transaction: bytes | None = None
    final: bool = True
    annotations: bytes = b""


@attrs.frozen(weakref_slot=False)
class DeliveryBatch:
    """Messages that have arrived one after the other on a link; none is part of a transaction, or has a format.

    Attributes:
        link: on which link.
        deliveries: delivery tag and data of each, as of `Delivery`.
    """

    link: Link
    deliveries: list[tuple[int | None, bytes]]

    def events(self) -> list[Delivery]:
        """The same, one by one."""
        return [Delivery(self.link, delivery_tag, data) for delivery_tag, data in self.deliveries]


@attrs.frozen(weakref_slot=False)
class AcceptedBatch:
    """The peer has accepted and settled messages that we sent on a link, one after the other.

    Attributes:
        link: on which link they were sent.
        delivery_tags: of each, as of `OutcomeReceived`.
        transaction: the same.
    """

    link: Link
    delivery_tags: list[int]
    transaction: bytes | None = None

    def events(self) -> list[OutcomeReceived]:
        """The same, one by one."""
        return [
            OutcomeReceived(self.link, delivery_tag, Outcome.ACCEPTED, transaction=self.transaction)
            for delivery_tag in self.delivery_tags
        ]


@attrs.frozen(weakref_slot=False)
class HeldBatch:
    """The peer has accepted messages that we sent on a link that holds them (`Link.keeps_unsettled`), one after the
    other: `Decisions.settle_sent` settles them.

    Attributes:
        link: on which link they were sent.
        delivery_tags: of each, as of `OutcomeReceived`.
    """

    link: Link
    delivery_tags: list[int]

    def events(self) -> list[OutcomeReceived]:
        """The same, one by one."""
        return [OutcomeReceived(self.link, tag, Outcome.ACCEPTED, final=False) for tag in self.delivery_tags]


@attrs.frozen(weakref_slot=False)
class OutcomeConfirmed:
    """The peer has settled a message that we received, after `Decisions.set_outcome` without a transaction.

    Attributes:
        link, delivery_tag: of `Delivery`.
    """

    link: Link
    delivery_tag: int


@attrs.frozen(weakref_slot=False)
class ConfirmedBatch:
    """The peer has settled messages that we received on a link, one after the other, after we gave them an outcome.

    Attributes:
        link: on which link they came.
        delivery_tags: of each, as of `OutcomeConfirmed`.
    """

    link: Link
    delivery_tags: list[int]

    def events(self) -> list[OutcomeConfirmed]:
        """The same, one by one."""
        return [OutcomeConfirmed(self.link, tag) for tag in self.delivery_tags]


@attrs.frozen
class Drained:
    """The peer has used or returned all credit, as `Links.drain` asked for.

    Attributes:
        link: on which we receive.
    """

    link: Link


@attrs.frozen
class SessionEnded:
    """A session that we began has ended, after all its links.

    Attributes:
        session: which.
        condition, description: the peer's error; empty when it gave none.
        answer: True when this confirms our own `Sessions.end`.
    """

    session: EngineSession
    condition: str
    description: str
    answer: bool


@attrs.frozen
class PeerSessionEnded:
    """A session that the peer began has ended, after all its links.

    Attributes:
        session_id: as of `Link.session_id`.
    """

    session_id: Hashable


EngineEvent = (
    ConnectionOpened
    | ConnectionClosed
    | ConnectionFailed
    | LinkRequested
    | LinkAttached
    | LinkDetached
    | SessionEnded
    | PeerSessionEnded
    | CreditChanged
    | Drained
    | Delivery
    | MessageTooLarge
    | OutcomeReceived
    | OutcomeConfirmed
)

#: Several messages or outcomes at once.
EventBatch = DeliveryBatch | AcceptedBatch | HeldBatch | ConfirmedBatch
