"""How many clients may be connected at the same time."""

from __future__ import annotations

from collections import Counter

import attrs

from qmf.broker.handshakes import HANDSHAKES


@attrs.frozen
class ConnectionLimits:
    """Numbers of connections; 0 for no limit.

    Attributes:
        total: of all clients.
        per_address: of one host.
        per_user: of one user.
        handshakes: of one host that are in their handshakes; others wait until it is their turn.
    """

    total: int = 0
    per_address: int = 0
    per_user: int = 0
    handshakes: int = HANDSHAKES


class ConnectionCounts:
    """Counts open connections against limits."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._total = 0
        self._addresses: Counter[str] = Counter()
        self._users: Counter[str] = Counter()

    def add(self, address: str, user: str) -> str:
        """Count a connection, unless a limit forbids it.

        Args:
            address: host of the client.

        Returns:
            empty if it may stay and is counted; else the reason why not.
        """
        limits = self._limits
        if limits.total and self._total >= limits.total:
            return f"the limit of {limits.total} connections is reached"
        if limits.per_address and self._addresses[address] >= limits.per_address:
            return f"the limit of {limits.per_address} connections from {address} is reached"
        if limits.per_user and self._users[user] >= limits.per_user:
            return f"the limit of {limits.per_user} connections of user {user!r} is reached"
        self.restore(address, user)
        return ""

    def restore(self, address: str, user: str) -> None:
        """Count a connection whatever the limits are: it was counted before."""
        self._total += 1
        self._addresses[address] += 1
        self._users[user] += 1

    def remove(self, address: str, user: str) -> None:
        """A connection that was counted is gone."""
        self._total -= 1
        for counter, key in ((self._addresses, address), (self._users, user)):
            counter[key] -= 1
            if not counter[key]:
                del counter[key]
