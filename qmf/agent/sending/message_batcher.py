"""Cutting long answers and publications into messages that every peer takes.

All parts but the last are marked `partial` where the receiver has to put them together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Generic, TypeVar

from qmf.agent.metrics import AgentMetrics
from qmf.errors import QmfError

T = TypeVar("T")

#: Objects in one message, as qpidd sends (QMF2.md 4.4.1).
MAX_OBJECTS = 100

#: Bytes in one message of several objects. qpidd drops bodies over 65536 bytes (QMF2.md 4), and other peers were
#: written next to it; the rest is room for properties and headers. A single larger object still goes out alone.
MAX_BYTES = 60_000

#: Objects and bytes in one message of rows, which only peers of ours get.
MAX_ROWS = 1000
MAX_ROW_BYTES = 128_000

#: Encodes a message of some items; the second argument says that it is not the last.
Build = Callable[[Sequence[T], bool], bytes]


class MessageBatcher:
    """Splits items into messages within a number of items and of bytes.

    The size of a message is known only once it is encoded. Objects of a class have about the same size, so the packer
    learns from each message how many fit into the next.

    Attributes:
        room: how many items to offer at a time.
    """

    def __init__(self, metrics: AgentMetrics, most: int = MAX_OBJECTS, most_bytes: int = MAX_BYTES) -> None:
        """Make one.

        Args:
            metrics: counts what cannot be encoded.
            most: items in a message.
            most_bytes: bytes in a message of several items.
        """
        self._metrics = metrics
        self._most = most
        self._most_bytes = most_bytes
        self.room = min(most, MAX_OBJECTS)

    def pack(self, items: Sequence[T], build: Build[T], *, more: bool) -> Iterator[tuple[bytes, bool]]:
        """Encode items.

        Args:
            items: at most `room`.
            build: encodes a message. It may be called for messages that turn out too large.
            more: another call follows, so that even the last message of this one is not the last.

        Returns:
            the messages, each built when it is asked for, and whether it is the last; there is a last unless `more`.
        """
        try:
            data = build(items, more)
        except (ValueError, QmfError) as error:
            # Halving finds the one that cannot be encoded; the others shall not suffer.
            if len(items) < 2:
                if items:
                    report_unencodable(self._metrics, getattr(items[0], "object_id", items[0]), error)
                if not more and items:
                    yield build((), False), True
                return
        else:
            if items:
                self.room = max(1, min(self._most, self._most_bytes * len(items) // len(data)))
            if len(data) <= self._most_bytes or len(items) < 2:
                yield data, not more
                return
        half = len(items) // 2
        yield from self.pack(items[:half], build, more=True)
        yield from self.pack(items[half:], build, more=more)


class BatchedSender(Generic[T]):
    """A stream of items that goes out in parts as it comes in.

    Attributes:
        count: items taken up to now.
    """

    def __init__(self, packer: MessageBatcher, build: Build[T], send: Callable[[bytes, bool], Awaitable[None]]) -> None:
        """Begin.

        Args:
            packer: says how large a part is.
            build: encodes a part.
            send: sends one; the second argument says that it is the last.
        """
        self._packer = packer
        self._build = build
        self._send = send
        self._part: list[T] = []
        self.count = 0

    async def add(self, item: T) -> None:
        """Take an item. A part is sent when one more item is known to follow: then it is surely not the last."""
        if len(self._part) >= self._packer.room:
            await self._send_part()
        self._part.append(item)
        self.count += 1

    async def extend(self, items: Sequence[T]) -> None:
        """Take some items, as `add` does."""
        taken = 0
        while taken < len(items):
            room = self._packer.room - len(self._part)
            if room <= 0:
                await self._send_part()
                continue
            self._part += items[taken : taken + room]
            taken += room
        self.count += len(items)

    async def finish(self) -> None:
        """Send the last part, which may be empty."""
        for data, last in self._packer.pack(self._part, self._build, more=False):
            await self._send(data, last)

    async def _send_part(self) -> None:
        part, self._part = self._part, []
        for data, last in self._packer.pack(part, self._build, more=True):
            await self._send(data, last)


def report_unencodable(metrics: AgentMetrics, what: object, error: Exception) -> None:
    """Count an object or schema that cannot be encoded, and log the first."""
    metrics.add("unencodable")
    metrics.once("unencodable", "skipped object %s: %s", what, error)
