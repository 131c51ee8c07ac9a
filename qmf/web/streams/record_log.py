"""`RecordLog`: the latest records of a stream, numbered, for readers that each have a position of their own.

A reader has no queue: one that is slow falls behind the records that are kept, and learns how many it missed. So
memory does not depend on the number of readers, and each record is encoded once for all of them.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Sequence

import attrs

from qmf.web.json_values import json_bytes

_ID = re.compile(r"([0-9a-f]{8})-(\d{1,18})\Z", re.ASCII)


class StreamRecord:
    """One record.

    Attributes:
        id: names it, and its log.
        number: of the record; they grow by one.
        kind: what it is, in a word: the field ``event`` of a server-sent event.
        data: its content.
    """

    __slots__ = ("_sse", "_text", "data", "id", "kind", "number")

    def __init__(self, log_id: str, number: int, kind: str, data: object) -> None:
        self.number = number
        self.kind = kind
        self.data = data
        self.id = f"{log_id}-{number}"
        self._sse: bytes | None = None
        self._text: str | None = None

    @property
    def sse(self) -> bytes:
        """As a server-sent event."""
        if self._sse is None:
            self._sse = sse_event(self.kind, self.data, self.id)
        return self._sse

    @property
    def text(self) -> str:
        """As a message of a websocket."""
        if self._text is None:
            self._text = socket_message(self.kind, self.data, self.id)
        return self._text


def sse_event(kind: str, data: object, id: str | None = None) -> bytes:
    """A server-sent event; without an id, a reader that comes back does not go on behind it."""
    head = f"id: {id}\nevent: {kind}\ndata: " if id is not None else f"event: {kind}\ndata: "
    return head.encode() + json_bytes(data) + b"\n\n"


def socket_message(kind: str, data: object, id: str | None = None) -> str:
    """The same for a websocket: one JSON object."""
    return json_bytes({"id": id, "type": kind, "data": data}).decode()


@attrs.frozen
class Batch:
    """What a reader gets next.

    Attributes:
        records: in their order.
        missed: how many before them it did not get.
    """

    records: Sequence[StreamRecord]
    missed: int


class RecordLog:
    """The latest records. Belongs to the event loop."""

    def __init__(self, size: int) -> None:
        """Make an empty log; `size`: records that are kept."""
        self.id = secrets.token_hex(4)
        """Differs between logs: a position in another log, e.g. before a restart of the server, is none in this one."""
        self._size = size
        #: The record with a number is at the place (number - 1) % size.
        self._ring: list[StreamRecord] = []
        self._next = 1
        self._waiting: set[asyncio.Future[None]] = set()
        self._closed = False

    @property
    def closed(self) -> bool:
        """True once nothing will be added any more."""
        return self._closed

    @property
    def end(self) -> int:
        """The number of the next record."""
        return self._next

    @property
    def begin(self) -> int:
        """The number of the oldest record that is kept; `end` when there is none."""
        return self._next - len(self._ring)

    @property
    def last_id(self) -> str:
        """The id of the record that was added last; a reader that has it goes on behind it."""
        return f"{self.id}-{self._next - 1}"

    def add(self, kind: str, data: object) -> None:
        """Add a record and wake the readers that wait."""
        record = StreamRecord(self.id, self._next, kind, data)
        if len(self._ring) < self._size:
            self._ring.append(record)
        else:
            self._ring[(self._next - 1) % self._size] = record
        self._next += 1
        self._wake()

    def close(self) -> None:
        """End the log; its readers get what is left."""
        self._closed = True
        self._wake()

    def position(self, last_id: str | None) -> int | None:
        """The position behind a record; None when the id is of another log, or of a record that never was."""
        match = _ID.match(last_id or "")
        if match is None or match[1] != self.id:
            return None
        position = int(match[2]) + 1
        return position if position <= self._next else None

    def records(self, limit: int, *, after: int | None = None) -> list[StreamRecord]:
        """The latest records; or those from a position on."""
        begin = max(self.begin, self._next - limit if after is None else after)
        return [self._ring[(number - 1) % self._size] for number in range(begin, min(begin + limit, self._next))]

    def take(self, position: int, limit: int = 500) -> Batch:
        """What is there from a position on."""
        missed = max(0, self.begin - position)
        return Batch(self.records(limit, after=position + missed), missed)

    async def wait(self, position: int, timeout: float) -> None:
        """Return when there is a record at a position, when the log is closed, or after so many seconds."""
        if position < self._next or self._closed:
            return
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            async with asyncio.timeout(timeout):
                await waiting
        except TimeoutError:
            return
        finally:
            self._waiting.discard(waiting)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)
