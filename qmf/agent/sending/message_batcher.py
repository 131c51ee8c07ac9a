"""Batches: long answers and publications are divided into messages that every peer accepts.

All messages but the last are marked `partial` where the receiver has to put them together.
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
#: written for it; the rest is room for properties and headers. A single larger object is sent alone.
MAX_BYTES = 60_000

#: Objects and bytes in one message of rows, which only consoles of this project get.
MAX_ROWS = 1000
MAX_ROW_BYTES = 128_000

#: Encodes a message of some items; the second argument is true if more messages follow.
EncodeBatch = Callable[[Sequence[T], bool], bytes]


class MessageBatcher:
    """Divides items into messages within limits of items and bytes.

    The size of a message is known only when it is encoded. Objects of a class have about the same size, so the batcher
    learns from each message how many fit into the next.

    Attributes:
        batch_size: number of items for the next call.
    """

    def __init__(self, metrics: AgentMetrics, max_items: int = MAX_OBJECTS, max_bytes: int = MAX_BYTES) -> None:
        """Make one.

        Args:
            metrics: counts items that cannot be encoded.
            max_items: items in a message.
            max_bytes: bytes in a message of several items.
        """
        self._metrics = metrics
        self._max_items = max_items
        self._max_bytes = max_bytes
        self.batch_size = min(max_items, MAX_OBJECTS)

    def encode(self, items: Sequence[T], encode: EncodeBatch[T], *, more: bool) -> Iterator[tuple[bytes, bool]]:
        """Encode items.

        Args:
            items: at most `batch_size`.
            encode: encodes a message. It may be called for messages that turn out to be too large.
            more: another call follows, so that none of these messages is the last.

        Returns:
            the messages, each encoded when it is needed, and whether it is the last; there is a last unless `more`.
        """
        try:
            data = encode(items, more)
        except (ValueError, QmfError) as error:
            # Halving finds the item that cannot be encoded; the others are sent.
            if len(items) < 2:
                if items:
                    report_unencodable(self._metrics, getattr(items[0], "object_id", items[0]), error)
                if not more and items:
                    yield encode((), False), True
                return
        else:
            if items:
                self.batch_size = max(1, min(self._max_items, self._max_bytes * len(items) // len(data)))
            if len(data) <= self._max_bytes or len(items) < 2:
                yield data, not more
                return
        half = len(items) // 2
        yield from self.encode(items[:half], encode, more=True)
        yield from self.encode(items[half:], encode, more=more)


class BatchedSender(Generic[T]):
    """A stream of items that is sent in batches as the items arrive.

    Attributes:
        count: items added up to now.
        sent: messages sent up to now.
    """

    def __init__(
        self, batcher: MessageBatcher, encode: EncodeBatch[T], send: Callable[[bytes, bool], Awaitable[None]]
    ) -> None:
        """Begin.

        Args:
            batcher: limits the batches.
            send: sends an encoded batch; the second argument is true for the last one.
        """
        self._batcher = batcher
        self._encode = encode
        self._send = send
        self._batch: list[T] = []
        self.count = self.sent = 0

    async def add(self, item: T) -> None:
        """Add an item. A full batch is sent when the next item is added: then it is not the last."""
        if len(self._batch) >= self._batcher.batch_size:
            await self._send_batch()
        self._batch.append(item)
        self.count += 1

    async def extend(self, items: Sequence[T]) -> None:
        """Add some items; see `add`."""
        added = 0
        while added < len(items):
            room = self._batcher.batch_size - len(self._batch)
            if room <= 0:
                await self._send_batch()
                continue
            self._batch += items[added : added + room]
            added += room
        self.count += len(items)

    async def finish(self) -> None:
        """Send the last batch, which may be empty."""
        await self._send_all(self._batch, more=False)

    async def _send_batch(self) -> None:
        batch, self._batch = self._batch, []
        await self._send_all(batch, more=True)

    async def _send_all(self, batch: Sequence[T], *, more: bool) -> None:
        for data, last in self._batcher.encode(batch, self._encode, more=more):
            await self._send(data, last)
            self.sent += 1


def report_unencodable(metrics: AgentMetrics, what: object, error: Exception) -> None:
    """Count an object, event or schema that cannot be encoded, and log the first one."""
    metrics.add("unencodable")
    metrics.warn_once("unencodable", "skipped object %s: %s", what, error)
