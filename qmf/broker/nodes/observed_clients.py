"""Clients of a broker, their links and sessions, as observers and nodes see them."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Protocol

import attrs

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.queues import Queue
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
