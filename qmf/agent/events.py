"""Events on their way out: in order, at once, and kept while there is no connection.

Any thread may put events in; one task on the event loop sends them, in batches of which the broker confirms the last. A
batch that the connection took down with it is sent again: an event may arrive twice, but is not lost unless the buffer
overflows. Then the oldest go, and are counted. Events get their number when they are put in: one that is sent again
keeps it, and consoles see from the gap how many were dropped. Those that were held back as a flood never had one.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from itertools import chain

import attrs

from qmf.agent.clock import Clock
from qmf.agent.floods import EventLimit, FloodGate
from qmf.agent.identity import Identity
from qmf.agent.numbering import Numbers
from qmf.agent.outbox import Outbox
from qmf.agent.tally import Tally
from qmf.errors import LinkError, NetworkError, QmfError
from qmf.protocol import EventData, EventsIndication, event_key, topic_exchange
from qmf.schema import ClassKey

_log = logging.getLogger("qmf.agent")

#: Events kept without connection: an hour of three a second, at well under 1 kB each.
MAX_EVENTS = 10_000

#: Events between two confirmations: what may arrive twice after a broken connection.
BATCH = 100


@attrs.frozen
class _Waiting:
    event: EventData
    subject: str
    sequence: int | None
    suppressed: int


class EventQueue:
    """The events of one agent that the broker has not confirmed yet."""

    def __init__(
        self,
        outbox: Outbox,
        identity: Identity,
        domain: str,
        clock: Clock,
        tally: Tally,
        *,
        limit: EventLimit | None,
        numbers: Numbers | None,
    ) -> None:
        """Set up.

        Args:
            outbox, identity, domain, clock, tally: of the agent.
            limit: how many events of a kind go out, or None for all.
            numbers: what numbers messages, or None.
        """
        self._outbox = outbox
        self._agent = identity.info(0, 0)
        self._clock = clock
        self._gate = FloodGate(limit)
        self._numbers = numbers
        self._subjects: dict[tuple[ClassKey, int], str] = {}
        self._topic = topic_exchange(domain)
        self._tally = tally
        self._lock = threading.Lock()
        self._waiting: deque[_Waiting] = deque()
        self._dropped = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wanted = asyncio.Event()

    @property
    def dropped(self) -> int:
        """Events lost to overflow or refused by the broker."""
        return self._dropped

    @property
    def suppressed(self) -> int:
        """Events held back as part of a flood."""
        return self._gate.suppressed

    def put(self, event: EventData) -> None:
        """Add an event; any thread. The oldest one goes when the buffer is full."""
        assert event.class_key is not None
        kind = (event.class_key, event.severity)
        with self._lock:
            suppressed = self._gate.admit(*kind, self._clock.monotonic())
            if suppressed is None:
                return
            subject = self._subjects.get(kind)
            if subject is None:
                subject = self._subjects[kind] = event_key(*kind, self._agent)
            number = None if self._numbers is None else self._numbers.use(subject)
            if len(self._waiting) >= MAX_EVENTS:
                self._waiting.popleft()
                self._dropped += 1
            self._waiting.append(_Waiting(event, subject, number, suppressed))
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
            await self.flush()
            await self._wanted.wait()

    async def flush(self) -> bool:
        """Send what waits.

        Returns:
            False if the connection went, or is not there: the rest waits.
        """
        while self._waiting:
            if not self._outbox.connected:
                return False
            with self._lock:
                batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            try:
                sent = await self._send(batch)
            except LinkError as error:
                # Sending them again would meet the same refusal, and block all later ones.
                self._tally.once("event", "the broker refuses events: %s", error)
                with self._lock:
                    self._dropped += len(batch)
            except NetworkError as error:
                _log.info("events wait for a connection: %s", error)
                self._put_back(batch)
                return False
            except BaseException:
                self._put_back(batch)
                raise
            else:
                self._tally.add("events_sent", sent)
        return True

    async def _send(self, batch: list[_Waiting]) -> int:
        messages = []
        for item in batch:
            try:
                messages.append(self._encode(item))
            except (ValueError, QmfError) as error:
                self._tally.add("unencodable")
                self._tally.once("unencodable", "skipped event %s: %s", item.event.class_key, error)
        for number, data in enumerate(messages, 1):
            await self._outbox.send(data, confirm=number == len(messages))
        return len(messages)

    def _encode(self, item: _Waiting) -> bytes:
        return self._outbox.encode(
            EventsIndication((item.event,)),
            self._topic,
            item.subject,
            sequence=item.sequence,
            suppressed=item.suppressed,
        )

    def _put_back(self, batch: list[_Waiting]) -> None:
        with self._lock:
            events = deque(chain(batch, self._waiting))
            while len(events) > MAX_EVENTS:
                events.popleft()
                self._dropped += 1
            self._waiting = events


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
