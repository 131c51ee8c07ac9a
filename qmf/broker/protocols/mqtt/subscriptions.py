"""The subscriptions of one session: which of them a message is for, and what follows for its delivery."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from qmf.broker.protocols.mqtt.codec.fields import encode_variable
from qmf.broker.protocols.mqtt.codec.packets import SubscriptionRequest
from qmf.broker.protocols.mqtt.codec.topics import TopicFilter
from qmf.bus.topics import MQTT_TOPICS, TopicTable

#: Topics whose subscriptions are remembered.
_REMEMBERED = 1_000


@attrs.frozen
class MqttSubscription:
    """A subscription.

    Attributes:
        text: the filter as the client wrote it.
        group: name of the shared subscription; empty for one of the client's own.
        pattern: the filter without that.
        qos: the highest one of its messages.
        no_local, retain_as_published: see `SubscriptionRequest`.
        identifier: that the client gave it; 0 for none.
    """

    text: str
    group: str
    pattern: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    identifier: int = 0

    @classmethod
    def of(cls, request: SubscriptionRequest, identifier: int) -> MqttSubscription:
        """That which a client asks for; its filter was checked."""
        parsed = TopicFilter.parse(request.topic_filter)
        return cls(
            request.topic_filter,
            parsed.group,
            parsed.pattern,
            request.qos,
            request.no_local,
            request.retain_as_published,
            identifier,
        )


@attrs.frozen
class SubscriptionTerms:
    """How messages of a topic are delivered.

    Attributes:
        qos: the highest one; -1 if no subscription is for them.
        retain: they keep their flag.
        identifiers: of the subscriptions, as encoded properties.
    """

    qos: int
    retain: bool
    identifiers: bytes


NO_TERMS = SubscriptionTerms(-1, False, b"")


def terms_of(subscriptions: list[MqttSubscription]) -> SubscriptionTerms:
    """How messages are delivered that are for all of these subscriptions."""
    if not subscriptions:
        return NO_TERMS
    identifiers = [b"\x0b" + encode_variable(item.identifier) for item in subscriptions if item.identifier]
    return SubscriptionTerms(
        max(item.qos for item in subscriptions),
        any(item.retain_as_published for item in subscriptions),
        b"".join(identifiers),
    )


class SessionSubscriptions:
    """The subscriptions of a session, by their filters."""

    def __init__(self) -> None:
        self._all: dict[str, MqttSubscription] = {}
        self._table: TopicTable[MqttSubscription] = TopicTable(MQTT_TOPICS)
        self._terms: dict[str, SubscriptionTerms] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[MqttSubscription]:
        return iter(list(self._all.values()))

    def get(self, text: str) -> MqttSubscription | None:
        """The subscription with a filter."""
        return self._all.get(text)

    def add(self, subscription: MqttSubscription) -> None:
        """Add one, in place of the one with its filter."""
        self.remove(subscription.text)
        self._all[subscription.text] = subscription
        if not subscription.group:
            self._table.add(subscription.pattern, subscription)

    def remove(self, text: str) -> MqttSubscription | None:
        """Remove the one with a filter; gives it."""
        self._terms.clear()
        found = self._all.pop(text, None)
        if found is not None and not found.group:
            self._table.remove(found.pattern, found)
        return found

    @property
    def counts(self) -> tuple[int, int]:
        """How many are the session's own, and how many are shared."""
        shared = sum(1 for item in self._all.values() if item.group)
        return len(self._all) - shared, shared

    @property
    def own(self) -> list[MqttSubscription]:
        """Those that are not shared."""
        return [item for item in self._all.values() if not item.group]

    def terms(self, topic: str) -> SubscriptionTerms:
        """How messages of a topic are delivered that come through the session's own queue."""
        found = self._terms.get(topic)
        if found is None:
            found = terms_of(list(self._table.match(topic)))
            if len(self._terms) >= _REMEMBERED:
                self._terms.clear()
            self._terms[topic] = found
        return found

    def keeps_own(self, topic: str) -> bool:
        """True if a message that the client itself has published is for one of its subscriptions."""
        return any(not item.no_local for item in self._table.match(topic))
