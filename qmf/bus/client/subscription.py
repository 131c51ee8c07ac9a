"""The receiving side: a subscription with its link, its window of credit and the settling of its messages.

The broker is asked to settle what it sends: the queue of a subscription ends with the link, so that nothing could be
sent again, and a disposition per message would only cost both sides. A broker that sends unsettled messages
nevertheless has them accepted when their receiver calls `ReceivedMessage.settle`. Credit is given back for those that
are settled only, which is what keeps a slow receiver's memory; in batches of a quarter of the window, so that a busy
link never waits for credit and not every message costs a flow frame.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import uuid
from collections.abc import Callable
from typing import Protocol

from qmf.bus.base import Binding, MessageCallback, ReceivedMessage, Subscription
from qmf.bus.client.dialect import Dialect
from qmf.bus.engine.destination import read_destination
from qmf.bus.engine.events import Delivery
from qmf.bus.engine.link import Link
from qmf.bus.transport import AmqpTransport
from qmf.errors import DecodeError

log = logging.getLogger("qmf.bus")


class SubscriptionOwner(Protocol):
    """What keeps a subscription in place; the bus."""

    async def unsubscribe(self, subscription: AmqpSubscription) -> None:
        """Forget the subscription and end its link."""


class AmqpSubscription(Subscription):
    """A binding on an AMQP bus. Its link changes when the broker or the connection is lost."""

    def __init__(self, holder: SubscriptionOwner, binding: Binding, on_message: MessageCallback, prefetch: int) -> None:
        self.binding = binding
        self.link: Link | None = None
        #: The broker confirmed the present link.
        self.attached = False
        #: Done when the broker confirmed the link, or refused it; its exception says why.
        self.answer: asyncio.Future[None] | None = None
        #: Times that the link was opened again since a message arrived, or since it had been there for long.
        self.reopenings = 0
        #: When the broker confirmed the present link, by the loop's clock.
        self.since = 0.0
        self._holder = holder
        self._on_message = on_message
        self._prefetch = prefetch
        self._batch = max(1, prefetch // 4)
        #: Messages that the broker may still send, and those done for which it has no new credit yet.
        self._credit = 0
        self._done = 0
        self._transport: AmqpTransport | None = None
        self._subject_filter: Callable[[str], bool] | None = None

    def attach(self, transport: AmqpTransport, dialect: Dialect) -> None:
        """Ask for a new link on a connection."""
        source = dialect.source(self.binding)
        self._subject_filter = dialect.subject_filter(self.binding)
        self._transport = transport
        self._credit, self._done = self._prefetch, 0
        self.attached = False
        # A new name each time: the broker may not have forgotten the link of a connection that broke.
        self.link = transport.engine.attach(
            f"in-{uuid.uuid4()}", is_sender=False, terminus=source, credit=self._prefetch, presettled=True
        )
        transport.flush_soon()

    def forget_link(self) -> None:
        """The link is gone; messages that are still held have nothing to settle any more."""
        self.link = self._transport = None
        self.attached = False

    def arrived(self, event: Delivery) -> None:
        """Hand a message to the receiver."""
        self.reopenings = 0
        self._credit -= 1
        received = ReceivedMessage(event.data, functools.partial(self._finished, event.link, event.delivery_tag))
        if self._subject_filter is not None and not _passes(self._subject_filter, event.data):
            received.settle()
            return
        try:
            self._on_message(received)
        except Exception:
            log.exception("the receiver of %s %r failed; message dropped", self.binding.exchange, self.binding.key)
            received.settle()

    def _finished(self, link: Link, delivery_tag: int | None) -> None:
        transport = self._transport
        if transport is None or link is not self.link:
            return
        if delivery_tag is not None:
            transport.engine.settle(link, delivery_tag)
            transport.flush_soon()
        self._done += 1
        # With no credit left, a receiver that holds many messages while it waits for one more would wait for ever.
        if self._done >= self._batch or self._credit == 0:
            transport.engine.add_credit(link, self._done)
            self._credit += self._done
            self._done = 0
            transport.flush_soon()

    async def close(self) -> None:
        """See `Subscription.close`."""
        await self._holder.unsubscribe(self)


def _passes(subject_filter: Callable[[str], bool], data: bytes) -> bool:
    try:
        subject = read_destination(data)[1]
    except DecodeError:
        return True  # the receiver says what is wrong with it, and counts it
    return subject_filter(subject or "")
