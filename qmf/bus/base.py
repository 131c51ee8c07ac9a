"""What the rest of the project knows of a message bus: connect, subscribe, send, close.

Drivers implement `Bus`; `qmf.bus.amqp.AmqpBus` is the real one. The bus moves encoded AMQP 1.0 messages as bytes and
does not look inside. All methods belong to the event loop's thread; callbacks are called there and must not block.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable

import attrs

from qmf.errors import NetworkError


class ExchangeKind(enum.Enum):
    """How a binding key matches routing keys."""

    TOPIC = "topic"  #: words separated by dots, ``*`` one word, ``#`` any number
    DIRECT = "direct"  #: equal


@attrs.frozen
class Binding:
    """What a subscription receives.

    Attributes:
        exchange: node name, e.g. ``qmf.default.topic``.
        key: binding key, e.g. ``agent.ind.#``.
        kind: how the key matches.
    """

    exchange: str
    key: str
    kind: ExchangeKind = ExchangeKind.TOPIC


class Received:
    """A message taken from the bus.

    Attributes:
        data: the encoded AMQP 1.0 message, all sections.
    """

    __slots__ = ("_done", "data")

    def __init__(self, data: bytes, done: Callable[[], None] | None = None) -> None:
        self.data = data
        self._done = done

    def done(self) -> None:
        """Say that the message needs no memory any more, so that the broker may send another.

        Whoever keeps messages without calling this stops the flow after `prefetch` of them: that is how a slow
        receiver is kept from exhausting memory. A second call does nothing.
        """
        done, self._done = self._done, None
        if done is not None:
            done()


Deliver = Callable[[Received], None]


@attrs.frozen
class Connected:
    """The bus is connected, for the first time or again; all subscriptions are in place.

    Attributes:
        again: True after a reconnect.
        broker: container id of the peer, or empty.
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
    """The broker closed one link; the bus has opened it again, or reports `reopened` False.

    Attributes:
        address: node of the link; empty for the anonymous sender.
        condition, description: the broker's words.
        reopened: False when the broker refused the new link, too.
    """

    address: str
    condition: str
    description: str
    reopened: bool


BusEvent = Connected | Disconnected | LinkLost
Watcher = Callable[[BusEvent], None]


#: Takes what became of a message: None, or why the broker has not got it.
Told = Callable[[NetworkError | None], None]


class Subscription(abc.ABC):
    """A binding that is in place until closed, over reconnects too."""

    binding: Binding

    @abc.abstractmethod
    async def close(self) -> None:
        """Stop receiving. Messages on their way are dropped. A second call does nothing."""


class Bus(abc.ABC):
    """A connection to a message bus."""

    @property
    @abc.abstractmethod
    def url(self) -> str:
        """Where the bus is, without password."""

    @property
    @abc.abstractmethod
    def connected(self) -> bool:
        """True while messages can be sent."""

    @abc.abstractmethod
    async def open(self, timeout: float = 10.0) -> None:
        """Connect.

        Args:
            timeout: seconds for the whole of it, name look-up and handshakes included.

        Raises:
            ConnectError: nobody there, refused, or not in time; names the URL and the reason.
            AuthenticationError: the broker refused who we are.
        """

    @abc.abstractmethod
    async def close(self) -> None:
        """Send what is written, close cleanly and stop. A second call does nothing. Never raises for a lost peer."""

    @abc.abstractmethod
    async def subscribe(self, binding: Binding, deliver: Deliver, *, prefetch: int = 200) -> Subscription:
        """Receive messages until the subscription is closed.

        Args:
            binding: what to receive.
            deliver: called with each message, in order, on the loop's thread; must call `Received.done` in the end.
            prefetch: messages that may be undone at one time.

        Returns:
            once the broker has confirmed the binding: messages sent from now on arrive.

        Raises:
            LinkError: the broker refused; says why.
            DisconnectedError: no connection.
        """

    @abc.abstractmethod
    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        """Send one encoded message; its `to` and `subject` say where (QMF2.md 1.1).

        Waits while the broker gives no credit.

        Args:
            data: the encoded AMQP 1.0 message.
            confirm: wait until the broker has taken responsibility. Without it a refusal is reported to watchers
                as `LinkLost`, or logged.

        Raises:
            DisconnectedError: no connection, or lost before the message was confirmed.
            LinkError: with `confirm`, the broker refused the message.
        """

    def post(self, data: bytes, told: Told) -> bool:  # noqa: ARG002
        """Send one encoded message without waiting, if it can go out at once: as `send` with `confirm`, but no
        coroutine has to be there for the broker's word.

        Args:
            data: the encoded AMQP 1.0 message.
            told: called once, later, on the loop's thread: with None when the broker has taken responsibility, with
                the error that `send` would have raised otherwise. Must not raise.

        Returns:
            False when nothing was sent and `told` will not be called: messages wait, or there is no credit; `send` it.

        Raises:
            DisconnectedError: no connection.
        """
        return False

    @abc.abstractmethod
    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with each `BusEvent`; the returned function stops it."""
