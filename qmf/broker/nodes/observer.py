"""Observers of a broker: notified when clients, links, queues and bindings come and go.

Messages are not reported: they are counted where they pass. Observers see clients and links by the protocols of this
module, so that exchanges and queues, which notify them, need not know the classes of connections and links.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from typing import Protocol

import attrs

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.alerts import Crossing
from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.counters import ExchangeCounters
from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.peer_routes import PeerRoute
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.topics import NodePolicy, Topic
from qmf.broker.refusal import Reason


@attrs.frozen
class Traffic:
    """What went over a connection since it was made.

    Attributes:
        frames_in, frames_out: frames or packets of the protocol that the client sent, and that it was sent.
        octets_in, octets_out: the same in bytes, without those of TLS.
    """

    frames_in: int = 0
    frames_out: int = 0
    octets_in: int = 0
    octets_out: int = 0


@attrs.define
class TransactionCounts:
    """Transactions that were begun on a link.

    Attributes:
        started, committed, rolled_back: since the link was attached. Those that have not ended are open.
    """

    started: int = 0
    committed: int = 0
    rolled_back: int = 0

    def add(self, other: TransactionCounts) -> None:
        """Add those of another link."""
        self.started += other.started
        self.committed += other.committed
        self.rolled_back += other.rolled_back


class BrokerClient(Hashable, Protocol):
    """Who changes something in the broker. Compared by identity."""

    @property
    def info(self) -> ClientInfo:
        """What is known of the client."""


class ClientSession(BrokerClient, Protocol):
    """A client on its connection, as its protocol presents it."""

    @property
    def ended(self) -> asyncio.Future[None]:
        """Done when the connection is gone."""

    def traffic(self) -> Traffic:
        """What went over the connection so far."""

    def close(self, reason: str, cause: Reason | None = None) -> None:
        """Close the connection, and tell the client why. `ended` is done when it has answered.

        Args:
            reason: for people.
            cause: for programs; None for the operator's decision.
        """

    def abort(self) -> None:
        """Close the connection at once."""

    def end_session(self, session: Hashable, reason: str) -> None:
        """End one of the sessions that its protocol has within a connection; `session` as of `ClientLink`."""

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        """A node was deleted at which it has links (`ClientSessions.link_attached`): these end."""

    def on_policy_changed(self) -> None:
        """Other rules apply: what it has no right to any more ends, but for the connection itself."""


class ClientLink(Hashable, Protocol):
    """What a client sends or receives on: a link of AMQP, a subscription of another protocol. Compared by identity."""

    @property
    def name(self) -> str:
        """Name that the client gave it."""

    @property
    def session(self) -> Hashable:
        """Identifies its session among those of the connection."""

    @property
    def source(self) -> str:
        """Address that the messages come from: the broker's node where the client receives, else the client's name."""

    @property
    def target(self) -> str:
        """Address that the messages go to: the broker's node where the client sends, else the client's name for it."""

    @property
    def queue(self) -> Queue | None:
        """The queue that the client receives from; None when the client sends on this link."""

    @property
    def browsing(self) -> bool:
        """The client receives, and its messages stay in the queue."""

    @property
    def exchange(self) -> Exchange | DefaultExchange | None:
        """The exchange that the client sends to; None for any other link."""

    @property
    def transactions(self) -> TransactionCounts | None:
        """Those that were begun on it; None for a link on which none can be begun."""

    @property
    def presettled(self) -> bool:
        """True when every message is settled by its sender, so that there are no outcomes."""

    @property
    def transfers(self) -> int:
        """Messages transferred so far, repeated ones included."""

    def count_unsettled(self) -> tuple[int, int]:
        """Number and bytes of the messages that the client has received and not settled."""


class LastingSession(Hashable, Protocol):
    """A session that may outlive its connection, as those of MQTT. Compared by identity."""

    @property
    def client_id(self) -> str:
        """What names its client."""

    @property
    def user(self) -> str:
        """Whose it is."""

    @property
    def protocol(self) -> str:
        """That of its last connection, as of `ClientInfo`; empty if it has had none in this run."""

    @property
    def durable(self) -> bool:
        """It is there again after a restart."""

    @property
    def expiry(self) -> int:
        """Seconds for which it is kept without a connection; the largest of 32 bits for ever."""

    @property
    def client(self) -> ClientSession | None:
        """Its client; None while that is not connected."""

    @property
    def queue(self) -> Queue | None:
        """That its messages wait in; None while there is none."""

    @property
    def will_topic(self) -> str:
        """Where its will is published when its client is lost; empty without one."""

    @property
    def subscription_count(self) -> int:
        """Number of its subscriptions."""

    @property
    def inflight(self) -> int:
        """Messages that were sent to the client, and are not acknowledged to the end."""

    @property
    def unreleased(self) -> int:
        """Messages from the client, whose identity is kept until it releases them."""

    def disconnect(self, reason: str) -> None:
        """Close the connection of the client, if there is one; the session stays for its expiry."""

    def discard(self, reason: str) -> None:
        """End the session; its client, if there is one, is disconnected before."""


class PeerDomain(Hashable, Protocol):
    """Another broker, to which this one has links. Compared by identity."""

    @property
    def name(self) -> str:
        """Name of the domain."""

    @property
    def durable(self) -> bool:
        """It is there again after a restart."""

    @property
    def url(self) -> str:
        """Where the broker is, without a password."""

    @property
    def mechanisms(self) -> tuple[str, ...] | None:
        """Names of SASL mechanisms that may be used; None for the strongest that is offered."""

    @property
    def username(self) -> str | None:
        """Who logs in, or None."""

    @property
    def properties(self) -> Mapping[str, object]:
        """As it was created, with its password."""


class PeerLink(Hashable, Protocol):
    """A link of this broker to another one, whether or not it is up. Compared by identity."""

    @property
    def name(self) -> str:
        """Name of the link."""

    @property
    def kind(self) -> str:
        """Of which type consoles create it: ``incoming``, ``outgoing`` or ``link``."""

    @property
    def durable(self) -> bool:
        """It is there again after a restart."""

    @property
    def fields(self) -> Mapping[str, object]:
        """From which it is made again."""

    @property
    def place(self) -> tuple[str, int, bool]:
        """Host and port of the other broker, and whether with TLS."""

    @property
    def state_name(self) -> str:
        """Its state, in qpidd's words."""

    @property
    def reason(self) -> str:
        """Why it is not up; empty if it is."""

    @property
    def since(self) -> float:
        """When it came into this state, in seconds since 1970."""

    @property
    def session(self) -> ClientSession | None:
        """The other broker on the link's connection; None while there is none."""


