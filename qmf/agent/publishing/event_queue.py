"""Events on their way out: in order, at once, and kept while there is no connection.

Any thread may put events in; one task on the event loop sends them. What follows each other with the same subject goes
in one message, so a burst costs few, and an event alone goes at once; no event overtakes another. Messages leave in
batches, of which the broker confirms the last, some batches ahead of its word. A batch that the connection took down
with it is sent again: an event may arrive twice, but is not lost unless the buffer overflows. Then the oldest go, and
are counted.

A message gets its number when it is made, and keeps it when it is sent again; an event that was dropped before takes a
number with it, so consoles see from the gap that something is missing. Those that were held back as a flood never had
one.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
from collections import deque
from functools import partial
from typing import Any

import attrs

from qmf.agent.agent_identity import AgentIdentity
from qmf.agent.clock import Clock
from qmf.agent.metrics import AgentMetrics
from qmf.agent.publishing.event_rate_limiter import EventLimit, EventRateLimiter, RateWindow
from qmf.agent.sending.message_batcher import MAX_BYTES, MAX_OBJECTS
from qmf.agent.sending.message_sender import MessageSender
from qmf.agent.sending.sequence_numbers import SequenceNumbers
from qmf.errors import LinkError, NetworkError, QmfError
from qmf.protocol import BodyForm, EventData, EventsIndication, MessageTemplate, event_key, topic_exchange
from qmf.protocol.objects import encode_event, list_body
from qmf.schema import ClassKey

_log = logging.getLogger("qmf.agent")

#: Events kept without connection, or while the broker is slower than the program: a burst of a second, or four hours of
#: three a second. They take some 20 MB.
MAX_EVENTS = 50_000

#: Events between two confirmations, and batches that wait for theirs: what may arrive twice after a broken connection.
BATCH = 1000
FLYING = 4

#: Bytes that a message has beside its events, at most.
_ROOM = 2000


class EventKind:
    """Events of one class and severity: they have the same subject.

    Attributes:
        key, severity: which.
        subject: routing key.
        window: holds floods back, or None.
        template: of their messages, once one was made.
    """

    __slots__ = ("key", "severity", "subject", "template", "window")

    def __init__(self, key: ClassKey, severity: int, subject: str, window: RateWindow | None) -> None:
        self.key = key
        self.severity = severity
        self.subject = subject
        self.window = window
        self.template: MessageTemplate | None = None


#: An event: encoded, or for the general encoder.
Item = bytes | EventData


@attrs.define
class _EventMessage:
    """Events of one kind that go together.

    Attributes:
        kind: which.
        items: at least one; the first ones go when the buffer overflows.
        sequence: number, or None.
        suppressed: events that were held back before the first.
        size: bytes of the items.
    """

    kind: EventKind
    items: deque[Item]
    sequence: int | None
    suppressed: int
    size: int


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
            sender, identity, domain, clock, metrics: of the agent.
            limit: how many events of a kind go out, or None for all.
            numbers: what numbers messages, or None.
        """
        self._sender = sender
        self._agent = identity.info(0, 0)
        self._clock = clock
        self._limiter = EventRateLimiter(limit)
        self._numbers = numbers
        self._kinds: dict[tuple[ClassKey, int], EventKind] = {}
        self._topic = topic_exchange(domain)
        self._metrics = metrics
        self._lock = threading.Lock()
        #: Messages that must be sent again, and behind them what is no message yet.
        self._again: deque[_EventMessage] = deque()
        self._waiting: deque[tuple[EventKind, Item, int]] = deque()
        self._dropped = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wanted = asyncio.Event()
        self._woken = False
        #: Batches on their way by number, and those that went down with a connection while others were on theirs.
        self._flying: dict[int, list[_EventMessage]] = {}
        self._failed: dict[int, list[_EventMessage]] = {}
        self._batches = itertools.count()
        #: A batch is on its way to be handed over, with a number below all that follow.
        self._sending = False
        self._landed = asyncio.Event()

    @property
    def dropped(self) -> int:
        """Events lost to overflow or refused by the broker."""
        return self._dropped

    @property
    def suppressed(self) -> int:
        """Events held back as part of a flood."""
        return self._limiter.suppressed

    def kind(self, key: ClassKey, severity: int) -> EventKind:
        """What is common to the events of a class and severity; any thread."""
        with self._lock:
            kind = self._kinds.get((key, severity))
            if kind is None:
                subject = event_key(key, severity, self._agent)
                kind = self._kinds[key, severity] = EventKind(
                    key, severity, subject, self._limiter.window(key, severity)
                )
            return kind

    def put(self, event: EventData) -> None:
        """Add an event; any thread. The oldest one goes when the buffer is full."""
        assert event.class_key is not None
        self.put_item(self.kind(event.class_key, event.severity), event)

    def put_item(self, kind: EventKind, item: Item) -> None:
        """Add an event of a kind; any thread. The oldest one goes when the buffer is full."""
        with self._lock:
            suppressed = 0
            if kind.window is not None:
                found = kind.window.admit(self._clock.monotonic())
                if found is None:
                    return
                suppressed = found
            if len(self._waiting) >= MAX_EVENTS or (self._again and self._kept() >= MAX_EVENTS):
                self._drop_oldest()
            self._waiting.append((kind, item, suppressed))
        # Who comes after the task was woken, and before it looks, need not wake it again.
        if not self._woken:
            self._woken = True
            self.wake()

    def wake(self) -> None:
        """Try to send now; any thread. Before `run` it does nothing."""
        loop = self._loop
        if loop is None:
            return
        if _running_loop() is loop:
            self._wanted.set()
            return
        try:
            loop.call_soon_threadsafe(self._wanted.set)
        except RuntimeError:
            # The loop is closed, and with it the agent: the event stays in the buffer.
            _log.debug("an event was raised after the agent's loop had ended")

    async def run(self) -> None:
        """Send until cancelled; between, wait for `wake`."""
        self._loop = asyncio.get_running_loop()
        while True:
            self._wanted.clear()
            self._woken = False
            try:
                await self.flush()
            except Exception:  # noqa: BLE001
                # A bug, here or below, shall not end all later events.
                _log.exception("sending events failed; they wait for the next one")
            await self._wanted.wait()

    async def flush(self, *, confirmed: bool = False) -> bool:
        """Send what waits.

        Args:
            confirmed: wait until the broker has confirmed all of it.

        Returns:
            False if the connection went, or is not there: the rest waits.
        """
        while True:
            if self._failed or len(self._flying) >= FLYING or (confirmed and self._flying and not self._left):
                self._landed.clear()
                await self._landed.wait()
                continue
            if not self._left:
                return True
            if not self._sender.connected:
                return False
            with self._lock:
                batch = self._next_batch()
            number = next(self._batches)
            self._sending = True
            try:
                await self._send(number, batch)
            except LinkError as error:
                self._refused(batch, error)
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

    @property
    def _left(self) -> bool:
        """Whether there is anything that is not on its way."""
        return bool(self._again or self._waiting)

    def _refused(self, batch: list[_EventMessage], error: LinkError) -> None:
        """Sending them again would meet the same refusal, and block all later ones."""
        self._metrics.once("event", "the broker refuses events: %s", error)
        with self._lock:
            self._dropped += sum(len(message.items) for message in batch)

    def _told(self, number: int, sent: int, error: NetworkError | None) -> None:
        """The broker, or the bus, said what became of a batch."""
        batch = self._flying.pop(number)
        if error is None:
            self._metrics.add("events_sent", sent)
        elif isinstance(error, LinkError):
            self._refused(batch, error)
        else:
            _log.info("events wait for a connection: %s", error)
            self._failed[number] = batch
        self._restore()
        self._landed.set()

    def _restore(self) -> None:
        """Put back what failed once nothing is on its way: in order, and before anything new is sent."""
        if self._failed and not self._flying and not self._sending:
            failed = [self._failed[key] for key in sorted(self._failed)]
            self._failed.clear()
            self._put_back([message for batch in failed for message in batch])

    def _next_batch(self) -> list[_EventMessage]:
        """The messages to send next; what was sent before comes first, as it was. The caller has the lock."""
        batch = list(self._again)
        self._again.clear()
        left = BATCH - sum(len(message.items) for message in batch)
        waiting = self._waiting
        last: _EventMessage | None = None
        while waiting and left > 0:
            kind, item, suppressed = waiting.popleft()
            left -= 1
            size = len(item) if isinstance(item, bytes) else MAX_BYTES // MAX_OBJECTS
            if (
                last is not None
                and last.kind is kind
                and not suppressed
                and len(last.items) < MAX_OBJECTS
                and last.size + size <= MAX_BYTES - _ROOM
            ):
                last.items.append(item)
                last.size += size
                continue
            number = None if self._numbers is None else self._numbers.use(kind.subject)
            last = _EventMessage(kind, deque((item,)), number, suppressed, size)
            batch.append(last)
        return batch

    async def _send(self, number: int, batch: list[_EventMessage]) -> None:
        messages = []
        sent = 0
        for message in batch:
            items = self._encoded(message)
            if items:
                messages.append(self._build(message, items))
                sent += len(items)
        if not messages:
            return
        for data in messages[:-1]:
            await self._sender.send(data)
        self._flying[number] = batch
        posted = False
        try:
            posted = self._sender.post(messages[-1], partial(self._told, number, sent))
        finally:
            if not posted:
                del self._flying[number]
        if posted:
            return
        await self._sender.send(messages[-1], confirm=True)
        self._metrics.add("events_sent", sent)

    def _encoded(self, message: _EventMessage) -> list[bytes] | list[EventData]:
        """The events of a message as bytes if the body's form takes them; those that cannot be encoded are left out."""
        plain = self._sender.form is not BodyForm.DATA010
        items: list[Any] = []
        for item in message.items:
            if isinstance(item, bytes):
                items.append(item)
                continue
            try:
                data = self._sender.encode(EventsIndication((item,)), None, None) if plain else b""
                items.append(item if data else encode_event(item))
            except (ValueError, QmfError) as error:
                self._metrics.add("unencodable")
                self._metrics.once("unencodable", "skipped event %s: %s", item.class_key, error)
        return items

    def _build(self, message: _EventMessage, items: list[Any]) -> bytes:
        kind = message.kind
        if self._sender.form is BodyForm.DATA010 and not message.suppressed:
            if kind.template is None:
                numbered = message.sequence is not None
                kind.template = self._sender.template(
                    EventsIndication(()), self._topic, kind.subject, numbered=numbered
                )
            return kind.template.encode(message.sequence, list_body(items))
        encoded = self._sender.form is BodyForm.DATA010
        return self._sender.encode(
            EventsIndication(() if encoded else items),
            self._topic,
            kind.subject,
            sequence=message.sequence,
            suppressed=message.suppressed,
            body=list_body(items) if encoded else None,
        )

    def _drop_oldest(self) -> None:
        """Make room for one event; the caller has the lock."""
        self._dropped += 1
        if self._again:
            message = self._again[0]
            message.items.popleft()
            if not message.items:
                self._again.popleft()
            return
        kind, _, _ = self._waiting.popleft()
        if self._numbers is not None:
            self._numbers.use(kind.subject)

    def _kept(self) -> int:
        return len(self._waiting) + sum(len(message.items) for message in self._again)

    def _put_back(self, batch: list[_EventMessage]) -> None:
        with self._lock:
            self._again.extendleft(reversed(batch))
            for _ in range(self._kept() - MAX_EVENTS):
                self._drop_oldest()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
