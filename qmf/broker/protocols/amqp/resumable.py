"""Links that can be resumed on another connection: nothing sent on them is lost, and nothing is delivered twice.

What both sides know of the unsettled deliveries is compared when a link is resumed (AMQP 1.0, part 2.6.13). Of a link
on which the client sends, the broker remembers which messages it has accepted, until the client has settled them: those
are not sent again. Of a link on which the client receives, it keeps the messages that the client has not settled: those
that the client has received stay delivered to it, the others return to the queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.link_memory import LinkMemories, LinkMemory
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.selectors import Selector
from qmf.broker.operations.publisher import Publisher
from qmf.broker.protocols.amqp.incoming import CREDIT_WINDOW
from qmf.broker.protocols.amqp.remembering import AmqpMemory, RememberingIncomingLink
from qmf.broker.protocols.amqp.tagged import TaggedOutgoingLink, window_of
from qmf.bus.engine.events import OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome, Terminus
from qmf.bus.transport import AmqpTransport

#: What one side lists: delivery tags with outcomes, or None for a delivery that has none.
Unsettled = Mapping[int, Outcome | None]


@attrs.frozen
class LinkKey:
    """Identifies a link that can be resumed, among those of all clients.

    Attributes:
        user: who may resume it; empty for everybody.
        is_sender: True for a link on which the broker sends.
        id: chosen by the client.
    """

    user: str
    is_sender: bool
    id: str


class ResumableIncomingLink(RememberingIncomingLink):
    """A link of a client that can be resumed.

    Attributes:
        granted: the target, as the client gets it; its time-out is that of the suspended link.
        attempt: number of the client's last attach.
        lasting: what was accepted is remembered over a restart, and when the link was suspended for too long.
    """

    def __init__(
        self,
        transport: AmqpTransport,
        link: Link,
        publisher: Publisher,
        node: Node | None,
        *,
        origin: ClientInfo,
        key: LinkKey,
        granted: Terminus,
        memories: LinkMemories,
    ) -> None:
        self.key = key
        self.granted = granted
        self.attempt = _attempt(link)
        self.lasting = is_lasting(link)
        self._memories = memories
        self.memory = cast(AmqpMemory, memories.find(self._memory_name)) if self.lasting else LinkMemory()
        window = window_of(transport, CREDIT_WINDOW)
        super().__init__(transport, link, publisher, node, origin=origin, window=window)
        self._singly = link.joined = True

    def reconcile(self, listed: Unsettled) -> Unsettled:
        """Compare with what the client lists, unless the link is lasting: a client may have been restarted.

        Returns:
            those of its unsettled messages that were accepted, and those that are on the way to the disk.
        """
        memory = self.memory
        if not self.lasting:
            memory.keep(listed.keys())
        return {**dict.fromkeys(memory.storing), **dict.fromkeys(memory.accepted, Outcome.ACCEPTED)}

    def reattach(self, transport: AmqpTransport, link: Link, publisher: Publisher, origin: ClientInfo) -> None:
        """Receive on another link from now on, with the rights of its client."""
        self._transport = transport
        self._publisher = publisher
        self._origin = origin
        self.link = link
        link.joined = True
        self.attempt = _attempt(link)

    def forget(self) -> None:
        """The client has closed the link: it is not resumed any more."""
        if self.lasting:
            self._memories.remove(self._memory_name)

    @property
    def _memory_name(self) -> str:
        return f"{self.key.user} {self.key.id}"


class ResumableOutgoingLink(TaggedOutgoingLink):
    """A link of a client that can be resumed."""

    def __init__(
        self,
        transport: AmqpTransport,
        link: Link,
        queue: Queue,
        selector: Selector | None,
        *,
        key: LinkKey,
        granted: Terminus,
    ) -> None:
        super().__init__(transport, link, queue, selector, lasting=is_lasting(link))
        self.key = key
        self.granted = granted
        self.attempt = _attempt(link)

    @property
    def node(self) -> Node | None:
        """The queue."""
        return self.queue

    def reconcile(self, listed: Unsettled) -> Unsettled:
        """Compare with what the client lists: its outcomes take effect, what it does not know returns to the queue.

        On a lasting link the client settles what it has accepted once more, and learns when that is on the disk.

        Returns:
            the deliveries that remain.
        """
        if not self._lasting:
            self._apply(listed)
            listed = {tag: outcome for tag, outcome in listed.items() if outcome is None}
        return dict.fromkeys(self.resume(listed))

    def _apply(self, listed: Unsettled) -> None:
        for tag, outcome in listed.items():
            if outcome in (None, Outcome.RELEASED) or (entry := self._unsettled.pop(tag, None)) is None:
                continue
            if outcome is Outcome.MODIFIED:
                self.queue.delivery.release([entry], failed=True)
            else:
                self.settle(entry, OutcomeReceived(self.link, tag, outcome))

    def reattach(self, transport: AmqpTransport, link: Link) -> None:
        super().reattach(transport, link)
        self.attempt = _attempt(link)


ResumableLink = ResumableIncomingLink | ResumableOutgoingLink


def is_lasting(link: Link) -> bool:
    """The client asks for a link that outlives it and this broker."""
    return link.resumption is not None and link.resumption.lasting


def _attempt(link: Link) -> int:
    assert link.resumption is not None
    return link.resumption.attempt
