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

from qmf.bus.base import LinkLost, OutcomeCallback
from qmf.bus.client.dialect import ANONYMOUS_RELAY, Dialect, dialect_of
from qmf.bus.engine.destination import read_destination
from qmf.bus.engine.events import LinkDetached, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome, Terminus
from qmf.bus.transport import AmqpTransport
from qmf.errors import LinkError, NetworkError

log = logging.getLogger("qmf.bus")

#: A link is opened again at once so many times before a message must be accepted.
REOPENINGS = 5
#: Seconds between attempts to open a link that the broker does not want.
REST = 1.0
#: Links kept to brokers without anonymous relay; the one not used for longest is closed first.
MAX_SENDER_LINKS = 64


@attrs.define(eq=False)
class _Waiting:
    """A message that waits for credit."""

    data: bytes
    #: Called with what became of it, once it was sent.
    on_outcome: OutcomeCallback | None
    #: Done when the message was sent.
    sent: asyncio.Future[None]


class SenderLink:
    """One sending link, over its detaches and reopenings."""

    def __init__(
        self, transport: AmqpTransport, address: str | None, target: Terminus, report: Callable[[LinkLost], None]
    ) -> None:
        self.address = address
        self._target = target
        self.link: Link | None = None
        self._transport = transport
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Waiting] = deque()
        #: Callbacks of messages that have no outcome yet, by delivery tag.
        self._outcome_callbacks: dict[int, OutcomeCallback] = {}
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
        on_outcome: OutcomeCallback | None = None
        if confirm:
            confirmation = self._loop.create_future()
            on_outcome = functools.partial(_confirm, confirmation)
        if not self._waiting and self._open_for_more():
            self._hand_over(data, on_outcome)
        else:
            waiting = _Waiting(data, on_outcome, self._loop.create_future())
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

    def try_send(self, data: bytes, on_outcome: OutcomeCallback) -> bool:
        """See `Bus.try_send`."""
        if self._waiting or not self._open_for_more():
            return False
        self._hand_over(data, on_outcome)
        return True

    def _open_for_more(self) -> bool:
        return self._attached and self.link is not None and self._transport.can_send(self.link)

    def _hand_over(self, data: bytes, on_outcome: OutcomeCallback | None) -> None:
        assert self.link is not None
        delivery_tag = self._transport.engine.send(self.link, data)
        self._transport.flush_soon()
        self._unsettled.add(delivery_tag)
        if on_outcome is not None:
            self._outcome_callbacks[delivery_tag] = on_outcome

    def open(self) -> None:
        """Ask the broker for the link."""
        self._refused = None
        self._timer = None
        self._attached = False
        self.link = self._transport.engine.attach(f"out-{uuid.uuid4()}", is_sender=True, terminus=self._target)
        self._transport.flush_soon()

    def close(self) -> None:
        """Detach; for idle links."""
        if self.link is not None:
            self._transport.engine.detach(self.link)
            self._transport.flush_soon()
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
                self._hand_over(waiting.data, waiting.on_outcome)
                waiting.sent.set_result(None)

    def settled(self, event: OutcomeReceived) -> None:
        """The broker decided about a message."""
        self._unsettled.discard(event.delivery_tag)
        on_outcome = self._outcome_callbacks.pop(event.delivery_tag, None)
        if event.outcome is Outcome.ACCEPTED:
            self._reopenings = 0
            if on_outcome is not None:
                on_outcome(None)
            return
        condition = event.condition or f"amqp:{event.outcome.value}"
        description = event.description or f"the broker {event.outcome.value} the message"
        if on_outcome is None:
            self._report(LinkLost(self.address or "", condition, description, reopened=True))
        else:
            on_outcome(LinkError(self.address or "", condition, description))

    def detached(self, event: LinkDetached) -> None:
        """The broker ended or refused the link."""
        words = (self.address or "", event.condition or "amqp:link:detach-forced", event.description)
        self._fail_unsettled(lambda: LinkError(*words))
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
        self._fail_unsettled(error)

    def _fail_unsettled(self, error: Callable[[], NetworkError]) -> None:
        """Nothing more will be heard of what was sent."""
        self._unsettled.clear()
        callbacks, self._outcome_callbacks = self._outcome_callbacks, {}
        for on_outcome in callbacks.values():
            on_outcome(error())

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


class SenderLinks:
    """All sending links of one connection."""

    def __init__(self, transport: AmqpTransport, report: Callable[[LinkLost], None]) -> None:
        self._transport = transport
        self._report = report
        self._dialect = dialect_of("")
        #: All messages go out on one link, to the anonymous relay.
        self._relay = True
        self._links: OrderedDict[str | None, SenderLink] = OrderedDict()
        #: The sender that was found last; with the anonymous relay, the only one.
        self._last: SenderLink | None = None

    def speak(self, dialect: Dialect, capabilities: Collection[str]) -> None:
        """Learn how the broker wants to be spoken to; before the first message."""
        self._dialect = dialect
        self._relay = dialect.uses_relay and ANONYMOUS_RELAY in capabilities

    async def send(self, data: bytes, *, confirm: bool) -> None:
        """See `Bus.send`."""
        await self._sender_link(None if self._relay else read_destination(data)[0] or "").send(data, confirm=confirm)

    def try_send(self, data: bytes, on_outcome: OutcomeCallback) -> bool:
        """See `Bus.try_send`."""
        return self._sender_link(None if self._relay else read_destination(data)[0] or "").try_send(data, on_outcome)

    def find(self, link: Link) -> SenderLink | None:
        """Whose link this is."""
        if self._last is None or self._last.link is not link:
            self._last = next((sender for sender in self._links.values() if sender.link is link), None)
        return self._last

    def pump(self) -> None:
        """Send what waits on every sender."""
        for sender in self._links.values():
            sender.pump()

    @property
    def busy(self) -> bool:
        """True while something waits to be sent or confirmed."""
        return any(sender.busy for sender in self._links.values())

    def fail(self, error: NetworkError) -> None:
        """The connection is gone."""
        for sender in self._links.values():
            sender.fail(error)

    def _sender_link(self, address: str | None) -> SenderLink:
        sender = self._links.get(address)
        if sender is None:
            if len(self._links) >= MAX_SENDER_LINKS:
                idle = [old for old in self._links.values() if old.idle]
                # Whoever asks chooses where answers go: links that were refused shall not push out good ones.
                for old in [old for old in idle if old.closed] or idle[:1]:
                    old.close()
                    del self._links[old.address]
            target = Terminus() if address is None else self._dialect.target(address)
            sender = self._links[address] = SenderLink(self._transport, address, target, self._report)
        self._links.move_to_end(address)
        return sender
