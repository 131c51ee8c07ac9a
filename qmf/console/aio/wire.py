"""The client's place on the bus: its reply address, its subscriptions, and messages in and out.

Everything is bound before anything is sent, so that no answer comes before there is somebody to take it. A broken
message is counted, logged once per kind, and skipped. Knows nothing of agents, objects or requests.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import uuid
from collections.abc import Callable, Iterable

import attrs

from qmf.bus.base import Binding, Bus, ExchangeKind, OutcomeCallback, ReceivedMessage, Subscription
from qmf.codec import Message, Section, encode_message
from qmf.console.aio.binding_keys import key_matches
from qmf.errors import DecodeError, DisconnectedError, LinkError, ProtocolError
from qmf.protocol import (
    AMQ_DIRECT,
    BROKER,
    LOCATE_KEY,
    V1_EXCHANGE,
    Content,
    ContentError,
    Envelope,
    Frame,
    LocateRequest,
    ObjectDecoder,
    RequestEncoder,
    V1Message,
    console_key,
    decode,
    direct_exchange,
    encode_frames,
    topic_exchange,
)

log = logging.getLogger("qmf.console")

#: Correlation ids of locate requests; the words are libqmf2's. The first goes where only the connected broker listens.
LOCATE_BROKER = "broker-locate"
LOCATE_ALL = "agent-locate"

#: How many kinds of faults are told in the log; a peer that invents new ones must not fill it.
MAX_FAULT_KINDS = 50

OnEnvelope = Callable[[Envelope, ReceivedMessage], None]
OnV1 = Callable[[V1Message], None]
OnBroken = Callable[[str, ProtocolError], None]


@attrs.frozen
class Target:
    """Where a message goes: an exchange and a routing key."""

    exchange: str
    key: str


class Wire:
    """Sends and receives QMF messages on one bus."""

    def __init__(self, bus: Bus, domain: str, on_envelope: OnEnvelope, on_v1: OnV1, on_broken: OnBroken) -> None:
        self.bus = bus
        self.topic = topic_exchange(domain)
        self.direct = direct_exchange(domain)
        self.key = console_key(str(uuid.uuid4()))
        self.broken = 0
        self.on_unbound: Callable[[str], None] = lambda _: None
        """Called with each binding key that is given up."""
        self._own = False
        self._reader = ObjectDecoder()
        self._encoder = RequestEncoder()
        self._no_v1: LinkError | None = None
        self._on_envelope = on_envelope
        self._on_v1 = on_v1
        self._on_broken = on_broken
        self._subscriptions: dict[str, Subscription] = {}
        self._seen_faults: set[str] = set()
        self._binding = asyncio.Lock()

    async def connect(self, timeout: float) -> None:
        """Open the bus, unless somebody else has."""
        if not self.bus.connected:
            self._own = True
            await self.bus.open(timeout)

    async def open(self, keys: Iterable[str]) -> None:
        """Bind: the reply keys first, then the topic keys given."""
        replies = Binding(self.topic, self.key)
        self._subscriptions["reply"] = await self.bus.subscribe(replies, self._deliver)
        await self.open_v1()
        for key in list(keys):
            await self.bind(key)

    async def open_v1(self) -> None:
        """Bind the reply key of QMFv1, if that is not so: brokers other than qpidd need not have this exchange."""
        if "reply v1" in self._subscriptions:
            return
        replies = Binding(AMQ_DIRECT, self.key, ExchangeKind.DIRECT)
        try:
            self._subscriptions["reply v1"] = await self.bus.subscribe(replies, self._deliver)
        except LinkError as error:
            log.info("no QMFv1 here: %s", error)
            self._no_v1 = error
        else:
            self._no_v1 = None

    async def bind(self, key: str) -> bool:
        """Receive what agents publish under a binding key of the topic exchange; False when that is so already."""
        async with self._binding:
            return await self._bind(key)

    async def _bind(self, key: str) -> bool:
        if key in self._subscriptions:
            return False

        def deliver(received: ReceivedMessage) -> None:
            self._deliver(received, self._before(key))

        self._subscriptions[key] = await self.bus.subscribe(Binding(self.topic, key), deliver)
        return True

    def _before(self, key: str) -> list[str]:
        """The binding keys made before one.

        Each binding is a link with a queue of its own, so a message that two keys match comes twice. The binding made
        first takes it.
        """
        before = itertools.takewhile(lambda item: item != key, self._subscriptions)
        return [item for item in before if item.startswith("agent.")]

    async def unbind(self, key: str) -> bool:
        """Undo `bind`; False when the key was not bound."""
        subscription = self._subscriptions.pop(key, None)
        if subscription is None:
            return False
        self.on_unbound(key)
        await subscription.close()
        return True

    @property
    def bound(self) -> list[str]:
        """The binding keys in place."""
        return [key for key in self._subscriptions if key.startswith("agent.")]

    async def close(self) -> None:
        """Give up what was subscribed, and close the bus unless somebody else had opened it."""
        subscriptions = list(self._subscriptions.values())
        self._subscriptions.clear()
        if self._own:
            await self.bus.close()
        else:
            for subscription in subscriptions:
                await subscription.close()

    async def send(self, content: Content, target: Target, correlation_id: str | None, *, confirm: bool = True) -> None:
        """Send a QMFv2 message.

        Raises:
            NetworkError: refused by the broker, or no connection.
            ValueError: a value that can't be encoded.
        """
        await self.bus.send(self._encoded(content, target, correlation_id), confirm=confirm)

    def post(self, content: Content, target: Target, correlation_id: str | None, told: OutcomeCallback) -> bool:
        """Send a QMFv2 message without waiting, if that is possible; see `Bus.try_send`.

        Raises:
            DisconnectedError: no connection.
            ValueError: a value that can't be encoded.
        """
        return self.bus.try_send(self._encoded(content, target, correlation_id), told)

    def _encoded(self, content: Content, target: Target, correlation_id: str | None) -> bytes:
        return self._encoder.encode(
            Envelope(
                content=content,
                to=target.exchange,
                subject=target.key,
                reply_to=f"{self.topic}/{self.key}",
                correlation_id=correlation_id,
            )
        )

    async def send_v1(self, frame: Frame, target: Target) -> None:
        """Send a QMFv1 request; the answer comes on `amq.direct` (QMF2.md 8.3).

        Raises:
            NetworkError: refused by the broker, no connection, or no such exchange at this broker.
        """
        if self._no_v1 is not None:
            raise LinkError(self._no_v1.address, self._no_v1.condition, self._no_v1.description)
        message = Message(
            to=target.exchange,
            subject=target.key,
            reply_to=f"{AMQ_DIRECT}/{self.key}",
            content_type="x-application/qmf",
            body=encode_frames([frame]),
            section=Section.DATA,
        )
        await self.bus.send(encode_message(message), confirm=True)

    async def locate(self) -> None:
        """Ask all agents to announce themselves, and the connected broker's in particular."""
        try:
            await self.send(LocateRequest(), Target(self.direct, BROKER), LOCATE_BROKER, confirm=False)
            await self.send(LocateRequest(), Target(self.topic, LOCATE_KEY), LOCATE_ALL, confirm=False)
        except DisconnectedError as error:
            log.info("cannot locate agents: %s", error)

    @property
    def v1_broker(self) -> Target:
        """Where qpidd takes QMFv1 requests."""
        return Target(V1_EXCHANGE, BROKER)

    def _deliver(self, received: ReceivedMessage, earlier: Iterable[str] = ()) -> None:
        try:
            message = decode(received.data, self._reader)
        except (DecodeError, ProtocolError) as error:
            received.settle()
            self._skip(error)
            return
        if isinstance(message, V1Message):
            received.settle()
            self._on_v1(message)
        elif message.subject is not None and any(key_matches(key, message.subject) for key in earlier):
            received.settle()
        else:
            self._on_envelope(message, received)

    def _skip(self, error: DecodeError | ProtocolError) -> None:
        self.broken += 1
        if isinstance(error, ContentError) and error.correlation_id:
            self._on_broken(error.correlation_id, error)  # whoever asked needs not wait any longer
        kind = f"{type(error).__name__}: {str(error)[:40]}"
        if kind not in self._seen_faults and len(self._seen_faults) < MAX_FAULT_KINDS:
            self._seen_faults.add(kind)
            log.warning("skipped a broken message: %s (told once per kind)", error)
