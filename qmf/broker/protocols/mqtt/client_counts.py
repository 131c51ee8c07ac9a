"""How many clients of MQTT there are, and what went over their connections."""

from __future__ import annotations

from typing import Protocol

import attrs


@attrs.frozen
class MqttTotals:
    """What went over connections of clients that were logged in.

    Attributes:
        connections: how many there were.
        packets_in, packets_out: that the clients sent, and were sent.
        octets_in, octets_out: the same in bytes.
        publications_in, publications_out: those of the packets that are PUBLISH; out with those sent again.
    """

    connections: int = 0
    packets_in: int = 0
    packets_out: int = 0
    octets_in: int = 0
    octets_out: int = 0
    publications_in: int = 0
    publications_out: int = 0


class CountedClient(Protocol):
    """The connection of a client, as it is counted."""

    def totals(self) -> MqttTotals:
        """What went over it so far."""


class ClientCounts:
    """Counts the clients of a broker.

    Attributes:
        maximum: of clients at the same time.
    """

    def __init__(self) -> None:
        self.maximum = 0
        self._clients: set[CountedClient] = set()
        self._ended = MqttTotals()

    @property
    def connected(self) -> int:
        """Clients that are connected."""
        return len(self._clients)

    def add(self, client: CountedClient) -> None:
        """A client has logged in."""
        self._clients.add(client)
        self.maximum = max(self.maximum, len(self._clients))

    def remove(self, client: CountedClient) -> None:
        """A client is gone; nothing happens if it has not logged in."""
        if client in self._clients:
            self._clients.discard(client)
            self._ended = _sum([self._ended, client.totals()])

    def totals(self) -> MqttTotals:
        """What went over all connections so far."""
        return _sum([self._ended, *(client.totals() for client in self._clients)])


def _sum(found: list[MqttTotals]) -> MqttTotals:
    return MqttTotals(*map(sum, zip(*map(attrs.astuple, found), strict=True)))
