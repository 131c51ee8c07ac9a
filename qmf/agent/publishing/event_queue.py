"""The queue of events: sends them at once and in order, and keeps them while there is no connection.

Any thread may add events; one task on the event loop sends them. Consecutive events of one kind are sent in one
message, so a burst costs few messages, and a single event is sent at once; no event overtakes another. An agent that
goes on raising events one by one collects them for some milliseconds (`PAUSE`), since what a message costs brokers and
consoles hardly depends on how many events it has. Messages are sent in batches. The broker confirms the last message of
a batch; the next batches are sent before that, up to a limit. A batch that was not confirmed before the connection was
lost is sent again: an event may arrive twice, but is not lost unless the buffer overflows (`event_buffer`).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from functools import partial

from qmf.agent.agent_identity import AgentIdentity
from qmf.agent.clock import Clock
from qmf.agent.metrics import AgentMetrics
from qmf.agent.publishing.event_buffer import EventBuffer
from qmf.agent.publishing.event_message import EventKind, EventMessage, EventMessageEncoder, Item
from qmf.agent.publishing.event_rate_limiter import EventLimit, EventRateLimiter
from qmf.agent.sending.message_sender import MessageSender, SequenceNumbers
from qmf.errors import LinkError, NetworkError
from qmf.protocol import EventData, topic_exchange
from qmf.schema import ClassKey

_log = logging.getLogger("qmf.agent")

#: Batches that wait for their confirmation; after a lost connection, their events may arrive twice.
MAX_UNCONFIRMED = 4

#: Seconds between two times of sending, where events keep coming, and how often they are sent without this pause after
#: a time without events: up to a hundred events in a second are not delayed, nor are the first twenty of more.
PAUSE, AT_ONCE = 0.01, 20


class EventQueue:
    """The events of one agent that the broker has not confirmed yet."""

    def __init__(
        self,
        sender: MessageSender,
        identity: AgentIdentity,
        domain: str,
        clock: Clock,
        metrics: AgentMetrics,
        *,
        limit: EventLimit | None,
        numbers: SequenceNumbers | None,
    ) -> None:
        """Set up.

        Args:
            limit: limit of the events of a kind, or None.
            numbers: gives messages their sequence numbers, or None.
        """
        self._sender = sender
        self._metrics = metrics
        self._limiter = EventRateLimiter(limit)
        self._buffer = EventBuffer(identity.info(0, 0), self._limiter, numbers, clock)
        self._encoder = EventMessageEncoder(sender, topic_exchange(domain), metrics)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake_event = asyncio.Event()
        self._woken = False
        #: When the next sending would be due if all were a pause apart, by the loop's clock.
        self._due = 0.0
        #: Batches by number: those that wait for their confirmation, and those that failed while others still wait.
        self._unconfirmed: dict[int, list[EventMessage]] = {}
        self._failed: dict[int, list[EventMessage]] = {}
        self._batch_numbers = itertools.count()
        #: A batch is being sent; its number is smaller than those of all that follow.
        self._sending = False
        self._outcome_event = asyncio.Event()

    @property
    def dropped(self) -> int:
        """Events lost to overflow or refused by the broker."""
        return self._buffer.dropped

    @property
    def suppressed(self) -> int:
        """Events suppressed by the rate limit."""
        return self._limiter.suppressed

    def kind(self, key: ClassKey, severity: int) -> EventKind:
        """The kind of the events of a class and severity; any thread."""
        return self._buffer.kind(key, severity)

    def put(self, event: EventData) -> None:
        """Add an event; any thread. The oldest one is dropped when the buffer is full."""
        assert event.class_key is not None
        self.put_item(self.kind(event.class_key, event.severity), event)

    def suppress(self, kind: EventKind) -> bool:
        """See `EventBuffer.suppress`."""
        return self._buffer.suppress(kind)

    def put_item(self, kind: EventKind, item: Item) -> None:
        """Add an event of a kind; any thread. The oldest one is dropped when the buffer is full."""
        # Once the task is woken, and until it starts to send, it need not be woken again.
        if self._buffer.add(kind, item) and not self._woken:
            self._woken = True
            self.wake()

    def wake(self) -> None:
        """Try to send now; any thread. Before `run` it does nothing."""
        loop = self._loop
        if loop is None:
            return
        if _running_loop() is loop:
            self._wake_event.set()
            return
        try:
            loop.call_soon_threadsafe(self._wake_event.set)
        except RuntimeError:
            # The loop is closed, and with it the agent: the event stays in the buffer.
            _log.debug("an event was raised after the agent's loop had ended")

    async def run(self) -> None:
        """Send until cancelled, each time after `wake`."""
        self._loop = asyncio.get_running_loop()
        while True:
            self._wake_event.clear()
            self._woken = False
            has_events = bool(self._buffer)
            try:
                await self.flush()
            except Exception:  # noqa: BLE001
                # A bug here or in the bus must not end all later events.
                _log.exception("sending events failed; they wait for the next one")
            if has_events:
                await self._pause(self._loop)
            await self._wake_event.wait()

    async def _pause(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait if events were sent too often lately; those raised meanwhile are sent together.

        By the loop's clock: events do not wait for one that is moved by hand.
        """
        now = loop.time()
        self._due = max(self._due, now - (AT_ONCE - 1) * PAUSE) + PAUSE
        if self._due > now:
            await asyncio.sleep(self._due - now)

    async def flush(self, *, confirmed: bool = False) -> bool:
        """Send all events in the buffer; `confirmed`: wait until the broker has confirmed all of them.

        Returns:
            False if there is no connection, or it was lost: the rest stays in the buffer.
        """
        while True:
            full = len(self._unconfirmed) >= MAX_UNCONFIRMED
            if self._failed or full or (confirmed and self._unconfirmed and not self._buffer):
                self._outcome_event.clear()
                await self._outcome_event.wait()
                continue
            if not self._buffer:
                return True
            if not self._sender.connected:
                return False
            batch = self._buffer.next_batch()
            number = next(self._batch_numbers)
            self._sending = True
            try:
                await self._send(number, batch)
            except LinkError as error:
                self._on_refused(batch, error)
            except NetworkError as error:
                _log.info("events wait for a connection: %s", error)
                self._failed[number] = batch
                return False
            except BaseException:
                self._failed[number] = batch
                raise
            finally:
                self._sending = False
                self._restore()

    async def _send(self, number: int, batch: list[EventMessage]) -> None:
        encoded = [self._encoder.encode(message) for message in batch]
        messages = [data for data, count in encoded if count]
        events = sum(count for _, count in encoded)
        if not messages:
            return
        for data in messages[:-1]:
            await self._sender.send(data)
        self._unconfirmed[number] = batch
        sent = False
        try:
            sent = self._sender.try_send(messages[-1], partial(self._on_outcome, number, events))
        finally:
            if not sent:
                del self._unconfirmed[number]
        if not sent:
            await self._sender.send(messages[-1], confirm=True)
            self._metrics.add("events_sent", events)

    def _on_outcome(self, number: int, events: int, error: NetworkError | None) -> None:
        """The last message of a batch was accepted, or failed."""
        batch = self._unconfirmed.pop(number)
        if error is None:
            self._metrics.add("events_sent", events)
        elif isinstance(error, LinkError):
            self._on_refused(batch, error)
        else:
            _log.info("events wait for a connection: %s", error)
            self._failed[number] = batch
        self._restore()
        self._outcome_event.set()

    def _on_refused(self, batch: list[EventMessage], error: LinkError) -> None:
        """Drop a batch: the broker would refuse it again, and it would block all later events."""
        self._metrics.warn_once("event", "the broker refuses events: %s", error)
        self._buffer.count_refused(batch)

    def _restore(self) -> None:
        """Put failed batches back once no batch is on its way: in order, and before new events are sent."""
        if self._failed and not self._unconfirmed and not self._sending:
            failed = [self._failed[key] for key in sorted(self._failed)]
            self._failed.clear()
            self._buffer.put_back([message for batch in failed for message in batch])


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
