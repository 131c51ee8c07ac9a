"""A bus that records what is sent and fails on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from support.waiting import until

from qmf.bus.base import (
    Binding,
    Bus,
    BusEvent,
    BusWatcher,
    Connected,
    Disconnected,
    ExchangeKind,
    MessageCallback,
    ReceivedMessage,
    Subscription,
)
from qmf.errors import DisconnectedError, NetworkError
from qmf.protocol import Content, Envelope, V1Message, decode, encode


class FakeSubscription(Subscription):
    def __init__(self, bus: FakeBus, binding: Binding, on_message: MessageCallback) -> None:
        self.binding = binding
        self.on_message = on_message
        self._bus = bus

    async def close(self) -> None:
        if self in self._bus.subscriptions:
            self._bus.subscriptions.remove(self)


class FakeBus(Bus):
    """A bus with the agent at one end and the test at the other.

    Attributes:
        sent: messages that "the broker" took, as bytes.
        failures: raised by `send`, one for each call, None for a call that succeeds; empty: all succeed.
    """

    def __init__(self, *, is_open: bool = True) -> None:
        self.sent: list[bytes] = []
        self.confirmed: list[bool] = []
        self.failures: list[NetworkError | None] = []
        self.subscriptions: list[FakeSubscription] = []
        self.undone = 0
        self.opened = self.closed = 0
        self._connected = is_open
        self._watchers: list[BusWatcher] = []
        self._news = asyncio.Event()

    @property
    def url(self) -> str:
        return "fake://"

    @property
    def connected(self) -> bool:
        return self._connected

    async def open(self, timeout: float = 10.0) -> None:
        self.opened += 1
        self._connected = True

    async def close(self) -> None:
        self.closed += 1
        self._connected = False

    async def subscribe(self, binding: Binding, on_message: MessageCallback, *, prefetch: int = 200) -> Subscription:
        subscription = FakeSubscription(self, binding, on_message)
        self.subscriptions.append(subscription)
        return subscription

    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        if not self._connected:
            raise DisconnectedError(self.url, "test")
        if self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure
        self.sent.append(data)
        self.confirmed.append(confirm)
        self._news.set()

    def watch(self, watcher: BusWatcher) -> Callable[[], None]:
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def disconnect(self) -> None:
        self._connected = False
        self._tell(Disconnected("test", 1.0))

    def reconnect(self) -> None:
        self._connected = True
        self._tell(Connected(again=True))

    def _tell(self, event: BusEvent) -> None:
        for watcher in list(self._watchers):
            watcher(event)

    def deliver(self, data: bytes, key: str) -> None:
        """Give a message to the subscription with this binding key."""
        subscription = next(item for item in self.subscriptions if item.binding.key == key)
        self.undone += 1

        def done() -> None:
            self.undone -= 1

        subscription.on_message(ReceivedMessage(data, done))

    def deliver_request(self, content: Content, reply_to: str, correlation_id: str) -> None:
        """Give a request to the agent, and wait for nothing."""
        message = Envelope(content=content, reply_to=reply_to, correlation_id=correlation_id)
        self.deliver(encode(message), self.direct_key())

    def direct_key(self) -> str:
        """The key under which the agent listens on the direct exchange."""
        return next(item.binding.key for item in self.subscriptions if item.binding.kind is ExchangeKind.DIRECT)

    async def request(
        self,
        content: Content,
        *,
        key: str | None = None,
        reply_to: str | None = "qmf.default.topic/console-1",
        correlation_id: str | None = "7",
        user_id: str | None = None,
    ) -> list[Envelope]:
        """Send a request to the agent; its answers, all parts of them."""
        message = Envelope(content=content, reply_to=reply_to, correlation_id=correlation_id, user_id=user_id)
        return [item for item in await self.request_raw(encode(message), key=key) if isinstance(item, Envelope)]

    async def request_raw(self, data: bytes, *, key: str | None = None) -> list[Envelope | V1Message]:
        """As `request`, from bytes."""
        before = len(self.sent)
        self.deliver(data, key or self.direct_key())
        await until(lambda: self.undone == 0)
        return [decode(item) for item in self.sent[before:]]

    def take(self) -> list[Envelope]:
        """What was sent since the last call."""
        sent, self.sent = self.sent, []
        self.confirmed = []
        return [item for item in map(decode, sent) if isinstance(item, Envelope)]
