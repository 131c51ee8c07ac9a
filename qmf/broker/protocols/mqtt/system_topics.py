"""The topics below ``$SYS``: what the broker says of itself, by the names that mosquitto gave them.

A new subscription gets the values as retained messages; later, each interval, those that have changed are published,
if a queue is bound to their topic. Nothing of them is kept. Their messages have QoS 0, and end after two intervals.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Protocol

from qmf._version import __version__
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import Message
from qmf.broker.operations.publisher import Publisher
from qmf.broker.protocols.mqtt.client_counts import ClientCounts, MqttTotals
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.topics import matches
from qmf.broker.protocols.mqtt.mapping import to_message

#: How all of them begin.
SYSTEM = "$SYS"
_BROKER = f"{SYSTEM}/broker/"
#: Names of the rates, and what they are the rates of.
_RATES = {
    "messages/received": "packets_in",
    "messages/sent": "packets_out",
    "publish/received": "publications_in",
    "publish/sent": "publications_out",
    "bytes/received": "octets_in",
    "bytes/sent": "octets_out",
    "connections": "connections",
}
#: Minutes of the averages of rates.
_MINUTES = (1, 5, 15)


class SystemSource(Protocol):
    """The sessions of a broker, as far as the topics are about them."""

    counts: ClientCounts
    publisher: Publisher
    #: Sessions that have ended with their time.
    expired: int

    def __len__(self) -> int:
        """Number of sessions."""

    @property
    def exchange(self) -> Exchange:
        """Where publications go."""

    @property
    def retained_count(self) -> int:
        """Number of retained messages."""

    def subscription_counts(self) -> tuple[int, int]:
        """Subscriptions of all sessions, and those of them that are shared."""


class SystemTopics:
    """The values of a broker, and their publication."""

    def __init__(self, source: SystemSource, interval: float) -> None:
        """Publish nothing yet.

        Args:
            source: what the values are about.
            interval: seconds from one publication to the next; 0 for no values at all.
        """
        self._source = source
        self._interval = interval
        self._clock = source.publisher.registry.clock
        self._began = self._clock()
        self._timer: asyncio.TimerHandle | None = None
        self._last = MqttTotals()
        #: Averages of the rates, for each minute, by their names.
        self._loads = {name: [0.0] * len(_MINUTES) for name in _RATES}
        self._published: dict[str, str] = {}

    def start(self) -> None:
        """Publish from now on."""
        if self._interval:
            self._timer = asyncio.get_running_loop().call_later(self._interval, self._on_interval)

    def stop(self) -> None:
        """Publish no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def matching(self, pattern: str) -> Sequence[Message]:
        """The values of the topics that a filter matches, without ``$share``, as messages."""
        if not self._interval or not pattern.startswith(SYSTEM):
            return ()
        return [self._message(topic, value) for topic, value in self.values().items() if matches(pattern, topic)]

    def values(self) -> dict[str, str]:
        """All values, by their topics."""
        source, counts = self._source, self._source.counts
        totals = counts.totals()
        subscriptions, shared = source.subscription_counts()
        found: dict[str, object] = {
            "version": f"qmf-broker version {__version__}",
            "uptime": f"{self._clock() - self._began:.0f} seconds",
            "clients/total": len(source),
            "clients/connected": counts.connected,
            "clients/disconnected": len(source) - counts.connected,
            "clients/maximum": counts.maximum,
            "clients/expired": source.expired,
            "messages/received": totals.packets_in,
            "messages/sent": totals.packets_out,
            "publish/messages/received": totals.publications_in,
            "publish/messages/sent": totals.publications_out,
            "bytes/received": totals.octets_in,
            "bytes/sent": totals.octets_out,
            "subscriptions/count": subscriptions,
            "shared_subscriptions/count": shared,
            "retained messages/count": source.retained_count,
        }
        for name, averages in self._loads.items():
            for minutes, average in zip(_MINUTES, averages, strict=True):
                found[f"load/{name}/{minutes}min"] = f"{average:.2f}"
        return {_BROKER + name: str(value) for name, value in found.items()}

    def publish_changes(self) -> None:
        """An interval has passed: publish what has changed."""
        self._follow_rates()
        exchange = self._source.exchange
        for topic, value in self.values().items():
            if self._published.get(topic) == value:
                continue
            message = self._message(topic, value)
            if exchange.route(message):
                self._published[topic] = value
                self._source.publisher.publish(exchange, message)

    def _on_interval(self) -> None:
        self.start()
        self.publish_changes()

    def _follow_rates(self) -> None:
        """Averages that forget, as those of a machine's load: of messages, bytes and connections in a minute."""
        totals, last = self._source.counts.totals(), self._last
        self._last = totals
        for name, field in _RATES.items():
            rate = (getattr(totals, field) - getattr(last, field)) * 60 / self._interval
            self._loads[name] = [
                rate + math.exp(-self._interval / (60 * minutes)) * (average - rate)
                for minutes, average in zip(_MINUTES, self._loads[name], strict=True)
            ]

    def _message(self, topic: str, value: str) -> Message:
        return to_message(
            topic,
            value.encode(),
            0,
            retain=True,
            properties={PacketProperty.MESSAGE_EXPIRY: math.ceil(2 * self._interval)},
            exchange=self._source.exchange.name,
            now=self._clock(),
            origin=None,
        )
