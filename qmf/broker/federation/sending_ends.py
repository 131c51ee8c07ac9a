"""This broker's end of a link that sends: to another broker, messages that leave with one more id in their trace."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.broker.federation.duplicate_ids import DuplicateIds
from qmf.broker.federation.tracing import LinkTrace
from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.protocols.amqp.tagged import TaggedOutgoingLink
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome
from qmf.bus.transport import AmqpTransport
from qmf.errors import DecodeError


@attrs.frozen
class SendingTerms:
    """How a link sends on one connection.

    Attributes:
        transport, link: of the connection; the link is granted, and the other broker settles its messages.
        peer: which broker that is: nobody else knows what it has.
        lasting: delivery tags are the same after a restart of this broker.
        trace: decides which messages are sent.
        ids: gives them ids by which the other broker knows one that comes again; None if it looks for none.
    """

    transport: AmqpTransport
    link: Link
    peer: str
    lasting: bool
    trace: LinkTrace
    ids: DuplicateIds | None

    @property
    def comes_once(self) -> bool:
        """The other broker knows a message that is sent again, on this connection or on a later one."""
        return self.link.resumption is not None or self.ids is not None


class SendingEnd(TaggedOutgoingLink, abc.ABC):
    """This broker's end of a link to another broker, whose messages may be kept from one connection to the next.

    Attributes:
        peer: see `SendingTerms`; of the connection that it is on, or was on last.
        stopped: nothing more is sent on this connection.
    """

    def __init__(self, terms: SendingTerms, queue: Queue, selector: Callable[[Message], bool] | None) -> None:
        super().__init__(
            terms.transport,
            terms.link,
            queue,
            selector,
            lasting=terms.lasting,
            resumable=terms.comes_once,
        )
        self.peer = terms.peer
        self.stopped = False
        self._trace = terms.trace
        self._ids = terms.ids
        self._loop = asyncio.get_running_loop()
        self._unsent: list[tuple[Entry, str]] = []

    @property
    def unsettled(self) -> Mapping[int, Entry]:
        """What was sent and has no outcome, by delivery tag."""
        return self._unsettled

    def unsettled_tags(self) -> Mapping[int, Outcome | None]:
        """What was sent and has no outcome, as it is listed for the other broker."""
        return dict.fromkeys(self._unsettled)

    def resume_on(self, terms: SendingTerms) -> None:
        """Send on the link of another connection, after what the other broker has on the last one."""
        assert terms.link.resumption is not None
        self.peer, self._trace, self._ids = terms.peer, terms.trace, terms.ids
        self.stopped = False
        self.transfers = 0  # those of earlier connections are counted
        self.reattach(terms.transport, terms.link)
        self.resume((), terms.link.resumption.unsettled)

    def stop(self) -> None:
        """Send nothing more on this connection; what was sent gets its outcome."""
        self.stopped = True
        self._delivery.remove_consumer(self)

    def forget(self, entry: Entry) -> None:
        """Somebody else decides on a message, which stays acquired."""
        self._unsettled = {tag: sent for tag, sent in self._unsettled.items() if sent is not entry}

    def take_all(self) -> Sequence[Entry]:
        """Somebody else decides on all that was sent and has no outcome; it stays acquired."""
        entries = [*self._unsettled.values()]
        self._unsettled = {}
        return entries

    def ready(self) -> bool:
        return not self.stopped and super().ready()

    def room(self) -> int:
        return 0 if self.stopped else super().room()

    def deliver(self, entry: Entry) -> None:
        try:
            data = self._prepare(entry.message)
        except DecodeError as error:
            self._keep_unsent(entry, str(error))
            return
        self._send(entry, data if self._ids is None else self._ids.add(entry, data))

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        return self._deliver_singly(entries)

    def on_detached(self) -> None:
        self._report_unsent()
        super().on_detached()

    @abc.abstractmethod
    def _prepare(self, message: Message) -> bytes:
        """What is sent of a message.

        Raises:
            DecodeError: it is not sent; says why.
        """

    @abc.abstractmethod
    def _on_unsent(self, unsent: Sequence[tuple[Entry, str]]) -> None:
        """Messages cannot be sent, for these reasons; they stay acquired."""

    def _keep_unsent(self, entry: Entry, reason: str) -> None:
        """A message is not sent: the queue takes it for delivered until it may be changed again."""
        if not self._unsent:
            self._loop.call_soon(self._report_unsent)
        self._unsent.append((entry, reason))

    def _report_unsent(self) -> None:
        unsent, self._unsent = self._unsent, []
        if unsent:
            self._on_unsent(unsent)

    def _send_held(self) -> None:
        if not self.stopped:
            super()._send_held()
