"""Incoming links to exchanges that evaluate queries: the broker does other things meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.bindings import Binding
from qmf.broker.nodes.message import Message, read_message
from qmf.broker.nodes.xml_exchange import XmlExchange
from qmf.broker.operations.publisher import Publisher
from qmf.broker.protocols.amqp.incoming import IncomingLink
from qmf.bus.engine.link import Link
from qmf.bus.transport import AmqpTransport
from qmf.errors import DecodeError

#: Messages that a client may have in flight per link: each waits for the queries of those before it.
CREDIT_WINDOW = 50


class QueryingIncomingLink(IncomingLink):
    """A link on which a client sends to an XML exchange. Its messages are published one after the other, in order,
    each when its queries were evaluated. What has come before the link ended is published as well.
    """

    def __init__(
        self, transport: AmqpTransport, link: Link, publisher: Publisher, exchange: XmlExchange, *, origin: ClientInfo
    ) -> None:
        """Args as of `IncomingLink`; `exchange` is its node."""
        super().__init__(transport, link, publisher, exchange, origin=origin, window=CREDIT_WINDOW)
        self._exchange = exchange
        #: Delivery tag, data and format of what is not published yet.
        self._waiting: deque[tuple[int | None, bytes, int]] = deque()
        self._asking = False

    def on_deliveries(self, deliveries: Iterable[tuple[int | None, bytes]], message_format: int = 0) -> None:
        self._waiting.extend((delivery_tag, data, message_format) for delivery_tag, data in deliveries)
        if not self._asking:
            self._go_on()

    def _go_on(self) -> None:
        while self._waiting:
            message = self._first()
            if message is not None and self._exchange.ask(message, self._on_answer):
                self._asking = True
                return
            self._publish_first(())

    def _first(self) -> Message | None:
        """The message that is published next, if it can be read."""
        _, data, message_format = self._waiting[0]
        try:
            return read_message(data, self._registry.clock(), message_format)
        except DecodeError:
            return None  # which the sender learns when it is published

    def _on_answer(self, matching: Collection[Binding]) -> None:
        self._asking = False
        self._publish_first(matching)
        self._go_on()

    def _publish_first(self, matching: Collection[Binding]) -> None:
        delivery_tag, data, message_format = self._waiting.popleft()
        with self._exchange.decide(matching):
            super().on_deliveries([(delivery_tag, data)], message_format)
