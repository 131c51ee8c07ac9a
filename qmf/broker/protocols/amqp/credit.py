"""Credit for a sender to queues with flow control: what these can take, together with what other senders have."""

from __future__ import annotations

from collections.abc import Collection

from qmf.broker.nodes.exchanges import Exchange, FanoutExchange
from qmf.broker.nodes.flow_control import FlowControl
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.router import Node
from qmf.bus.engine.link import Link
from qmf.bus.transport import AmqpTransport


class SharedCredit:
    """The credit of one link on which a client sends; a `FlowSender`.

    Of some queues it is certain that they get all messages of the link: its node, and those that are bound to a fanout
    exchange. Of the queues of other exchanges, those count that have got messages since credit was given the last time.
    """

    @classmethod
    def of(cls, node: Node | None, transport: AmqpTransport, link: Link, window: int) -> SharedCredit | None:
        """For a link to a node, with its first credit; None where no queue has flow control yet.

        Args:
            node: that all messages go to; None for the anonymous relay.
            transport, link, window: as of the constructor.
        """
        if isinstance(node, Queue) and node.flow is not None:
            shared = cls(transport, link, window, queue=node.flow)
        elif isinstance(node, Exchange) and node.flows:
            shared = cls(transport, link, window, exchange=node)
        else:
            return None
        shared.give()
        return shared

    def __init__(
        self,
        transport: AmqpTransport,
        link: Link,
        window: int,
        *,
        queue: FlowControl | None = None,
        exchange: Exchange | None = None,
        granted: int = 0,
    ) -> None:
        """Make the credit of a link that was attached.

        Args:
            window: messages that the client may have in flight.
            queue: of the node, if that is a queue.
            exchange: the node, if that is an exchange.
            granted: messages for which it has credit, or that are not finished yet.
        """
        self._transport = transport
        self._link = link
        self._window = window
        self._queue = queue
        self._fanout = exchange if isinstance(exchange, FanoutExchange) else None
        self._in_flight = granted
        #: Credit is given again when the client has no more than this.
        self._low = 0
        #: Flow control of the queues that may get the first messages, of those that got some since credit was given,
        #: and of those whose senders this one is among.
        self._possible = set() if exchange is None else set(exchange.flows)
        self._met: set[FlowControl] = set()
        self._joined: set[FlowControl] = set()
        self._waiting = self._asked = False

    @property
    def certain(self) -> Collection[FlowControl]:
        """Flow control of the queues that get all messages."""
        if self._queue is not None:
            return (self._queue,)
        return () if self._fanout is None else tuple(self._fanout.flows)

    def credit(self) -> int:
        return self._transport.engine.links.credit(self._link)

    def take_credit(self, count: int) -> None:
        self._transport.engine.links.add_credit(self._link, -count)
        self._in_flight -= count
        self._transport.flush_soon()

    def on_stopped(self) -> None:
        if (credit := self.credit()) > 0:
            self.take_credit(credit)
        self.give()

    def meet(self, flows: Collection[FlowControl]) -> None:
        """Messages went to queues with flow control."""
        self._met.update(flows)
        self._correct()

    def finish(self, count: int) -> None:
        """Messages need no credit any more: give credit for the next ones."""
        self._in_flight -= count
        self._correct()
        if self.credit() <= self._low and not self._asked:
            # Messages that were read with these are still to be added to the queue.
            self._asked = True
            self._transport.call_before_write(self._give_last)
            self._transport.flush_soon()

    def _give_last(self) -> None:
        self._asked = False
        self.give()

    def _correct(self) -> None:
        """Messages may have been on their way when credit was taken back: no frame must tell a credit below 0."""
        if (credit := self.credit()) < 0:
            self.take_credit(credit)

    def give(self) -> None:
        """Give the credit that the client may have now. Where a queue is too long, that is done when it has drained."""
        if self._waiting or self._link.detached:
            return
        certain = self.certain
        for flow in certain:
            if flow not in self._joined:
                self._joined.add(flow)
                flow.join(self)
        stopped = next((flow for flow in (*certain, *self._met) if flow.stopped), None)
        if stopped is not None:
            self._waiting = True
            stopped.when_resumed(self._on_resumed)
            return
        credit = self._window - self._in_flight
        if credit <= 0:
            return  # many messages wait for the disk, or for the client
        for flow in certain:
            credit = flow.share(self, credit)
        for flow in (self._met | self._possible).difference(certain):
            credit = min(credit, max(1, flow.free()))
        self._met.clear()
        self._possible.clear()
        if credit > 0:
            self._transport.engine.links.add_credit(self._link, credit)
            self._in_flight += credit
            self._transport.flush_soon()
        self._low = self.credit() // 2

    def end(self) -> None:
        """The link has ended."""
        self._waiting = True
        for flow in self._joined:
            flow.leave(self)

    def _on_resumed(self) -> None:
        self._waiting = False
        self.give()
