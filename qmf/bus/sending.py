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
import logging
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable

import attrs

from qmf.bus.base import LinkLost
from qmf.bus.destination import destination
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
    confirm: bool
    #: Done when the message was sent; its result is the confirmation to wait for.
    sent: asyncio.Future[asyncio.Future[None] | None]


class Lane:
    """One sending link, over its detaches and reopenings."""

    def __init__(self, wire: Wire, address: str | None, report: Callable[[LinkLost], None]) -> None:
        self.address = address
        self.link: Link | None = None
        self._wire = wire
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Waiting] = deque()
        self._confirmations: dict[int, asyncio.Future[None]] = {}
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
        return self._attached and not self._waiting and not self._unsettled

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
        if not self._waiting and self._open_for_more():
            confirmation = self._hand_over(data, confirm)
        else:
            try:
                confirmation = await self._turn(_Waiting(data, confirm, self._loop.create_future()))
            except LinkError as error:
                self._drop(error, confirm)
                return
        if confirmation is not None:
            await confirmation

    async def _turn(self, waiting: _Waiting) -> asyncio.Future[None] | None:
        self._waiting.append(waiting)
        try:
            return await waiting.sent
        except asyncio.CancelledError:
            if (
                waiting.sent.done()
                and not waiting.sent.cancelled()
                and (confirmation := waiting.sent.result()) is not None
            ):
                confirmation.cancel()
            raise

    def _open_for_more(self) -> bool:
        return self._attached and self.link is not None and self._wire.ready(self.link)

    def _hand_over(self, data: bytes, confirm: bool) -> asyncio.Future[None] | None:
        assert self.link is not None
        token = self._wire.engine.send(self.link, data)
        self._wire.touch()
        self._unsettled.add(token)
        if not confirm:
            return None
        confirmation: asyncio.Future[None] = self._loop.create_future()
        self._confirmations[token] = confirmation
        return confirmation

    def open(self) -> None:
        """Ask the broker for the link."""
        self._refused = None
        self._timer = None
        self._attached = False
        self.link = self._wire.engine.attach(f"out-{uuid.uuid4()}", sending=True, node=Node(self.address))
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
                waiting.sent.set_result(self._hand_over(waiting.data, waiting.confirm))

    def settled(self, event: Settled) -> None:
        """The broker decided about a message."""
        self._unsettled.discard(event.token)
        confirmation = self._confirmations.pop(event.token, None)
        if event.outcome is Outcome.ACCEPTED:
            self._reopenings = 0
            if confirmation is not None and not confirmation.done():
                confirmation.set_result(None)
            return
        condition = event.condition or f"amqp:{event.outcome.value}"
        description = event.description or f"the broker {event.outcome.value} the message"
        if confirmation is None:
            self._report(LinkLost(self.address or "", condition, description, reopened=True))
        elif not confirmation.done():
            confirmation.set_exception(LinkError(self.address or "", condition, description))

    def detached(self, event: LinkDetached) -> None:
        """The broker ended or refused the link."""
        words = (self.address or "", event.condition or "amqp:link:detach-forced", event.description)
        self._unsettled.clear()
        confirmations, self._confirmations = self._confirmations, {}
        for confirmation in confirmations.values():
            if not confirmation.done():
                confirmation.set_exception(LinkError(*words))
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
        confirmations, self._confirmations = self._confirmations, {}
        self._unsettled.clear()
        for entry in waiting:
            if not entry.sent.done():
                entry.sent.set_exception(error())
        for confirmation in confirmations.values():
            if not confirmation.done():
                confirmation.set_exception(error())

    def _drop(self, error: LinkError, confirm: bool) -> None:
        if confirm:
            raise error
        log.debug("message not sent: %s", error)


class Outbox:
    """All sending links of one connection."""

    def __init__(self, wire: Wire, report: Callable[[LinkLost], None]) -> None:
        self._wire = wire
        self._report = report
        #: True when the broker offers the anonymous relay.
        self.relay = True
        self._lanes: OrderedDict[str | None, Lane] = OrderedDict()

    async def send(self, data: bytes, *, confirm: bool) -> None:
        """See `Bus.send`."""
        await self._lane(None if self.relay else destination(data)[0] or "").send(data, confirm=confirm)

    def find(self, link: Link) -> Lane | None:
        """Whose link this is."""
        return next((lane for lane in self._lanes.values() if lane.link is link), None)

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
                for old in self._lanes.values():
                    if old.idle:
                        old.close()
                        del self._lanes[old.address]
                        break
            lane = self._lanes[address] = Lane(self._wire, address, self._report)
        self._lanes.move_to_end(address)
        return lane
