"""How many clients of one address are in their handshakes at a time; others wait until one of them is through.

Each step of a handshake waits for the steps of all others at the same machine. When thousands of clients that share one
come at once, so few are in their handshakes that each is through in time. Clients of other addresses don't wait for
them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextvars import ContextVar

from qmf.broker.nodes.counters import BrokerCounters

log = logging.getLogger("qmf.broker")

#: Handshakes of one address at a time.
HANDSHAKES = 200
#: Part of the time for a step of a handshake after which a client is not counted any more, however far it has come.
COUNTED = 0.5


class Handshake:
    """The place of a client among those of its address.

    Attributes:
        waited: it was not free at once.
    """

    __slots__ = ("_handshakes", "_host", "_timer", "waited")

    def __init__(self, handshakes: Handshakes, host: str, timer: asyncio.TimerHandle, *, waited: bool) -> None:
        self.waited = waited
        self._handshakes: Handshakes | None = handshakes
        self._host = host
        self._timer = timer

    def end(self) -> None:
        """The client is through, or gone: another one may begin. A second call does nothing."""
        handshakes, self._handshakes = self._handshakes, None
        if handshakes is not None:
            self._timer.cancel()
            handshakes.leave(self._host)


#: Of the connection in whose first callbacks this is read.
current_handshake: ContextVar[Handshake | None] = ContextVar("qmf_handshake", default=None)


class _Address:
    """The clients of an address: how many are in their handshakes, and those that wait."""

    __slots__ = ("count", "waiting")

    def __init__(self) -> None:
        self.count = 0
        self.waiting: deque[asyncio.Future[None]] = deque()


class Handshakes:
    """The handshakes of a broker, by the clients' addresses. Belongs to the loop's thread.

    Attributes:
        limit: handshakes of one address at a time; 0 for no limit.
    """

    def __init__(self, limit: int, counted: float, counters: BrokerCounters) -> None:
        """Make it, without clients.

        Args:
            limit: handshakes of one address at a time; 0 for no limit.
            counted: seconds for which one is counted at most: slow clients keep others of their address waiting for
                so long.
        """
        self._counters = counters
        self.limit = limit
        self._counted = counted
        self._addresses: dict[str, _Address] = {}

    def __len__(self) -> int:
        return sum(address.count for address in self._addresses.values())

    def on_silent(self, address: str, what: str, level: int) -> None:
        """A client has sent nothing: count that and log what it did, at a level of `logging`."""
        self._counters.failures += 1
        log.log(level, "dropped client at %s: %s", address, what)

    async def begin(self, host: str) -> Handshake:
        """Wait until a client, which has sent its first byte, may go on."""
        loop = asyncio.get_running_loop()
        address = self._addresses.setdefault(host, _Address())
        waited = 0 < self.limit <= address.count
        if waited:
            place: asyncio.Future[None] = loop.create_future()
            address.waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self.leave(host)
                raise
        else:
            address.count += 1
        handshake: Handshake
        timer = loop.call_later(self._counted, lambda: handshake.end())
        handshake = Handshake(self, host, timer, waited=waited)
        return handshake

    def leave(self, host: str) -> None:
        """The place of a client is free: for the one that waits longest, if any does."""
        address = self._addresses[host]
        while address.waiting:
            place = address.waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        address.count -= 1
        if not address.count:
            del self._addresses[host]
