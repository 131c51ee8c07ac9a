"""Receiving messages: the client's bindings on the topic exchange, and the decoding of everything that arrives.

Binding keys consist of words separated by dots; ``*`` matches one word, ``#`` any number. A message that is not valid
is counted, logged once per kind and skipped. This module knows nothing of agents, objects or requests.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
from collections.abc import Callable, Iterable

from qmf.bus.base import Binding, Bus, ReceivedMessage, Subscription
from qmf.errors import DecodeError, NetworkError, ProtocolError
from qmf.protocol import (
    Answer,
    ContentError,
    Envelope,
    ObjectDecoder,
    V1Message,
    decode,
    decode_answers,
    topic_exchange,
)

log = logging.getLogger("qmf.console")

#: How many kinds of invalid messages are logged, so that a peer that sends ever new ones does not fill the log.
MAX_FAULT_KINDS = 50

OnEnvelope = Callable[[Envelope, ReceivedMessage], None]
OnV1 = Callable[[V1Message], None]
OnReturned = Callable[[list[Answer]], None]
OnInvalid = Callable[[str, ProtocolError], None]
OnUnbound = Callable[[str], None]


class MessageReceiver:
    """Decodes messages and passes them on; binds and unbinds keys of the topic exchange."""

    def __init__(
        self,
        bus: Bus,
        domain: str,
        on_envelope: OnEnvelope,
        on_v1: OnV1,
        on_returned: OnReturned,
        on_invalid: OnInvalid,
        on_unbound: OnUnbound,
        is_pending: Callable[[str | None], bool],
    ) -> None:
        """Make a receiver; nothing is bound yet.

        Args:
            domain: QMF domain.
            on_envelope: called with each QMFv2 message; must call `ReceivedMessage.done`.
            on_v1: called with each QMFv1 message.
            on_returned: called in place of `on_envelope` with most answers of methods, those that came together.
            on_invalid: called with the correlation id of an answer that is not valid, and the error.
            on_unbound: called with each binding key that was removed.
            is_pending: says of the correlation id of an answer whether it is waited for; others are not decoded.
        """
        self.invalid_count = 0
        """Messages skipped because they were not valid."""
        self._bus = bus
        self._topic = topic_exchange(domain)
        self._decoder = ObjectDecoder()
        self._on_envelope = on_envelope
        self._on_v1 = on_v1
        self._on_returned = on_returned
        self._on_invalid = on_invalid
        self._on_unbound = on_unbound
        self._is_pending = is_pending
        self._subscriptions: dict[str, Subscription] = {}
        self._lock = asyncio.Lock()
        self._holders: dict[str, int] = {}
        self._held: set[str] = set()
        self._seen_faults: set[str] = set()

    # -- bindings

    @property
    def bound(self) -> list[str]:
        """The binding keys in place, in the order in which they were bound."""
        return list(self._subscriptions)

    async def bind(self, key: str) -> bool:
        """Receive what agents publish under a binding key; False when it was bound already.

        Raises:
            NetworkError: the broker refused, or there is no connection.
        """
        async with self._lock:
            if key in self._subscriptions:
                return False

            def deliver(received: ReceivedMessage) -> None:
                self.deliver(received, self._bound_before(key))

            self._subscriptions[key] = await self._bus.subscribe(Binding(self._topic, key), deliver)
            return True

    async def unbind(self, key: str) -> None:
        """Undo `bind`; a key that is not bound is ignored."""
        subscription = self._subscriptions.pop(key, None)
        if subscription is not None:
            self._on_unbound(key)
            await subscription.close()

    async def hold(self, keys: Iterable[str]) -> None:
        """Bind keys for one of several users: each key stays bound at least until each user calls `release`.

        Keys that are bound already by `bind` are left alone.

        Raises:
            NetworkError: the broker refused, or there is no connection.
        """
        for key in keys:
            self._holders[key] = self._holders.get(key, 0) + 1
            if await self.bind(key):
                self._held.add(key)

    async def release(self, keys: Iterable[str]) -> None:
        """Undo one `hold` of these keys; without a connection there is nothing to unbind."""
        for key in keys:
            left = self._holders.get(key, 0) - 1
            if left > 0:
                self._holders[key] = left
                continue
            self._holders.pop(key, None)
            if key in self._held:
                self._held.discard(key)
                try:
                    await self.unbind(key)
                except NetworkError as error:
                    log.debug("no unbinding, because the connection is lost: %s", error)

    async def close(self) -> None:
        """Remove all bindings."""
        subscriptions = list(self._subscriptions.values())
        self._subscriptions.clear()
        for subscription in subscriptions:
            await subscription.close()

    def _bound_before(self, key: str) -> Iterable[str]:
        """The keys that were bound before this one.

        Each binding is a link with a queue of its own, so a message that two keys match comes twice. It is accepted
        from the binding that was made first.
        """
        return itertools.takewhile(lambda item: item != key, self._subscriptions)

    # -- messages

    def deliver_answers(self, messages: list[bytes]) -> None:
        """Decode messages that came to the reply address, and pass them on in their order."""
        returned: list[Answer] = []
        for answer in decode_answers(messages, self._decoder):
            if not isinstance(answer, bytes):
                returned.append(answer)
                continue
            if returned:
                self._on_returned(returned)
                returned = []
            try:
                self.deliver(ReceivedMessage(answer))
            except Exception:
                log.exception("a message to the reply address was dropped")  # those behind it are no worse for it
        if returned:
            self._on_returned(returned)

    def deliver(self, received: ReceivedMessage, earlier: Iterable[str] = ()) -> None:
        """Decode a message and pass it on; one that a key in `earlier` matches was received from another link."""
        try:
            message = decode(received.data, self._decoder, self._is_pending)
        except (DecodeError, ProtocolError) as error:
            received.settle()
            self._skip(error)
            return
        if isinstance(message, V1Message):
            received.settle()
            self._on_v1(message)
        elif earlier and message.subject is not None and any(key_matches(key, message.subject) for key in earlier):
            received.settle()
        else:
            self._on_envelope(message, received)

    def _skip(self, error: DecodeError | ProtocolError) -> None:
        self.invalid_count += 1
        if isinstance(error, ContentError) and error.correlation_id:
            self._on_invalid(error.correlation_id, error)  # its request fails now, not when its time is up
        kind = f"{type(error).__name__}: {str(error)[:40]}"
        if kind not in self._seen_faults and len(self._seen_faults) < MAX_FAULT_KINDS:
            self._seen_faults.add(kind)
            log.warning("skipped an invalid message: %s (logged once per kind)", error)


@functools.lru_cache(maxsize=4096)
def key_matches(pattern: str, subject: str) -> bool:
    """True when a binding key matches a routing key."""
    return _match(pattern.split("."), subject.split("."))


def _match(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    first, rest = pattern[0], pattern[1:]
    if first == "#":
        return not rest or any(_match(rest, words[skipped:]) for skipped in range(len(words) + 1))
    return bool(words) and first in ("*", words[0]) and _match(rest, words[1:])


def class_keys(kind: str, package: str | None, name: str | None) -> list[str]:
    """Binding keys for data indications or events of a package or class.

    Args:
        kind: ``data`` or ``event``.
        package: its name, or None for all.
        name: class or event in that package, or None for all.

    Returns:
        one key for agents that escape dots in names, like qpidd and ours, and where it differs one for libqmf2, which
        doesn't (QMF2.md 2).
    """
    # Object classes are in lower case on the wire.
    return _keys(kind, package, name.lower() if name is not None and kind == "data" else name)


def any_package_key(name: str) -> str:
    """Binding key for data indications of a class in whatever package.

    Of agents that escape dots, that is: only these write a package as one word, and only these send data indications.
    """
    return f"agent.ind.data.*.{name.lower().replace('.', '_')}.#"


def heartbeat_keys(vendor: str | None, product: str | None = None) -> list[str]:
    """Binding keys for heartbeats of a vendor's agents, in both forms; all agents when `vendor` is None."""
    return _keys("heartbeat", vendor, product)


def _keys(kind: str, *names: str | None) -> list[str]:
    words = [name for name in names if name is not None]
    if names[0] is None:
        return [f"agent.ind.{kind}.#"]
    escaped = ".".join(word.replace(".", "_") for word in words)
    plain = ".".join(words)
    return list(dict.fromkeys(f"agent.ind.{kind}.{middle}.#" for middle in (escaped, plain)))
