"""A link on which a bus sends: credit, order, and the outcome of each message.

Rules: messages leave in the order of the calls to `send`. While the link is attached again, they wait. When the broker
refuses the link, they fail, and so do new ones for `PAUSE` seconds; the next one after that asks for the link again. A
message that was in flight when the link was lost is not sent again: a request that is executed twice is worse than one
that is reported as failed.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeVar

import attrs

from qmf._marks import sending_link_name
from qmf.bus.base import LinkLost, OutcomeCallback
from qmf.bus.client.bus_link import BusLink
from qmf.bus.client.link_state import LinkState
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.events import AcceptedBatch, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.session import EngineSession
from qmf.bus.engine.values import Outcome, Terminus
from qmf.bus.transport import MAX_BACKLOG
from qmf.errors import LinkError, NetworkError

log = logging.getLogger("qmf.bus")

#: Seconds between attempts to attach a link that the broker has detached too often, or refused.
PAUSE = 1.0

#: Messages of `try_send` that are written together, while more are to come. With fewer, all processes on a machine wake
#: each other more often; with more, the others have no work meanwhile.
MAX_BATCH = 32


@attrs.define(eq=False)
class _PendingMessage:
    """A message that waits for the link or for credit."""

    data: bytes
    on_outcome: OutcomeCallback | None
    #: Done when the message was sent; None if nobody waits for that.
    sent: asyncio.Future[None] | None = None

    @property
    def abandoned(self) -> bool:
        """True when its sender was cancelled."""
        return self.sent is not None and self.sent.done()


class SenderLink(BusLink):
    """A link on which a bus sends. It is attached when the first message is sent, on one network connection."""

    def __init__(
        self,
        network: NetworkConnection,
        report: Callable[[LinkLost], None],
        *,
        address: str,
        target: Terminus,
        properties: Mapping[str, object],
    ) -> None:
        """Make a link that is not attached yet.

        Args:
            network: where it is attached.
            report, address: as of `BusLink`.
            target, properties: of the link.
        """
        super().__init__(address, report, PAUSE)
        self._place = network
        self._transport = network.transport
        self._loop = asyncio.get_running_loop()
        self._target = target
        self._properties = properties
        self._pending: deque[_PendingMessage] = deque()
        #: Messages of `try_send` that are sent together before the next write, with their callbacks, and how many more
        #: there may be.
        self._batch: list[bytes] = []
        self._batch_callbacks: list[OutcomeCallback] = []
        self._room = 0
        #: The messages that have no outcome yet, by delivery tag: what is called with it, if anything.
        self._unsettled: dict[int, OutcomeCallback | None] = {}
        #: Why the broker has refused the link, and until when messages are refused with that error.
        self._refusal: LinkError | None = None
        self._refused_until = 0.0
        #: Done when no message waits, or has no outcome yet, for `finish`.
        self._finished: asyncio.Future[None] | None = None

    @property
    def busy(self) -> bool:
        """True while messages wait, or have no outcome yet."""
        return bool(self._pending or self._unsettled or self._batch)

    @property
    def unattached(self) -> bool:
        """True while the link is neither attached nor going to be."""
        return self._state is LinkState.DETACHED

    @property
    def idle(self) -> bool:
        """True when closing the link would lose nothing."""
        return not self.busy and (self.attached or self.unattached)

    async def send(self, data: bytes, *, confirm: bool) -> None:
        """See `Bus.send`."""
        if self._refusal is not None and self._loop.time() < self._refused_until:
            _fail(_copy(self._refusal), confirm=confirm)
            return
        if self.unattached:
            self._refusal = None
            self.attach(self._place)
        confirmation: asyncio.Future[None] | None = None
        on_outcome: OutcomeCallback | None = None
        if confirm:
            confirmation = self._loop.create_future()
            on_outcome = functools.partial(_confirm, confirmation)
        self._send_batch()
        if not self._pending and self._can_transfer():
            self._transfer(data, on_outcome)
        else:
            sent = self._loop.create_future()
            self._pending.append(_PendingMessage(data, on_outcome, sent))
            try:
                await sent
            except LinkError as error:
                _fail(error, confirm=confirm)
                return
            except asyncio.CancelledError:
                if confirmation is not None:
                    confirmation.cancel()  # the message may have been sent just now; its outcome is of no interest
                raise
        if confirmation is not None:
            await confirmation

    def try_send(self, data: bytes, on_outcome: OutcomeCallback) -> bool:
        """See `Bus.try_send`."""
        if not self._batch:
            if self._pending or self._link is None or not self.attached:
                return False
            self._room = self._transport.room(self._link)
        if self._room <= 0:
            return False
        self._room -= 1
        self._batch.append(data)
        self._batch_callbacks.append(on_outcome)
        if (count := len(self._batch)) == 1:
            self._transport.call_before_write(self._send_batch)
            self._transport.flush_soon(0)
        elif count == MAX_BATCH:
            self._transport.flush_soon(count)
        return True

    def send_pending(self) -> None:
        """Send messages that wait, as far as there is credit and room in the transport."""
        while self._pending and self._can_transfer():
            pending = self._pending.popleft()
            if not pending.abandoned:
                self._transfer(pending.data, pending.on_outcome)
                if pending.sent is not None:
                    pending.sent.set_result(None)

    async def finish(self) -> None:
        """Wait until no message waits, or has no outcome yet."""
        if self.busy:
            self._finished = self._loop.create_future()
            await self._finished

    def disconnect(self, error: NetworkError) -> None:
        """See `BusLink`."""
        self._keep_batch()
        self.lose()
        self._fail_pending(error)
        self._fail_unsettled(error)

    # LinkOwner

    def on_credit(self) -> None:
        """See `LinkOwner`."""
        if self._pending:
            self.send_pending()

    def on_outcome(self, settled: OutcomeReceived) -> None:
        """See `LinkOwner`."""
        on_outcome = self._settle(settled.delivery_tag)
        if settled.outcome is Outcome.ACCEPTED:
            self._reattached = 0
            if on_outcome is not None:
                on_outcome(None)
            return
        condition = settled.condition or f"amqp:{settled.outcome.value}"
        description = settled.description or f"the broker {settled.outcome.value} the message"
        if on_outcome is None:
            self._report(LinkLost(self.address, condition, description, reopened=True))
        else:
            on_outcome(LinkError(self.address, condition, description))

    def on_accepted(self, batch: AcceptedBatch) -> None:
        """See `LinkOwner`."""
        self._reattached = 0
        unsettled = self._unsettled
        for delivery_tag in batch.delivery_tags:
            if (on_outcome := unsettled.pop(delivery_tag, None)) is not None:
                on_outcome(None)
        self._check_finished()

    # Details

    def _request(self, network: NetworkConnection, session: EngineSession | None) -> Link:
        return network.engine.links.attach(
            sending_link_name(), is_sender=True, terminus=self._target, session=session, properties=self._properties
        )

    def _on_granted(self, link: Link) -> None:  # noqa: ARG002
        self.send_pending()

    def _on_refused(self, error: LinkError) -> float | None:
        self._lost, self._refusal = None, error
        self._refused_until = self._loop.time() + self._pause
        self._report_lost(error, reopened=False)
        self._fail_pending(error)
        return None  # the next message asks for it

    def _on_detached(self, error: LinkError) -> None:
        self._keep_batch()
        self._fail_unsettled(error)

    def _can_transfer(self) -> bool:
        return self._link is not None and self.attached and self._transport.can_send(self._link)

    def _transfer(self, data: bytes, on_outcome: OutcomeCallback | None) -> None:
        assert self._link is not None
        delivery_tag = self._transport.engine.deliveries.send(self._link, data)
        self._transport.flush_soon()
        self._unsettled[delivery_tag] = on_outcome

    def _send_batch(self) -> None:
        """Send the messages of `try_send`. Those for which there is no room after all wait, before all others."""
        if not self._batch:
            return
        if self._link is not None and self.attached:
            tags = self._transport.engine.deliveries.send_all(self._link, self._batch, 0, MAX_BACKLOG)
            self._unsettled.update(zip(tags, self._batch_callbacks, strict=False))
            del self._batch[: len(tags)], self._batch_callbacks[: len(tags)]
        if self._batch:
            self._keep_batch()

    def _keep_batch(self) -> None:
        """The messages of `try_send` wait, before all others."""
        waiting = zip(self._batch, self._batch_callbacks, strict=True)
        self._pending.extendleft(reversed([_PendingMessage(data, on_outcome) for data, on_outcome in waiting]))
        self._batch.clear()
        self._batch_callbacks.clear()

    def _settle(self, delivery_tag: int) -> OutcomeCallback | None:
        """A message has its outcome: what is called with it, if anything."""
        on_outcome = self._unsettled.pop(delivery_tag, None)
        self._check_finished()
        return on_outcome

    def _check_finished(self) -> None:
        if self._finished is not None and not self.busy and not self._finished.done():
            self._finished.set_result(None)

    def _fail_pending(self, error: NetworkError) -> None:
        pending, self._pending = self._pending, deque()
        for message in pending:
            if message.sent is None:
                if message.on_outcome is not None:
                    message.on_outcome(_copy(error))
            elif not message.sent.done():
                message.sent.set_exception(_copy(error))
        self._check_finished()

    def _fail_unsettled(self, error: NetworkError) -> None:
        unsettled, self._unsettled = self._unsettled, {}
        for on_outcome in unsettled.values():
            if on_outcome is not None:
                on_outcome(_copy(error))
        self._check_finished()


E = TypeVar("E", bound=NetworkError)


def _copy(error: E) -> E:
    """An error for one task alone: one that is raised in several tasks collects the tracebacks of all."""
    return type(error)(*error.args)


def _fail(error: LinkError, *, confirm: bool) -> None:
    if confirm:
        raise error
    log.debug("message not sent: %s", error)


def _confirm(confirmation: asyncio.Future[None], error: NetworkError | None) -> None:
    if confirmation.done():
        return  # the task that waited for it was cancelled
    if error is None:
        confirmation.set_result(None)
    else:
        confirmation.set_exception(error)
