"""The sending side of one connection: links, credit, order, and what became of each message.

One link with a null target (the anonymous relay) carries everything. Brokers without it get one link per `to` address.

Rules: messages leave in the order of the calls to `send`. A link that the broker detached is opened again, because
brokers answer bad messages that way (QMF2.md 0, point 10); after several times without anything accepted between, only
every `REST` seconds, while messages wait. When the opening itself is refused, messages are refused for `REST` seconds.
Neither kind of broker is flooded then. What was on its way when a link broke is not sent again: a request that was
carried out twice is worse than one that is reported as failed.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Collection

import attrs

from qmf.bus.base import LinkLost, Told
from qmf.bus.destination import destination
from qmf.bus.dialect import ANONYMOUS_RELAY, Dialect, dialect_of
from qmf.bus.link import Link
from qmf.bus.values import LinkDetached, Node, Outcome, Settled
from qmf.bus.wire import Wire
from qmf.errors import LinkError, NetworkError

log = logging.getLogger("qmf.bus")

#: A link is opened again at once so many times before a message must be accepted.
REOPENINGS = 5
#: Seconds between attempts to open a link that the broker does not want.
REST = 1.0
#: Links kept to brokers without anonymous relay; the one not used for longest is closed first.
LANES = 64


@attrs.define(eq=False)
class _Waiting:
    """A message that waits for credit."""

    data: bytes
    #: Who is told what became of it, once it was sent.
    told: Told | None
    #: Done when the message was sent.
    sent: asyncio.Future[None]


class Lane:
    """One sending link, over its detaches and reopenings."""

    def __init__(self, wire: Wire, address: str | None, target: Node, report: Callable[[LinkLost], None]) -> None:
        self.address = address
        self._target = target
        self.link: Link | None = None
        self._wire = wire
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Waiting] = deque()
        #: Who is told what became of a message, by token.
        self._told: dict[int, Told] = {}
        self._unsettled: set[int] = set()
        self._attached = False
        self._reopenings = 0
        #: Why the link was lost, until it is known whether it could be opened again.
        self._lost: tuple[str, str, str] | None = None
        self._refused: tuple[str, str, str] | None = None
        self._rest_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        """True when closing the link would lose nothing."""
        return not self._waiting and not self._unsettled and (self._attached or self.closed)

    @property
    def closed(self) -> bool:
        """True while there is no link, nor an attempt to open one; the broker refused it."""
        return self.link is None and self._timer is None

    @property
    def busy(self) -> bool:
        """True while the broker has not said what became of everything."""
        return bool(self._waiting or self._unsettled)

    async def send(self, data: bytes, *, confirm: bool) -> None:
        """See `Bus.send`."""
        if self._refused is not None and self._loop.time() < self._rest_until:
            self._drop(LinkError(*self._refused), confirm)
            return
        if self.link is None and self._timer is None:
            self.open()
        confirmation: asyncio.Future[None] | None = None
        told: Told | None = None
        if confirm:
            confirmation = self._loop.create_future()
            told = functools.partial(_confirm, confirmation)
        if not self._waiting and self._open_for_more():
            self._hand_over(data, told)
        else:
            waiting = _Waiting(data, told, self._loop.create_future())
            self._waiting.append(waiting)
            try:
                await waiting.sent
            except LinkError as error:
                self._drop(error, confirm)
                return
            except asyncio.CancelledError:
                if confirmation is not None:
                    confirmation.cancel()  # it may have been sent in the same moment; nobody waits for the answer
                raise
        if confirmation is not None:
            await confirmation

    def post(self, data: bytes, told: Told) -> bool:
        """See `Bus.post`."""
        if self._waiting or not self._open_for_more():
            return False
        self._hand_over(data, told)
        return True

    def _open_for_more(self) -> bool:
        return self._attached and self.link is not None and self._wire.ready(self.link)

    def _hand_over(self, data: bytes, told: Told | None) -> None:
        assert self.link is not None
        token = self._wire.engine.send(self.link, data)
        self._wire.touch()
        self._unsettled.add(token)
        if told is not None:
            self._told[token] = told

    def open(self) -> None:
        """Ask the broker for the link."""
        self._refused = None
        self._timer = None
        self._attached = False
        self.link = self._wire.engine.attach(f"out-{uuid.uuid4()}", sending=True, node=self._target)
        self._wire.touch()

    def close(self) -> None:
        """Detach; for idle lanes."""
        if self.link is not None:
            self._wire.engine.detach(self.link)
            self._wire.touch()
        self.link = None

    def attached(self) -> None:
        """The broker granted the link."""
        self._attached = True
        if self._lost is not None:
            self._report(LinkLost(*self._lost, reopened=True))
            self._lost = None
        self.pump()

    def pump(self) -> None:
        """Send what waits, as far as there is credit and room."""
        while self._waiting and self._open_for_more():
            waiting = self._waiting.popleft()
            if not waiting.sent.done():  # it is done when the sender was cancelled
                self._hand_over(waiting.data, waiting.told)
                waiting.sent.set_result(None)

    def settled(self, event: Settled) -> None:
        """The broker decided about a message."""
        self._unsettled.discard(event.token)
        told = self._told.pop(event.token, None)
        if event.outcome is Outcome.ACCEPTED:
            self._reopenings = 0
            if told is not None:
                told(None)
            return
        condition = event.condition or f"amqp:{event.outcome.value}"
        description = event.description or f"the broker {event.outcome.value} the message"
        if told is None:
            self._report(LinkLost(self.address or "", condition, description, reopened=True))
        else:
            told(LinkError(self.address or "", condition, description))

    def detached(self, event: LinkDetached) -> None:
        """The broker ended or refused the link."""
        words = (self.address or "", event.condition or "amqp:link:detach-forced", event.description)
        self._tell_all(lambda: LinkError(*words))
        was_attached, self._attached, self.link = self._attached, False, None
        if was_attached:
            self._lost = words
            self._reopenings += 1
            if self._reopenings <= REOPENINGS:
                self.open()
            else:
                self._timer = self._loop.call_later(REST, self.open)
            return
        self._lost = None
        self._refused = words
        self._rest_until = self._loop.time() + REST
        self._report(LinkLost(*words, reopened=False))
        self._release(lambda: LinkError(*words))

    def fail(self, error: NetworkError) -> None:
        """The connection is gone: tell everybody who waits."""
        if self._timer is not None:
            self._timer.cancel()
        # Each gets an exception of its own: one that is raised in several tasks collects the tracebacks of all.
        self._release(lambda: type(error)(*error.args))

    def _release(self, error: Callable[[], NetworkError]) -> None:
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            if not entry.sent.done():
                entry.sent.set_exception(error())
        self._tell_all(error)

    def _tell_all(self, error: Callable[[], NetworkError]) -> None:
        """Nothing more will be heard of what was sent."""
        self._unsettled.clear()
        told, self._told = self._told, {}
        for tell in told.values():
            tell(error())

    def _drop(self, error: LinkError, confirm: bool) -> None:
        if confirm:
            raise error
        log.debug("message not sent: %s", error)


def _confirm(confirmation: asyncio.Future[None], error: NetworkError | None) -> None:
    if confirmation.done():
        return  # its waiter was cancelled
    if error is None:
        confirmation.set_result(None)
    else:
        confirmation.set_exception(error)


class Outbox:
    """All sending links of one connection."""

    def __init__(self, wire: Wire, report: Callable[[LinkLost], None]) -> None:
        self._wire = wire
        self._report = report
        self._dialect = dialect_of("")
        #: All messages go out on one link, to the anonymous relay.
        self._relay = True
        self._lanes: OrderedDict[str | None, Lane] = OrderedDict()
        #: The lane that was found last; with the anonymous relay, the only one.
        self._last: Lane | None = None

    def speak(self, dialect: Dialect, capabilities: Collection[str]) -> None:
        """Learn how the broker wants to be spoken to; before the first message."""
        self._dialect = dialect
        self._relay = dialect.relays and ANONYMOUS_RELAY in capabilities

    async def send(self, data: bytes, *, confirm: bool) -> None:
        """See `Bus.send`."""
        await self._lane(None if self._relay else destination(data)[0] or "").send(data, confirm=confirm)

    def post(self, data: bytes, told: Told) -> bool:
        """See `Bus.post`."""
        return self._lane(None if self._relay else destination(data)[0] or "").post(data, told)

    def find(self, link: Link) -> Lane | None:
        """Whose link this is."""
        if self._last is None or self._last.link is not link:
            self._last = next((lane for lane in self._lanes.values() if lane.link is link), None)
        return self._last

    def pump(self) -> None:
        """Send what waits on every lane."""
        for lane in self._lanes.values():
            lane.pump()

    @property
    def busy(self) -> bool:
        """True while something waits to be sent or confirmed."""
        return any(lane.busy for lane in self._lanes.values())

    def fail(self, error: NetworkError) -> None:
        """The connection is gone."""
        for lane in self._lanes.values():
            lane.fail(error)

    def _lane(self, address: str | None) -> Lane:
        lane = self._lanes.get(address)
        if lane is None:
            if len(self._lanes) >= LANES:
                idle = [old for old in self._lanes.values() if old.idle]
                # Whoever asks chooses where answers go: links that were refused shall not push out good ones.
                for old in [old for old in idle if old.closed] or idle[:1]:
                    old.close()
                    del self._lanes[old.address]
            target = Node() if address is None else self._dialect.target(address)
            lane = self._lanes[address] = Lane(self._wire, address, target, self._report)
        self._lanes.move_to_end(address)
        return lane
