"""What observers see of all that consoles create and that transfers messages by itself."""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping
from typing import Protocol

import attrs

from qmf.broker.nodes.counters import ExchangeCounters
from qmf.broker.nodes.observed_clients import ClientSession
from qmf.broker.nodes.queues import Queue


class ObservedDefinition(Hashable, Protocol):
    """What consoles create, and the store may keep. Compared by identity."""

    @property
    def kind(self) -> str:
        """Of which type consoles create it."""

    @property
    def name(self) -> str:
        """Its name among those of its kind."""

    @property
    def durable(self) -> bool:
        """It is there again after a restart."""

    @property
    def fields(self) -> Mapping[str, object]:
        """From which it is made again."""


class ObservedState(Protocol):
    """In which state something is that transfers messages."""

    @property
    def state_name(self) -> str:
        """Its state, in qpidd's words for links."""

    @property
    def reason(self) -> str:
        """Why it transfers nothing, or what it lacks; empty if all is well."""

    @property
    def since(self) -> float:
        """When it came into this state, in seconds since 1970."""


class MessageRelay(ObservedDefinition, ObservedState, Protocol):
    """What forwards messages to ``name@domain``. Compared by identity."""

    @property
    def domain_name(self) -> str:
        """Name of the domain (another broker); empty if that is looked up, or takes the messages itself."""

    @property
    def queue(self) -> Queue:
        """In which messages wait."""

    @property
    def dead_letters(self) -> str:
        """Name of the queue for messages that could not be forwarded."""

    @property
    def counters(self) -> ExchangeCounters:
        """Of the messages that came."""

    @property
    def forwarded(self) -> int:
        """Messages that the other broker has accepted."""

    @property
    def retried(self) -> int:
        """Messages that the other broker has refused for now."""

    @property
    def dead_lettered(self) -> int:
        """Messages that could not be forwarded."""


class LinkMode(enum.Enum):
    """What a link within the broker does with messages."""

    MOVE = "move"  #: they leave the source
    COPY = "copy"  #: they stay there


@attrs.frozen(eq=False)
class NodeLinkProperties:
    """What was asked for of a link within the broker.

    Attributes:
        source: name of the queue from which it takes messages.
        target: name of the queue or exchange to which it sends them.
        mode: what it does with them.
        selector: which messages; empty for all.
        max_count: messages after which it ends; 0 for no limit.
        max_size: bytes of the largest message that it takes; 0 for no limit.
        max_rate: messages in a second at most; 0 for no limit.
        user: with whose rights it acts.
    """

    source: str
    target: str
    mode: LinkMode
    selector: str
    max_count: int
    max_size: int
    max_rate: int
    user: str


class NodeLink(ObservedDefinition, ObservedState, Protocol):
    """A link within the broker. Compared by identity."""

    @property
    def wanted(self) -> NodeLinkProperties:
        """What was asked for."""

    @property
    def passed(self) -> int:
        """Messages that it has passed on."""

    @property
    def octets(self) -> int:
        """Bytes of those since the broker started."""

    @property
    def skipped(self) -> int:
        """Messages that it has left."""


class PeerDomain(ObservedDefinition, Protocol):
    """Another broker, to which this one has links; its `fields` have its password. Compared by identity."""

    @property
    def url(self) -> str:
        """Where the broker is, without a password."""

    @property
    def mechanisms(self) -> tuple[str, ...] | None:
        """Names of SASL mechanisms that may be used; None for the strongest that is offered."""

    @property
    def username(self) -> str | None:
        """Who logs in, or None."""


class PeerLink(ObservedDefinition, ObservedState, Protocol):
    """A link of this broker to another one, whether or not it is up. Compared by identity.

    Its kind is ``incoming``, ``outgoing`` or ``link``.
    """

    @property
    def place(self) -> tuple[str, int, bool]:
        """Host and port of the other broker, and whether with TLS."""

    @property
    def session(self) -> ClientSession | None:
        """The session with the other broker; None while there is no connection."""


@attrs.frozen(eq=False)
class BridgeProperties:
    """What was asked for of a bridge; the names are those of qpidd, in Python's spelling.

    Attributes:
        src, dest: the nodes that its messages come from and go to.
        key: binding key of those that are forwarded, where `src` is an exchange.
        tag: id that is added to their traces; empty for that of the broker which they leave.
        excludes: ids of brokers; messages that have left one of them are not forwarded.
        src_is_queue: `src` is a queue.
        src_is_local: messages go from this broker to the other one.
        dynamic: what is bound at the exchange of this broker says which messages of the other broker's are forwarded.
        sync: messages that are acknowledged together, as asked for.
        credit: messages in flight at most, as asked for; 0 or 2**32 - 1 for the usual number.
    """

    src: str
    dest: str
    key: str
    tag: str
    excludes: str
    src_is_queue: bool
    src_is_local: bool
    dynamic: bool
    sync: int
    credit: int


class PeerBridge(ObservedDefinition, ObservedState, Protocol):
    """A route on a link of kind ``link``, whether or not it is up. Compared by identity."""

    @property
    def link(self) -> PeerLink:
        """That it belongs to."""

    @property
    def bridge(self) -> BridgeProperties:
        """What was asked for."""


@attrs.frozen
class RouteEnds:
    """Where the messages of a route come from and go to.

    Attributes:
        link: name of the link that it is, or is on.
        outgoing: they leave this broker.
        source, target: names of the nodes.
        key: binding key of an exchange as source, or subjects of a queue; empty for all.
        dynamic: what is bound at this broker says which are forwarded.
    """

    link: str
    outgoing: bool
    source: str
    target: str
    key: str
    dynamic: bool = False


@attrs.frozen
class RouteMeasure:
    """How far a route is behind.

    Attributes:
        waiting: messages at its source; None if that is not known.
        behind: seconds that the oldest of them has waited, as far as was measured; 0 if none waits.
    """

    waiting: int | None = None
    behind: float = 0.0


class PeerRoute(ObservedDefinition, ObservedState, Protocol):
    """An incoming or outgoing link, or a bridge, whether or not it is up. Compared by identity."""

    @property
    def ends(self) -> RouteEnds:
        """Where its messages come from and go to."""

    @property
    def place(self) -> tuple[str, int, bool]:
        """Host and port of the other broker, and whether with TLS."""

    @property
    def peer_id(self) -> str:
        """Id of the other broker in traces; empty while it is not known."""

    @property
    def is_up(self) -> bool:
        """Messages pass."""

    @property
    def losses(self) -> int:
        """Times that it was up and then was not."""

    @property
    def transfers(self) -> int:
        """Messages transferred, repeated ones included, over all of its connections."""

    @property
    def credit(self) -> int:
        """Messages that may be transferred before the receiver grants more; 0 while it is not up."""

    def measure_rate(self) -> float:
        """Messages transferred a second since the last call; 0 at the first one."""

    @property
    def count_unforwarded(self) -> int:
        """Messages that it has not forwarded, since they would go in a circle."""

    @property
    def count_in_doubt(self) -> int:
        """Messages that it has sent again, or put back, though the other broker may have had them."""

    def measure(self) -> RouteMeasure:
        """How far it is behind; of a source at the other broker, as that has answered to the last call."""