class BridgeProperties(Protocol):
    """What was asked for of a bridge; the names are those of qpidd, in Python's spelling."""

    @property
    def src(self) -> str:
        """Where its messages come from."""

    @property
    def dest(self) -> str:
        """Where they go."""

    @property
    def key(self) -> str:
        """Binding key of those that are forwarded."""

    @property
    def tag(self) -> str:
        """Id that is added to their traces; empty for that of the broker."""

    @property
    def excludes(self) -> str:
        """Ids of brokers; messages that have left one of them are not forwarded."""

    @property
    def src_is_queue(self) -> bool:
        """`src` is a queue."""

    @property
    def src_is_local(self) -> bool:
        """Messages go from this broker to the other one."""

    @property
    def dynamic(self) -> bool:
        """What is bound at this broker says which messages are forwarded."""

    @property
    def sync(self) -> int:
        """Messages that are acknowledged together, as asked for."""

    @property
    def credit(self) -> int:
        """Messages in flight at most, as asked for."""


class PeerBridge(Hashable, Protocol):
    """A route on a link of kind ``link``, whether or not it is up. Compared by identity."""

    @property
    def name(self) -> str:
        """Name of the bridge."""

    @property
    def kind(self) -> str:
        """Of which type consoles create it: ``bridge``."""

    @property
    def link(self) -> PeerLink:
        """That it belongs to."""

    @property
    def durable(self) -> bool:
        """It is there again after a restart."""

    @property
    def fields(self) -> Mapping[str, object]:
        """From which it is made again."""

    @property
    def bridge(self) -> BridgeProperties:
        """What was asked for."""

    @property
    def state_name(self) -> str:
        """Its state, in the words of links."""

    @property
    def reason(self) -> str:
        """Why it is not up, or what it lacks; empty if all is well."""

    @property
    def since(self) -> float:
        """When it came into this state, in seconds since 1970."""


