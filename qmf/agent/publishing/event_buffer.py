"""The buffer of events that are not sent yet, or must be sent again: in order, and limited.

Any thread may add events. When the buffer is full, the oldest event is dropped and counted. A message gets its sequence
number when it is made, and keeps it when it is sent again; a dropped event that had no number yet uses one up, so
consoles see from the gap that something is missing. Events that the rate limiter suppresses never have one.
"""

from __future__ import annotations

import collections
import threading
from collections import deque
from collections.abc import Sequence

from qmf.agent.clock import Clock
from qmf.agent.publishing.event_message import EventKind, EventMessage, Item
from qmf.agent.publishing.event_rate_limiter import EventRateLimiter
from qmf.agent.sending.message_batcher import MAX_BYTES, MAX_OBJECTS
from qmf.agent.sending.message_sender import SequenceNumbers
from qmf.protocol import AgentInfo, event_key
from qmf.schema import ClassKey

#: Events kept without connection, or while the broker is slower than the program: a burst of a second, or four hours of
#: three a second. They take some 20 MB.
MAX_EVENTS = 50_000

#: Events in a batch.
BATCH_SIZE = 1000

#: Bytes that a message has beside its events, at most.
_MESSAGE_OVERHEAD = 2000


class EventBuffer:
    """The events of one agent before they are sent."""

    def __init__(
        self, agent: AgentInfo, limiter: EventRateLimiter, numbers: SequenceNumbers | None, clock: Clock
    ) -> None:
        """Make an empty buffer.

        Args:
            agent: part of the subjects.
            limiter: suppresses events, and counts them.
            numbers: gives messages their sequence numbers, or None.
            clock: of the agent.
        """
        self._clock = clock
        self._agent = agent
        self._limiter = limiter
        self._numbers = numbers
        #: How many events of each subject were taken into messages, or lost before.
        self._totals: collections.Counter[str] = collections.Counter()
        self._kinds: dict[tuple[ClassKey, int], EventKind] = {}
        self._lock = threading.Lock()
        #: Messages that must be sent again, and after them the events that are in no message yet.
        self._resend: deque[EventMessage] = deque()
        self._waiting: deque[tuple[EventKind, Item, int]] = deque()
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """Events lost to overflow or refused by the broker."""
        return self._dropped

    def __bool__(self) -> bool:
        return bool(self._resend or self._waiting)

    def kind(self, key: ClassKey, severity: int) -> EventKind:
        """The kind of the events of a class and severity; any thread."""
        with self._lock:
            kind = self._kinds.get((key, severity))
            if kind is None:
                subject = event_key(key, severity, self._agent)
                kind = EventKind(key, severity, subject, self._limiter.window(key, severity))
                self._kinds[key, severity] = kind
            return kind

    def add(self, kind: EventKind, item: Item) -> bool:
        """Add an event; any thread. The oldest one is dropped when the buffer is full.

        Returns:
            False if it is suppressed.
        """
        with self._lock:
            suppressed = 0
            if kind.window is not None:
                found = kind.window.admit(self._clock.monotonic())
                if found is None:
                    return False
                suppressed = found
            if len(self._waiting) >= MAX_EVENTS or (self._resend and self._count() >= MAX_EVENTS):
                self._drop_oldest()
            self._waiting.append((kind, item, suppressed))
        return True

    def suppress(self, kind: EventKind) -> bool:
        """Count an event that is suppressed, which then need not be encoded; any thread.

        Returns:
            False if it is to be added.
        """
        if kind.window is None or not kind.window.is_full(now := self._clock.monotonic()):
            return False
        with self._lock:
            return kind.window.is_full(now) and kind.window.admit(now) is None

    def next_batch(self) -> list[EventMessage]:
        """Remove the messages to send next; those that are sent again come first, unchanged."""
        with self._lock:
            batch = list(self._resend)
            self._resend.clear()
            left = BATCH_SIZE - sum(len(message.items) for message in batch)
            waiting = self._waiting
            last: EventMessage | None = None
            while waiting and left > 0:
                kind, item, suppressed = waiting.popleft()
                left -= 1
                self._totals[kind.subject] += 1
                total = None if self._numbers is None else self._totals[kind.subject]
                size = len(item) if isinstance(item, bytes) else MAX_BYTES // MAX_OBJECTS
                if (
                    last is not None
                    and last.kind is kind
                    and not suppressed
                    and len(last.items) < MAX_OBJECTS
                    and last.size + size <= MAX_BYTES - _MESSAGE_OVERHEAD
                ):
                    last.items.append(item)
                    last.size += size
                    last.total = total
                    continue
                number = None if self._numbers is None else self._numbers.use(kind.subject)
                last = EventMessage(kind, deque((item,)), number, total, suppressed, size)
                batch.append(last)
            return batch

    def put_back(self, batch: Sequence[EventMessage]) -> None:
        """Put messages back in front: they must be sent again."""
        with self._lock:
            self._resend.extendleft(reversed(batch))
            for _ in range(self._count() - MAX_EVENTS):
                self._drop_oldest()

    def count_refused(self, batch: Sequence[EventMessage]) -> None:
        """Count the events of a batch that the broker refused as dropped."""
        with self._lock:
            self._dropped += sum(len(message.items) for message in batch)

    def _count(self) -> int:
        return len(self._waiting) + sum(len(message.items) for message in self._resend)

    def _drop_oldest(self) -> None:
        """Make room for one event; the caller has the lock."""
        self._dropped += 1
        if self._resend:
            message = self._resend[0]
            message.items.popleft()
            if not message.items:
                self._resend.popleft()
            return
        kind, _, _ = self._waiting.popleft()
        self._totals[kind.subject] += 1
        if self._numbers is not None:
            self._numbers.use(kind.subject)
