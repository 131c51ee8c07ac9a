"""The link of a receiver: credit for its capacity, messages kept until they are fetched, drains for timeouts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from qmf.bus.client.link_state import LinkState
from qmf.bus.engine.events import Delivery, DeliveryBatch, MessageTooLarge
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome
from qmf.messaging.constants import Constant
from qmf.messaging.content_types import ContentReader
from qmf.messaging.core.acknowledgement import Acknowledgements
from qmf.messaging.core.addressed_link import AddressedLink, LinkSession
from qmf.messaging.core.arrived_messages import ArrivedMessages
from qmf.messaging.core.credit_window import CreditWindow
from qmf.messaging.core.deliveries import ReceivedDelivery, data_of, maker_parts
from qmf.messaging.core.thread_signal import ThreadSignal
from qmf.messaging.core.unconfirmed import UnconfirmedDeliveries
from qmf.messaging.core.waiting import CLOSE_TIMEOUT, deadline_of
from qmf.messaging.exceptions import DecodeError, Empty, FetchError, MessagingError, Timeout
from qmf.messaging.message import Message
from qmf.messaging.resolution import can_drain, confirms_acknowledgements

#: Seconds that a broker has to answer a drain.
DRAIN_TIMEOUT = 2.0
#: Seconds that a broker has to send a message if it cannot drain.
POLL_TIMEOUT = 0.5
#: Messages that keep a program busy for a while.
_MANY = 100


class IncomingSession(LinkSession, Protocol):
    """What the link of a receiver needs of its session.

    Attributes:
        endpoint: the session of the API.
        error: why it failed, or None.
        on_message: called for each message that arrives, on the loop's thread; or None.
    """

    endpoint: object
    error: MessagingError | None
    on_message: Callable[[], None] | None

    @property
    def ended(self) -> bool:
        """True if the program has closed the session or the connection, and neither had failed before."""

    def on_arrived(self, count: int) -> None:
        """So many messages are there to be fetched."""


class IncomingLink(AddressedLink):
    """The link of one receiver.

    Attributes:
        window: which may be set on any thread; `adjust` has to be called on the loop's then.
        arrived: messages that can be fetched, on any thread; `grant` has to be called on the loop's then.
    """

    _sending = False
    _kind = "Receiver"

    __slots__ = (
        "_alone",
        "_blocked",
        "_confirming",
        "_draining",
        "_fetching",
        "_maker",
        "_owner",
        "_unconfirmed",
        "arrived",
        "window",
    )

    def __init__(
        self,
        session: IncomingSession,
        address: str,
        capacity: int | Constant,
        acknowledgements: Acknowledgements,
        kind: type[Message],
        reader: ContentReader | None = None,
    ) -> None:
        """Make the link of a receiver; it is not attached yet.

        Args:
            session, address, capacity: of the receiver.
            acknowledgements: of the session.
            reader: applies content types to its messages.
            kind: the class of its messages, which `fetch`, `take` and `decode` return.
        """
        super().__init__(session, address)
        self._owner = session
        self.window = CreditWindow(capacity)
        self.arrived = ArrivedMessages(self.window, acknowledgements, kind, reader)
        self._maker = maker_parts()
        #: The last message that a thread waited for came alone: a thread that waits for the next one may read it.
        self._alone = True
        self._draining = False
        #: Messages whose acknowledgement the broker has to confirm, by delivery tag.
        self._confirming: dict[int, ReceivedDelivery] = {}
        #: With exactly-once: all messages whose outcome the broker has not confirmed.
        self._unconfirmed = UnconfirmedDeliveries()
        #: Calls of `fetch` that wait for a message: those of coroutines, and those on other threads.
        self._fetching = 0
        self._blocked: set[object] = set()

    def adjust(self) -> None:
        """The capacity has changed: give credit, or take it back and return the messages that are too many."""
        missing = self.window.missing(len(self.arrived), self._waiting())
        if missing >= 0:
            self.grant()
        elif not self._draining:  # which takes it back as well
            taken_back = min(-missing, max(self.window.credit, 0))
            self.window.taken_back += taken_back
            self._flow(-taken_back)
            self._return_excess(len(self.arrived))

    def _return_excess(self, most: int) -> None:
        """Return messages above the capacity, not more than `most`, the last one first: each goes to the front of its
        queue.
        """
        for _ in range(most):
            if len(self.arrived) <= self.window.limit(self._waiting()):
                return
            if (delivery := self.arrived.pop_last()) is None:  # another thread has fetched it
                return
            delivery.settle(Outcome.RELEASED)

    @property
    def is_queue(self) -> bool:
        """True if the broker says that the node is a queue, and it is no temporary one."""
        source = None if self._link is None else self._link.source
        return source is not None and "queue" in source.capabilities and not self.address.temporary

    @property
    def session(self) -> object:
        """See `DeliveryReceiver`."""
        return self._owner.endpoint

    @property
    def ended(self) -> bool:
        """True if the program has closed the receiver, its session or its connection, and none had failed before."""
        if self.error is not None:
            return self.error is self._owner.error and self._owner.ended
        return self.closed or self._owner.ended

    def available(self) -> int:
        """Number of messages that have arrived and can be fetched without waiting."""
        return len(self.arrived)

    def count_unsettled(self) -> int:
        """Number of messages that were acknowledged and whose acknowledgement the broker has not confirmed yet."""
        return self._unconfirmed.count_decided() if self.resumable else len(self._confirming)

    async def fetch(self, timeout: float | None) -> Any:
        """See `Receiver.fetch`."""
        if (message := self.take()) is not None:
            return message
        if timeout == 0:
            self.check()
            return await self.fetch_last(timeout)
        deadline = None if timeout is None else deadline_of(timeout)
        delivery: ReceivedDelivery | None = None
        self._fetching += 1
        self.grant()
        cancelled = in_time = True
        try:
            while (delivery := self.arrived.pop()) is None and in_time:
                if self._state is not LinkState.ATTACHED:
                    self.check()
                in_time = await self._session.condition.wait(deadline, fetching=True)
            cancelled = False
        finally:
            self._fetching -= 1
            if cancelled:  # what it has asked for is taken back; no drain follows
                self.adjust()
        return await self.fetch_last(timeout) if delivery is None else self._decode_fetched(delivery)

    async def fetch_last(self, timeout: float | None) -> Any:
        """The message that the broker still has when nobody waits for one any more.

        Args:
            timeout: seconds for which a message was waited for.

        Raises:
            MessagingError: as of `fetch`.
        """
        await self._drain()
        if (message := self.take()) is not None:
            return message
        self.check()
        raise Empty(text=f"no message from {self.address.name!r}" + ("" if not timeout else f" within {timeout:g} s"))

    def take(self) -> Any:
        """The first message that has arrived, or None; another thread may be quicker."""
        arrived = self.arrived
        if not arrived.messages:
            return None
        if (message := arrived.take_ready()) is not None:
            return message
        delivery = arrived.pop()
        return None if delivery is None else self._decode_fetched(delivery)

    def _decode_fetched(self, delivery: ReceivedDelivery) -> Any:
        if self.grant() and self._network is not None and len(self.arrived.messages) >= _MANY:
            self._network.transport.write_now()  # the program may fetch all of these before the loop has its next turn
        try:
            return self.arrived.decode(delivery)
        except DecodeError as error:
            if error.message is None:
                delivery.reject("amqp:decode-error", str(error))
            raise

    async def close_orderly(self, timeout: float | None) -> None:
        """See `Receiver.close`."""
        if self.closed:
            return
        deadline = deadline_of(timeout)
        self.release()
        try:
            await self.finish(timeout)
        finally:
            await self.close_and_delete(deadline)

    async def finish(self, timeout: float | None = None) -> None:
        """With exactly-once: wait until the broker has confirmed all outcomes.

        Raises:
            Timeout: not within `timeout` seconds or, without `timeout`, none for `CLOSE_TIMEOUT` seconds.
            MessagingError: session or connection failed.
        """
        condition = self._session.condition
        while self.error is None and (left := self._unconfirmed.count_decided()):
            limit = CLOSE_TIMEOUT if timeout is None else timeout
            confirmed = await condition.wait_for(self._is_confirmed, deadline_of(limit))
            if not confirmed and (timeout is not None or self._unconfirmed.count_decided() == left):
                raise Timeout(
                    f"{left} acknowledgements to {self.address.name!r} not confirmed within {round(limit, 3):g} s"
                )

    def _is_confirmed(self) -> bool:
        return self._has_failed() or not self._unconfirmed.count_decided()

    # For the session and the synchronous API

    def first_arrival(self) -> int:
        """The number of the first message that can be fetched, in the order of arrival on the connection."""
        return self.arrived.first.number

    def wait_on_thread(self, timeout: float | None, grant_soon: Callable[[], None]) -> ReceivedDelivery | None:
        """`pop` on another thread than the loop's, when there is a message.

        Args:
            timeout: seconds to wait; None for no limit.
            grant_soon: has the loop's thread call `grant`.

        Returns:
            None if there was no message in time.

        Raises:
            MessagingError: the receiver, its session or its connection failed, and no message is left.
        """
        delivery: ReceivedDelivery | None = None
        waiting, reads = object(), self._alone

        def has_message() -> bool:
            nonlocal delivery
            if (delivery := self.arrived.pop()) is not None:
                # At once: the next message that arrives would have credit given for this call again.
                self._blocked.discard(waiting)
                return True
            error = self._failure()
            if error is not None and (delivery := self.arrived.pop()) is None:  # none has come before the failure
                raise error
            return delivery is not None

        def wait(signal: ThreadSignal, seconds: float) -> bool:
            nonlocal reads
            found = self._wait_and_read(signal, seconds) if reads else None
            if found is None:
                return signal.wait(seconds)
            reads = not found  # what has come is for others, too: the loop's thread has to be woken up for that anyway
            return found

        self._blocked.add(waiting)
        try:
            if self.needs_grant():
                grant_soon()
            self._session.condition.wait_on_thread(has_message, timeout, fetching=True, wait=wait)
        except BaseException:
            if delivery is not None:
                self.arrived.put_back(delivery)
            raise
        finally:
            self._blocked.discard(waiting)
        self._alone = not self.arrived.messages
        return delivery

    def _wait_and_read(self, signal: ThreadSignal, seconds: float) -> bool | None:
        """Wait for messages and read them in place of the loop's thread; see `ThreadActions.wait_and_read`."""
        network, link, poll, maker = self._network, self._link, signal.poll, self._maker
        if network is None or link is None or poll is None or maker is None or self.resumable or self._draining:
            return None
        if (lane := network.transport.lane) is None:
            return None
        own = link, self.window, self.arrived, self._session.condition, self._owner, self, network, maker
        return lane.wait_and_read(poll, seconds, own)

    def _failure(self) -> MessagingError | None:
        try:
            self.check()
        except MessagingError as error:
            return error
        return None

    def needs_grant(self) -> bool:
        """True if `grant` would give credit."""
        return self.window.due(len(self.arrived), self._fetching + len(self._blocked)) > 0

    def release(self) -> None:
        """Return all messages that were not fetched."""
        # The last one first: each returns to the front of its queue.
        for delivery in reversed(self.arrived.take_all()):
            delivery.settle(Outcome.RELEASED)

    @property
    def confirms(self) -> bool:
        """See `DeliveryReceiver`."""
        return self.resumable or (self._network is not None and confirms_acknowledgements(self._network.peer.product))

    def await_confirmation(self, delivery: ReceivedDelivery) -> None:
        """See `DeliveryReceiver`."""
        if delivery.delivery_tag is None:
            delivery.confirmed = True
        elif not self.resumable:
            self._confirming[delivery.delivery_tag] = delivery

    def grant(self) -> bool:
        """Give credit up to the capacity, once no more than the threshold is left; returns whether that was so.

        A small portion would bring few messages, for which both ends are woken up. There is always credit when
        nothing is left to be fetched.
        """
        due = self.window.due(len(self.arrived.messages), self._fetching + len(self._blocked))
        if due <= 0 or self._draining:
            return False
        self._flow(due)
        return True

    def _waiting(self) -> int:
        """Calls of `fetch` that wait for a message."""
        return self._fetching + len(self._blocked)

    def _flow(self, credit: int) -> None:
        if self._link is not None and self._network is not None and self.attached:
            self.window.credit += credit
            self._network.engine.links.add_credit(self._link, credit)
            self._network.transport.flush_soon()

    async def _drain(self) -> None:
        """Have the broker send what it has for the credit given, and take the rest of the credit back."""
        condition = self._session.condition
        await condition.wait_for(lambda: self._has_failed() or not self.attaching, deadline_of(DRAIN_TIMEOUT))
        if self._link is None or self._network is None or not self.attached or self.arrived:
            return
        if not can_drain(self._network.peer.product):
            await self._poll()
            return
        if not self._draining:
            self._draining = True
            extra = 1 if self.window.credit == 0 else 0
            self.window.credit += extra
            self._network.engine.links.drain(self._link, extra)
            self._network.transport.flush_soon()
        await condition.wait_for(lambda: not self._draining or self._has_failed(), deadline_of(DRAIN_TIMEOUT))

    async def _poll(self) -> None:
        """Give credit for a message and wait a moment for it. A message that comes later is kept for the next fetch."""
        if self.window.credit == 0:
            self._flow(1)
        await self._session.condition.wait_for(
            lambda: bool(self.arrived) or self._has_failed(), deadline_of(POLL_TIMEOUT)
        )

    def _has_failed(self) -> bool:
        self._session.check()
        return self.error is not None

    # LinkOwner

    def unsettled_outcomes(self) -> Mapping[int, Outcome | None]:
        """See `AddressedLink`."""
        return self._unconfirmed.outcomes()

    def discard_unknown(self) -> int:
        """See `AddressedLink`. The program does not know of messages that it has not fetched."""
        self._unconfirmed.discard(self.arrived)
        self.arrived.clear()
        return len(self._unconfirmed)

    def _on_granted(self, link: Link) -> None:
        """See `AddressedLink`."""
        if link.resumption is not None:
            # The broker needs credit for the deliveries that it establishes again.
            self._unconfirmed.keep(link.resumption.unsettled)
            self._flow(len(self._unconfirmed))
        self.grant()

    def lose(self) -> None:
        """See `AddressedLink`. Messages that were not fetched come again, but with exactly-once, which keeps them."""
        super().lose()
        if not self.resumable:
            self.arrived.clear()
        self.window.clear()
        self._draining = False
        self._lose_confirmations()

    def close(self) -> asyncio.Future[None] | None:
        """See `AddressedLink`."""
        self._lose_confirmations()
        return super().close()

    def _lose_confirmations(self) -> None:
        """The link is gone. Messages come again unless the broker knows of their acknowledgement; nobody can tell."""
        for delivery in self._confirming.values():
            delivery.lost = True
        self._confirming.clear()

    def fail(self, error: MessagingError, *, with_session: bool = False) -> None:
        """See `AddressedLink`. What has arrived can still be fetched, but with exactly-once: it comes again."""
        super().fail(error, with_session=with_session)
        if self.resumable:
            self.arrived.clear()
        self._draining = False
        self._session.condition.notify()

    def on_delivery(self, delivery: Delivery) -> None:
        """See `LinkOwner`."""
        assert self._network is not None
        self.window.credit -= 1
        if delivery.link.resumption is None:
            link, tag = delivery.link, delivery.delivery_tag
            self.arrived.append(ReceivedDelivery(self, self._network, link, tag, data_of(delivery)))
        elif (added := self._unconfirmed.add(self, self._network, delivery)) is not None:
            self.arrived.append(added)
        else:
            self.grant()
            return
        self._owner.on_arrived(1)
        self._notify_arrival()

    def on_deliveries(self, batch: DeliveryBatch) -> None:
        """See `LinkOwner`. Links that can be resumed have no batches."""
        network = self._network
        assert network is not None
        self.arrived.add(self, network, batch.link, batch.deliveries)
        self.window.credit -= len(batch.deliveries)
        self._owner.on_arrived(len(batch.deliveries))
        self._notify_arrival()

    def on_too_large(self, event: MessageTooLarge) -> None:
        """See `LinkOwner`."""
        assert self._network is not None
        fate = "it was sent settled, and is lost" if event.settled else "it stays in the queue"
        error = FetchError(
            "amqp:link:message-size-exceeded",
            f"receiver of {self.address.name!r} closed: a message has {event.size} bytes, connection option "
            f"max_message_size allows {self._network.engine.settings.max_message}; {fate}",
        )
        self._detach_link()
        self.fail(error)

    def _notify_arrival(self) -> None:
        if self.window.credit < 0 and (used := self.window.count_used_late()):
            self._flow(used)
            self._return_excess(used)
        if self._fetching or self._blocked:
            self.grant()
        self._session.condition.notify(alone=len(self.arrived.messages) == 1)

    def on_settled(self, delivery_tag: int) -> None:
        """See `LinkOwner`."""
        self._unconfirmed.confirm(delivery_tag)
        if (delivery := self._confirming.pop(delivery_tag, None)) is not None:
            delivery.confirmed = True
        self._session.condition.notify_answered()

    def on_drained(self) -> None:
        """See `LinkOwner`."""
        self._draining = False
        self.window.clear()
        self.grant()
        self._session.condition.notify()