class MessageRelay(Hashable, Protocol):
    """What forwards messages to ``name@domain``. Compared by identity."""

    @property
    def name(self) -> str:
        """The domain in addresses."""

    @property
    def durable(self) -> bool:
        """It is there again after a restart."""

    @property
    def fields(self) -> Mapping[str, object]:
        """From which it is made again."""

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

    @property
    def state_name(self) -> str:
        """Its state, in the words of links."""

    @property
    def reason(self) -> str:
        """Why nothing is forwarded; empty if all is well."""

    @property
    def since(self) -> float:
        """When it came into this state, in seconds since 1970."""


class NodeLink(Hashable, Protocol):
    """A link within the broker. Compared by identity."""

    @property
    def name(self) -> str:
        """Name of the link."""

    @property
    def durable(self) -> bool:
        """It is there again after a restart."""

    @property
    def fields(self) -> Mapping[str, object]:
        """From which it is made again; they change with the messages that it passes on."""

    @property
    def wanted(self) -> NodeLinkProperties:
        """What was asked for."""

    @property
    def state_name(self) -> str:
        """Its state."""

    @property
    def reason(self) -> str:
        """Why it waits or has failed; empty if all is well."""

    @property
    def since(self) -> float:
        """When it came into this state, in seconds since 1970."""

    @property
    def passed(self) -> int:
        """Messages that it has passed on."""

    @property
    def octets(self) -> int:
        """Bytes of those since the broker started."""

    @property
    def skipped(self) -> int:
        """Messages that it has left."""


class NodeLinkProperties(Protocol):
    """What was asked for of a link within the broker."""

    @property
    def source(self) -> str:
        """Name of the queue from which it takes messages."""

    @property
    def target(self) -> str:
        """Name of the queue or exchange to which it sends them."""

    @property
    def mode_name(self) -> str:
        """``move`` or ``copy``."""

    @property
    def selector(self) -> str:
        """Which messages; empty for all."""

    @property
    def max_count(self) -> int:
        """Messages after which it ends; 0 for no limit."""

    @property
    def max_size(self) -> int:
        """Bytes of the largest message that it takes; 0 for no limit."""

    @property
    def max_rate(self) -> int:
        """Messages in a second; 0 for no limit."""

    @property
    def user(self) -> str:
        """With whose rights it acts."""


