"""The link of a sender: messages wait for capacity and credit, leave in order, and are sent again after a reconnect."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import deque
from collections.abc import Iterator, Mapping

from qmf.bus.client.link_state import LinkState
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.events import AcceptedBatch, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome
from qmf.bus.lane import MAX_MESSAGE
from qmf.bus.transport import MAX_BACKLOG
from qmf.messaging.constants import Constant
from qmf.messaging.content_types import ContentWriter
from qmf.messaging.contents import FormattedData
from qmf.messaging.core.addressed_link import AddressedLink, LinkSession
from qmf.messaging.core.failures import send_error
from qmf.messaging.core.outgoing import Answer, Outgoing, SenderTransactions, are_plain, drop_accepted, wait_for_answer
from qmf.messaging.core.waiting import CLOSE_TIMEOUT, deadline_of
from qmf.messaging.exceptions import (
    Detached,
    InsufficientCapacity,
    LinkClosed,
    MessagingError,
    SendError,
    Timeout,
)
from qmf.messaging.link_codec import MessageEncoder
from qmf.messaging.resolution import passes_lists, takes_decimals

#: Messages that are sent in one call.
_BATCH = 64


class OutgoingLink(AddressedLink):
    """The link of one sender.

    Attributes:
        capacity: messages that may be sent without an answer from the broker; an int, or `UNLIMITED`.
        threshold: of the API, without effect.
        encoder: of its messages, with their defaults; for any thread.
        unsettled: messages that were sent and are not answered, by delivery tag; to be looked at.
        waits_for_credit: nothing can be sent before the next `on_credit`, which is certain to come.
    """

    _sending = True
    _kind = "Sender"

    __slots__ = (
        "_accepted",
        "_fetches",
        "_is_simple",
        "_late",
        "_tags",
        "_transactions",
        "_waiting",
        "capacity",
        "encoder",
        "threshold",
        "unsettled",
        "waits_for_credit",
    )

    def __init__(
        self,
        session: LinkSession,
        address: str,
        capacity: int | Constant,
        durable: bool | None,
        transactions: SenderTransactions | None,
        writer: ContentWriter | None = None,
    ) -> None:
        super().__init__(session, address)
        self.capacity = capacity
        self.threshold = 0.5
        self._transactions = transactions
        self._waiting: deque[bytes | Outgoing] = deque()
        to = None if self.address.anonymous else self.address.name
        self.encoder = MessageEncoder(self.address.subject, to, writer)
        self.encoder.durable = durable
        self.unsettled: dict[int, bytes | Outgoing] = {}
        #: Messages that were accepted, which who waits for them does not know yet.
        self._accepted: list[Outgoing] = []
        #: Delivery tags with exactly-once.
        self._tags = itertools.count(1)
        #: The error of a message that nobody waited for; raised by the next call.
        self._late: MessagingError | None = None
        self.waits_for_credit = False
        #: Whether messages need nothing but to be sent and accepted: no transaction, no resumption.
        self._is_simple = False
        #: `Condition.fetches` when a message was sent.
        self._fetches = 0

    def count_unsettled(self) -> int:
        """Number of messages that the broker has not answered yet."""
        return len(self._waiting) + len(self.unsettled)

    def waiting(self) -> int:
        """Number of messages that were not sent yet."""
        return len(self._waiting)

    def post(self, data: bytes, answer: Answer | None) -> bool:
        """Queue an encoded message on any thread; unless `waits_for_credit`, the loop's thread has to call `on_credit`.

        Returns:
            False if the capacity is exhausted, or the sender is not attached; nothing is queued then.
        """
        if self._state is not LinkState.ATTACHED or self._late is not None:
            return False
        capacity = self.capacity
        if not isinstance(capacity, Constant) and len(self._waiting) + len(self.unsettled) >= capacity:
            return False
        # As `_outgoing`, which would be a call for each message.
        plain = answer is None and type(data) is bytes and not self.resumable
        outgoing: bytes | Outgoing = data if plain else Outgoing(data, answer)
        self._waiting.append(outgoing)
        if self.error is not None or self.closed:  # since this moment; it may not have been dropped
            try:
                self._waiting.remove(outgoing)
            except ValueError:
                return True
            return False
        return True

    def wait_for_room(self, timeout: float | None) -> float:
        """Wait for capacity on another thread than the loop's.

        Returns:
            the seconds that it has taken.

        Raises:
            InsufficientCapacity: no capacity in time.
            MessagingError: as of `Sender.send`.
        """
        begin = time.monotonic()
        if not self._session.condition.wait_on_thread(self._has_room, timeout):
            raise self._no_room(timeout)
        return time.monotonic() - begin

    def _no_room(self, timeout: float | None) -> InsufficientCapacity:
        count = f"{self.count_unsettled()} messages to {self.address.name!r} without an answer"
        return InsufficientCapacity(text=f"capacity {self.capacity} is used up: {count} after {timeout:g} s")

    def _outgoing(self, data: bytes, answer: Answer | None) -> bytes | Outgoing:
        if answer is None and type(data) is bytes and not self.resumable:
            return data
        return Outgoing(data, answer)

    async def send_encoded(self, data: bytes, sync: bool, timeout: float | None, waited: float = 0.0) -> None:
        """`Sender.send` of an encoded message where there may be no capacity.

        Args:
            data, sync, timeout: see there.
            waited: seconds of the timeout for which the caller has waited already.
        """
        deadline = deadline_of(None if timeout is None else timeout - waited)
        if not self._has_room() and not await self._session.condition.wait_for(self._has_room, deadline):
            raise self._no_room(timeout)
        answer = asyncio.get_running_loop().create_future() if sync else None
        self._waiting.append(self._outgoing(data, answer))
        self.start(answer)
        if answer is not None:
            await wait_for_answer(answer, self.address.name, timeout, deadline)

    def send_now(self, data: bytes, answer: Answer | None) -> bool:
        """Send an encoded message that needs nothing else, on the loop's thread, if nothing is in its way.

        Returns:
            False if it was not sent: it has to be queued.
        """
        unsettled, capacity = self.unsettled, self.capacity
        if (
            self._waiting
            or self._late is not None
            or (not isinstance(capacity, Constant) and len(unsettled) >= capacity)
            or (tag := self._send_simple(data)) is None
        ):
            return False
        assert self._network is not None
        transport = self._network.transport
        fetches = self._session.condition.fetches
        # The program waits for the answer to this message alone, or probably for the response to it.
        alone = not unsettled and (answer is not None or fetches != self._fetches)
        self._fetches = fetches
        unsettled[tag] = data if answer is None else Outgoing(data, answer)
        (transport.write_now if alone else transport.flush_soon)()
        return True

    def send_at_once(self, data: bytes, answer: Answer | None) -> bool:
        """Send an encoded message and write it, on another thread than the loop's, if nothing is in its way.

        For a message that nobody waits for, if no other one is `unsettled`: the loop's thread sends many together.

        Returns:
            False if it was not sent: it has to be posted.
        """
        network, unsettled = self._network, self.unsettled
        if network is None or (lane := network.transport.lane) is None or not (epoch := lane.epoch()):
            return False
        # What is looked at from here on is as it is at the epoch: if anything changes, nothing is sent.
        link, capacity = self._simple_link(data), self.capacity
        if link is None or link.detached or self._network is not network or len(data) > MAX_MESSAGE:
            return False
        if self._waiting or self._late is not None or (unsettled and answer is None):
            return False
        if not isinstance(capacity, Constant) and len(unsettled) >= capacity:
            return False
        item = data if answer is None else Outgoing(data, answer)
        return lane.send(epoch, link, data, MAX_BACKLOG, unsettled, item)

    def send_posted(self) -> None:
        """Send what another thread has posted, and write it at once."""
        waiting = self._waiting
        if len(waiting) == 1 and not self.waits_for_credit:
            item = waiting[0]
            tag = self._send_simple(item.data if isinstance(item, Outgoing) else item)
            if tag is not None:
                assert self._network is not None
                self.unsettled[tag] = waiting.popleft()
                self._network.transport.write_now()
                return
        self.perform(self.on_credit)

    def _send_simple(self, data: bytes) -> int | None:
        """Send a message that needs nothing else, before all that wait; returns its delivery tag, None if that can't
        be."""
        link, network = self._simple_link(data), self._network
        if link is None or network is None:
            return None
        tags = network.engine.deliveries.send_all(link, [data], 0, MAX_BACKLOG)
        return tags[0] if tags else None

    def _simple_link(self, data: bytes) -> Link | None:
        """The link, where nothing but to be sent on it is to be done for a message."""
        link = self._link
        if not self._is_simple or self._state is not LinkState.ATTACHED or link is None:
            return None
        return None if type(data) is not bytes or 0 < link.max_message < len(data) else link

    def start(self, answer: Answer | None) -> None:
        """Send what waits, where there is credit."""
        if self.waits_for_credit:
            return
        if answer is not None and not self.unsettled:  # the program waits for the answer to this message alone
            self.perform(self.on_credit)
        else:
            self.on_credit()

    async def sync(self, timeout: float | None = None) -> None:
        """See `Sender.sync`."""
        if not await self._session.condition.wait_for(self._is_settled, deadline_of(timeout)):
            limit = f"{round(timeout or 0.0, 3):g} s"  # of `close`, it is what is left of its own
            raise Timeout(f"{self.count_unsettled()} messages to {self.address.name!r} not answered within {limit}")
        self.check_all()

    async def finish(self, timeout: float | None = None) -> None:
        """`sync` for a sender that is about to be closed: it ends when the broker no longer answers.

        Raises:
            Timeout: not within `timeout` seconds or, without `timeout`, no answer for `CLOSE_TIMEOUT` seconds.
            MessagingError: the error of an earlier message that no call has raised.
        """
        if self.error is not None:
            self._raise_late()
            return
        if timeout is not None:
            await self.sync(timeout)
            return
        while left := self.count_unsettled():
            with contextlib.suppress(Timeout):
                await self.sync(CLOSE_TIMEOUT)
            if self.count_unsettled() == left:
                raise Timeout(f"no answer to {left} messages to {self.address.name!r} for {CLOSE_TIMEOUT:g} s")
        self.check_all()

    async def close_orderly(self, timeout: float | None) -> None:
        """See `Sender.close`."""
        if self.closed:
            return
        deadline = deadline_of(timeout)
        try:
            await self.finish(timeout)
        finally:
            self.drop(LinkClosed(text=f"sender of {self.address.name!r} was closed"))
            await self.close_and_delete(deadline)

    def check_all(self) -> None:
        """`check`, and the error of an earlier message, once."""
        self._raise_late()
        self.check()

    def _raise_late(self) -> None:
        if self._late is not None:
            error, self._late = self._late, None
            raise error

    def drop(self, error: MessagingError) -> None:
        """Give up all messages that are not answered."""
        pending = [*self.unsettled.values()]
        self.unsettled.clear()
        while self._waiting:  # one by one: another thread may append
            pending.append(self._waiting.popleft())
        for outgoing in pending:
            if isinstance(outgoing, Outgoing):
                outgoing.end(error)
        self._session.condition.notify()

    def fail(self, error: MessagingError, *, with_session: bool = False) -> None:
        """See `AddressedLink`."""
        super().fail(error, with_session=with_session)
        pending = [*self.unsettled.values(), *self._waiting]
        if pending and self._transactions is not None:
            self._transactions.on_failed(error)
        if self._late is None and any(not isinstance(item, Outgoing) or item.answer is None for item in pending):
            self._late = error
        self.drop(error)

    def lose(self) -> None:
        """See `AddressedLink`. What was not answered is sent again, in order, before what waits."""
        super().lose()
        self._waiting.extendleft(reversed(self.unsettled.values()))
        self.unsettled.clear()

    def _has_room(self) -> bool:
        self.check_all()
        if isinstance(self.capacity, Constant):
            return True
        if self.capacity <= 0:
            raise InsufficientCapacity(text=f"capacity of the sender to {self.address.name!r} is {self.capacity}")
        return self.count_unsettled() < self.capacity

    def closed_error(self) -> MessagingError:
        """See `AddressedLink`."""
        if self._session.closed:
            return Detached(text=f"sender of {self.address.name!r} is closed with its session")
        return super().closed_error()

    def _is_settled(self) -> bool:
        self.check_all()
        return not self._waiting and not self.unsettled

    # LinkOwner

    def unsettled_outcomes(self) -> Mapping[int, Outcome | None]:
        """See `AddressedLink`."""
        sent = [item.delivery_tag for item in list(self._waiting) if isinstance(item, Outgoing)]
        return dict.fromkeys(tag for tag in sent if tag is not None)

    def discard_unknown(self) -> int:
        """See `AddressedLink`."""
        return len(self.unsettled_outcomes())

    def _on_granted(self, link: Link) -> None:
        """See `AddressedLink`."""
        if link.resumption is not None:
            drop_accepted(self._waiting, link.resumption.unsettled)
        link.set_quiet(True)  # until a message waits for credit
        self._settled = self._settled or link.presettled
        self._is_simple = not self._settled and not self.resumable and self._transactions is None
        self.encoder.lists_as_data = self._network is not None and not passes_lists(self._network.peer.product)
        self.encoder.takes_decimals = self._network is None or takes_decimals(self._network.peer.product)
        self.on_credit()

    def on_credit(self) -> None:
        """See `LinkOwner`."""
        link, network, transactions = self._link, self._network, self._transactions
        if self.waits_for_credit:
            self.waits_for_credit = False
            if link is not None:
                link.set_quiet(True)
        if not self._waiting or link is None or network is None or not self.attached:
            return
        transaction = None if transactions is None else transactions.current
        if transactions is not None and transaction is None:
            return
        waiting = self._waiting
        sent = False
        while waiting:
            if len(waiting) == 1:
                wanted, count = 1, self._send_one(network, link, waiting[0], transaction)
            else:
                wanted, count = self._send_several(network, link, transaction)
            sent = sent or count > 0
            if count < wanted:
                self.waits_for_credit = True
                link.set_quiet(False)
                break
        if sent:
            self._note_sent()

    def _note_sent(self) -> None:
        """Messages were sent: the transaction has work, and those that need no answer are done with."""
        if self._transactions is not None:
            self._transactions.on_sent()
        if self._settled:
            self._session.condition.notify_answered()

    def _send_several(self, network: NetworkConnection, link: Link, transaction: bytes | None) -> tuple[int, int]:
        """Send the first messages that wait together, or the first if it needs more; returns how many were to be sent,
        and how many were."""
        waiting = self._waiting
        # By their places, since other threads append meanwhile, which would end an iteration with an error.
        batch = [*map(waiting.__getitem__, range(min(len(waiting), _BATCH)))]
        messages = [item.data if isinstance(item, Outgoing) else item for item in batch]
        if self.resumable or not are_plain(messages, link.max_message):
            return 1, self._send_one(network, link, batch[0], transaction)
        return len(messages), self._send_batch(network, link, messages, transaction)

    def _send_batch(
        self, network: NetworkConnection, link: Link, messages: list[bytes], transaction: bytes | None
    ) -> int:
        """Send the first messages that wait, as long as there is room; returns how many."""
        taken: Iterator[bytes | Outgoing] = iter(self._waiting.popleft, None)
        tags = network.transport.send_all(link, messages, settled=self._settled, transaction=transaction)
        if not self._settled:
            # Without any bytecode in between: another thread that asks how many are unsettled counts each one once.
            deque(map(self.unsettled.__setitem__, tags, taken), maxlen=0)
        else:
            for tag, item in zip(tags, taken, strict=False):
                self._on_sent(tag, item)
        return len(tags)

    def _send_one(
        self, network: NetworkConnection, link: Link, item: bytes | Outgoing, transaction: bytes | None
    ) -> int:
        """Send the first message that waits, if there is room, or refuse it; returns 1 then."""
        data = item.data if isinstance(item, Outgoing) else item
        if type(data) is bytes and not (self.resumable or (link.max_message and len(data) > link.max_message)):
            tag = network.transport.send_one(link, data, settled=self._settled, transaction=transaction)
            if tag is None:
                return 0
            self._on_sent(tag, self._waiting.popleft())
            return 1
        outgoing = item if isinstance(item, Outgoing) else Outgoing(item, None)
        if link.max_message and len(data) > link.max_message:
            self._waiting.popleft()
            reason = f"it has {len(data)} bytes, the broker takes {link.max_message}"
            self._on_refused(outgoing, SendError(text=f"message to {self.address.name!r} is too large: {reason}"))
            return 1
        if not network.transport.can_send(link):
            return 0
        if self.resumable and outgoing.delivery_tag is None:
            outgoing.delivery_tag = next(self._tags)
        tag = network.engine.deliveries.send(
            link,
            data,
            settled=self._settled,
            transaction=transaction,
            delivery_tag=outgoing.delivery_tag,
            message_format=data.message_format if isinstance(data, FormattedData) else 0,
        )
        self._on_sent(tag, self._waiting.popleft())
        network.transport.flush_soon()
        return 1

    def _on_sent(self, delivery_tag: int, item: bytes | Outgoing) -> None:
        if not self._settled:
            self.unsettled[delivery_tag] = item
        elif isinstance(item, Outgoing):
            item.end(None)

    def on_outcome(self, settled: OutcomeReceived) -> None:
        """See `LinkOwner`."""
        item = self.unsettled.pop(settled.delivery_tag, None)
        if item is None:
            return
        outgoing = item if isinstance(item, Outgoing) else Outgoing(item, None)
        if settled.outcome is Outcome.ACCEPTED:
            outgoing.end(None)
        else:
            error = send_error(self.address.name, settled.outcome.value, settled.condition, settled.description)
            self._on_refused(outgoing, error)
        self._session.condition.notify_answered()

    def on_accepted(self, batch: AcceptedBatch) -> None:
        """See `LinkOwner`."""
        for item in map(self.unsettled.pop, batch.delivery_tags, itertools.repeat(None)):
            if type(item) is Outgoing:
                self._accepted.append(item)
        if self._network is None:
            self._wake()
        elif self._accepted or self._session.condition.awaits_answers():
            self._network.transport.call_last(self._wake)

    def _wake(self) -> None:
        """Wake up callers that wait for the acceptance of messages, or for capacity."""
        accepted, self._accepted = self._accepted, []
        for outgoing in accepted:
            outgoing.end(None)
        self._session.condition.notify_answered()

    def _on_refused(self, outgoing: Outgoing, error: MessagingError) -> None:
        if outgoing.answer is None or outgoing.answer.done():  # nobody waits, or no longer
            self._late = error
        self._session.report(self, error)
        outgoing.end(error)
        if self._transactions is not None:
            self._transactions.on_failed(error)
        self._session.condition.notify()
