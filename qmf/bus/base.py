"""The interface of a message bus: connect, subscribe, send, close.

Drivers implement `Bus`; `AmqpBus` is the real one. A bus moves encoded AMQP 1.0 messages as bytes and does not decode
their bodies. All methods belong to the thread of the event loop on which the bus was opened; callbacks are called on
that thread and must not block.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable, Sequence

import attrs

from qmf.errors import NetworkError


class ExchangeKind(enum.Enum):
    """How a binding key matches routing keys."""

    TOPIC = "topic"  #: words separated by dots, ``*`` matches one word, ``#`` any number
    DIRECT = "direct"  #: equal


@attrs.frozen
class Binding:
    """Which messages a subscription receives.

    Attributes:
        exchange: name of the exchange, e.g. ``qmf.default.topic``.
        key: binding key, e.g. ``agent.ind.#``; matched with the messages' `subject`.
        kind: how the key matches.
    """

    exchange: str
    key: str
    kind: ExchangeKind = ExchangeKind.TOPIC


class ReceivedMessage:
    """A message that the bus delivered.

    Attributes:
        data: the encoded AMQP 1.0 message, all sections.
    """

    __slots__ = ("_on_settled", "data")

    def __init__(self, data: bytes, on_settled: Callable[[], None] | None = None) -> None:
        """Make a message that is not settled.

        Args:
            on_settled: called by the first `settle`.
        """
        self.data = data
        self._on_settled = on_settled

    def settle(self) -> None:
        """Accept the message and free its place in the subscription's window, so that the broker may send another.

        A receiver that keeps messages without settling them gets no more after `prefetch` of them: that is how a slow
        receiver is kept from exhausting memory. A second call does nothing.
        """
        on_settled, self._on_settled = self._on_settled, None
        if on_settled is not None:
            on_settled()


#: Called with each message of a subscription.
MessageCallback = Callable[[ReceivedMessage], None]
#: The same for receivers that are done with messages when they return: the encoded ones that came together.
DataCallback = Callable[[list[bytes]], None]


@attrs.frozen
class Connected:
    """The bus is connected, for the first time or again; all subscriptions are in place.

    Attributes:
        again: True after a reconnect.
        broker: container id of the broker, or empty.
    """

    again: bool
    broker: str = ""


@attrs.frozen
class Disconnected:
    """The connection ended.

    Attributes:
        reason: why, in one line.
        retry: seconds until the next attempt to connect, or None when there will be none.
    """

    reason: str
    retry: float | None


@attrs.frozen
class LinkLost:
    """The broker detached one link, or refused a message that was sent without `confirm`.

    Attributes:
        address: node of the link; empty for the link to the anonymous relay, which carries messages for all nodes.
        condition: AMQP error condition, e.g. ``amqp:not-found``.
        description: the broker's text.
        reopened: True when the link is attached again, False when the broker refused that, too, or has detached it too
            often. A subscription is tried again later, a sending link with the next message.
    """

    address: str
    condition: str
    description: str
    reopened: bool


BusEvent = Connected | Disconnected | LinkLost
#: Called with each event of a bus.
BusWatcher = Callable[[BusEvent], None]
#: Called with the outcome of one message: None when the broker accepted it, else why it did not.
OutcomeCallback = Callable[[NetworkError | None], None]


class Subscription(abc.ABC):
    """A binding that stays in place until it is closed, over reconnects too.

    Attributes:
        binding: which messages it receives.
    """

    binding: Binding

    @abc.abstractmethod
    async def close(self) -> None:
        """Stop receiving. Messages on their way are dropped. A second call does nothing."""


class Bus(abc.ABC):
    """A connection to a message bus. It is opened once and closed once; between, drivers may reconnect."""

    @property
    @abc.abstractmethod
    def url(self) -> str:
        """Where the bus is, without password."""

    @property
    @abc.abstractmethod
    def connected(self) -> bool:
        """True while messages can be sent."""

    @property
    def user(self) -> str | None:
        """The user that messages may name as their sender; None where it is not known. Brokers refuse another one."""
        return None

    @abc.abstractmethod
    async def open(self, timeout: float = 10.0) -> None:
        """Connect. When this fails or is cancelled, the bus can be opened again.

        Args:
            timeout: seconds for everything together, name look-up and handshakes included.

        Raises:
            ConnectError: nobody listens there, the broker refused, or did not answer in time; names the URL and the
                reason.
            AuthenticationError: the broker refused the user or the password.
            BusStateError: the bus is open or closed already.
        """

    @abc.abstractmethod
    async def close(self) -> None:
        """Send what is waiting, close the connection and stop. A second call does nothing.

        Never raises because of a lost connection. When cancelled, the connection is aborted, and messages that wait
        for credit are lost.
        """

    @abc.abstractmethod
    async def subscribe(self, binding: Binding, on_message: MessageCallback, *, prefetch: int = 200) -> Subscription:
        """Receive messages until the subscription is closed. When cancelled, there is no subscription.

        Args:
            binding: which messages to receive.
            on_message: called with each message, in order; each must be settled in the end, see
                `ReceivedMessage.settle`. A message whose callback raises is settled, and the error logged.
            prefetch: messages that may be unsettled at one time, at least 1.

        Returns:
            once the broker has confirmed the binding: messages sent from now on arrive.

        Raises:
            LinkError: the broker refused; names the reason.
            DisconnectedError: there is no connection.
        """

    async def subscribe_all(
        self, bindings: Sequence[Binding], on_message: MessageCallback, *, prefetch: int = 200
    ) -> Sequence[Subscription]:
        """As `subscribe`, for one receiver of several bindings. If the broker refuses one of them, there is none.

        Args:
            bindings: which messages to receive; at least one.
            on_message: as of `subscribe`.
            prefetch: messages of each subscription that may be unsettled at one time.

        Returns:
            the subscriptions, to be closed together: where the broker can bind them to one queue, one stands for all.

        Raises:
            LinkError, DisconnectedError: as `subscribe`.
        """
        subscriptions: list[Subscription] = []
        try:
            for binding in bindings:
                subscriptions.append(await self.subscribe(binding, on_message, prefetch=prefetch))
        except BaseException:
            for subscription in reversed(subscriptions):
                await subscription.close()
            raise
        return subscriptions

    async def subscribe_data(self, binding: Binding, on_data: DataCallback, *, prefetch: int = 200) -> Subscription:
        """As `subscribe`, for a receiver that keeps no message: all are settled when `on_data` returns.

        Args:
            binding, prefetch: as of `subscribe`.
            on_data: called with the encoded messages that came together, in order. An error that it raises is logged.

        Returns:
            as `subscribe`.

        Raises:
            LinkError, DisconnectedError: as `subscribe`.
        """

        def on_message(received: ReceivedMessage) -> None:
            on_data([received.data])
            received.settle()

        return await self.subscribe(binding, on_message, prefetch=prefetch)

    @abc.abstractmethod
    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        """Send one encoded message to the node in its `to`, with the routing key in its `subject` (QMF2.md 1.1).

        Waits while the broker gives no credit; messages leave in the order of the calls. When cancelled while it waits
        for credit, the message is not sent; later, only the confirmation is lost.

        Args:
            data: the encoded AMQP 1.0 message.
            confirm: wait until the broker has accepted the message. Without it a refusal is reported to watchers as
                `LinkLost`, or logged.

        Raises:
            DisconnectedError: there is no connection, or it was lost before the message was confirmed.
            LinkError: with `confirm`, the broker refused the message.
        """

    def try_send(self, data: bytes, on_outcome: OutcomeCallback) -> bool:  # noqa: ARG002
        """Send one encoded message if that is possible without waiting: as `send` with `confirm`, without a coroutine.

        Messages that are sent in one turn of the loop may leave together at its end.

        Args:
            data: the encoded AMQP 1.0 message.
            on_outcome: called once, after this method returned: with None when the broker has accepted the message,
                with the error that `send` would have raised otherwise. Must not raise.

        Returns:
            True when the message was sent, or will be without another call. False when it was not, and `on_outcome`
            will not be called: other messages wait, or there is no credit; use `send` then.

        Raises:
            DisconnectedError: there is no connection.
        """
        return False

    @abc.abstractmethod
    def watch(self, watcher: BusWatcher) -> Callable[[], None]:
        """Call `watcher` with each `BusEvent` from now on. An error that it raises is logged.

        Returns:
            a function that stops these calls; a second call of it does nothing.
        """