class BrokerObserver:
    """Notified on the loop's thread, after something was created and before it is removed. This one does nothing.

    The methods must not block or raise. `client` is None for what the broker does for itself.
    """

    def on_connected(self, client: ClientSession) -> None:
        """A client has connected and logged in, or this broker has, at another one (`ClientInfo.domain`)."""

    def on_connection_refused(self, info: ClientInfo, reason: str) -> None:
        """A client could not log in, or there are too many connections."""

    def on_disconnected(self, client: ClientSession) -> None:
        """A client that had connected is gone; its links were reported before."""

    def on_session_begun(self, session: LastingSession) -> None:
        """A session has begun, or is there from an earlier run."""

    def on_session_connected(self, session: LastingSession) -> None:
        """The client of a session is connected."""

    def on_session_disconnected(self, session: LastingSession) -> None:
        """The client of a session is gone, and the session stays for now."""

    def on_session_ended(self, session: LastingSession) -> None:
        """A session is gone, and so is its queue; of its client, nothing more is reported."""

    def on_declared_again(self, node: Queue | Exchange, client: BrokerClient) -> None:
        """A client has asked to create a node that exists."""

    def on_connection_revoked(self, client: ClientSession, reason: str) -> None:
        """The connection of a client is closed, since its user, its token or its right to connect has ended."""

    def on_link_revoked(self, client: ClientSession, link: str, reason: str) -> None:
        """A link, by its name, is detached, since it lacks a right under the rules that apply now."""

    def on_called(self, info: ClientInfo, method: str, name: str, reason: str) -> None:
        """A client calls a method of management, or sets properties.

        Args:
            info: of the client.
            method: which.
            name: of the object.
            reason: why it may not; empty if it may.
        """

    def on_exchange_declared(self, exchange: Exchange, client: BrokerClient | None) -> None:
        """An exchange was created. Those that exist from the start are not reported."""

    def on_exchange_deleted(self, exchange: Exchange, client: BrokerClient | None) -> None:
        """An exchange is about to be deleted, with its bindings."""

    def on_queue_declared(self, queue: Queue, client: BrokerClient | None) -> None:
        """A queue was created. Those that exist from the start are not reported."""

    def on_queue_deleted(self, queue: Queue, client: BrokerClient | None) -> None:
        """A queue is about to be deleted, with its bindings."""

    def on_bound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:
        """A queue was bound to an exchange."""

    def on_unbound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:
        """A binding is about to be removed. Those of a queue or exchange that is deleted are not reported."""

    def on_origins_changed(self, exchange: Exchange) -> None:
        """Other brokers ask for other bindings of an exchange (`Binding.origins`), which exist already."""

    def on_topic_declared(self, topic: Topic) -> None:
        """A topic was created."""

    def on_topic_deleted(self, topic: Topic) -> None:
        """A topic is about to be deleted."""

    def on_policy_declared(self, policy: NodePolicy) -> None:
        """A policy was created."""

    def on_policy_deleted(self, policy: NodePolicy) -> None:
        """A policy is about to be deleted."""

    def on_domain_declared(self, domain: PeerDomain) -> None:
        """A domain was created."""

    def on_domain_deleted(self, domain: PeerDomain) -> None:
        """A domain is about to be deleted."""

    def on_link_declared(self, link: PeerLink) -> None:
        """A link to another broker was created."""

    def on_link_deleted(self, link: PeerLink) -> None:
        """A link to another broker is about to be deleted."""

    def on_bridge_declared(self, bridge: PeerBridge) -> None:
        """A bridge was created."""

    def on_bridge_deleted(self, bridge: PeerBridge) -> None:
        """A bridge is about to be deleted."""

    def on_relay_declared(self, relay: MessageRelay) -> None:
        """A relay was created."""

    def on_relay_deleted(self, relay: MessageRelay) -> None:
        """A relay is about to be deleted."""

    def on_dead_letter(self, domain: str, address: str, reason: str) -> None:
        """A message could not be forwarded, and is in the queue for dead letters.

        Args:
            domain: of the relay; empty for a message to a domain without one.
            address: to which it was sent.
            reason: for people.
        """

    def on_route_declared(self, route: PeerRoute) -> None:
        """A link that transfers messages, or a bridge, was created; reported after it was as what it is."""

    def on_route_deleted(self, route: PeerRoute) -> None:
        """Such a link or bridge is about to be deleted."""

    def on_queue_link_declared(self, link: NodeLink) -> None:
        """A link within the broker was created."""

    def on_queue_link_deleted(self, link: NodeLink) -> None:
        """A link within the broker is about to be deleted."""

    def on_queue_link_changed(self, link: NodeLink) -> None:
        """A link within the broker has another state, or another reason for it."""

    def on_queue_link_advanced(self, link: NodeLink) -> None:
        """A durable link within the broker passes messages on: its `fields` belong to the same unit of the store."""

    def on_redirected(self, source: Queue, target: Queue) -> None:
        """New messages of a queue go to another one."""

    def on_redirection_ended(self, source: Queue, target: Queue) -> None:
        """New messages of a queue go to itself again."""

    def on_threshold(self, queue: Queue, crossing: Crossing) -> None:
        """A queue has grown beyond a threshold, or has drained."""

    def on_attached(self, client: ClientSession, link: ClientLink) -> None:
        """A client has attached a link."""

    def on_detached(self, client: ClientSession, link: ClientLink) -> None:
        """A link of a client is about to be removed."""


class BrokerObservers(BrokerObserver):
    """Several observers, notified one after the other."""

    def __init__(self, *observers: BrokerObserver) -> None:
        for name in vars(BrokerObserver):
            if name.startswith("on_"):
                setattr(self, name, partial(_notify, [getattr(observer, name) for observer in observers]))


def _notify(methods: Iterable[Callable[..., None]], *args: object) -> None:
    for method in methods:
        method(*args)
