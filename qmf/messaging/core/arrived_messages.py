"""The messages of a receiver from their arrival until they are fetched."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.link import Link
from qmf.messaging.content_types import ContentReader
from qmf.messaging.core.acknowledgement import Acknowledgements
from qmf.messaging.core.credit_window import CreditWindow
from qmf.messaging.core.deliveries import DeliveryReceiver, ReceivedDelivery, delivery_maker
from qmf.messaging.exceptions import DecodeError
from qmf.messaging.link_codec import MessageDecoder
from qmf.messaging.message import Message


class ArrivedMessages:
    """The messages of one receiver. They are added on the loop's thread, and taken on any.

    Attributes:
        messages: these, in the order of their arrival; to be looked at.
    """

    __slots__ = ("_acknowledgements", "_decoder", "_make_deliveries", "_window", "messages")

    def __init__(
        self,
        window: CreditWindow,
        acknowledgements: Acknowledgements,
        kind: type[Message],
        reader: ContentReader | None,
    ) -> None:
        """There is no message yet.

        Args:
            window: of the receiver.
            acknowledgements: of its session.
            kind: the class of its messages.
            reader: applies content types to them.
        """
        self._window = window
        self._acknowledgements = acknowledgements
        self.messages: deque[ReceivedDelivery] = deque()
        self._make_deliveries = delivery_maker()
        self._decoder = MessageDecoder(kind, reader)

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[ReceivedDelivery]:
        return iter(self.messages)

    @property
    def first(self) -> ReceivedDelivery:
        """The first message; there has to be one."""
        return self.messages[0]

    def append(self, delivery: ReceivedDelivery) -> None:
        """Add a message."""
        self.messages.append(delivery)

    def add(
        self,
        receiver: DeliveryReceiver,
        network: NetworkConnection,
        link: Link,
        messages: list[tuple[int | None, bytes]],
    ) -> None:
        """Add messages that came together; see `DeliveryMaker`."""
        self.messages += self._make_deliveries(receiver, network, link, messages)

    def take_ready(self) -> Any:
        """The first message, decoded, which counts as fetched; None if there is none, or more is to be done with it:
        credit is due after it, or it is not like others of the link.
        """
        messages, window, decoder = self.messages, self._window, self._decoder
        if decoder.take_apart is None or len(messages) + window.credit <= window.low + 1:
            return None
        try:
            delivery = messages.popleft()
        except IndexError:  # another thread has fetched it
            return None
        message = decoder.take_apart(decoder.kind, decoder.known, delivery.data, delivery)
        if message is None:
            messages.appendleft(delivery)
            return None
        delivery.data = b""  # the program has it
        self._acknowledgements.on_fetched(delivery)
        return message

    def pop(self) -> ReceivedDelivery | None:
        """Remove the first message; None if there is none."""
        try:
            return self.messages.popleft()
        except IndexError:
            return None

    def pop_last(self) -> ReceivedDelivery | None:
        """Remove the last message; None if there is none."""
        try:
            return self.messages.pop()
        except IndexError:
            return None

    def put_back(self, delivery: ReceivedDelivery) -> None:
        """Undo `pop`."""
        self.messages.appendleft(delivery)

    def decode(self, delivery: ReceivedDelivery) -> Any:
        """The message of a delivery, which counts as fetched.

        Raises:
            DecodeError: it cannot be decoded. It has to be rejected, but for one whose content alone is concerned: that
                has the message, which counts as fetched.
        """
        try:
            message = self._decoder.decode(delivery.data, delivery)
        except DecodeError as error:
            if error.message is not None:
                delivery.data = b""
                self._acknowledgements.on_fetched(delivery, decoded=False)
            raise
        delivery.data = b""  # the program has it
        self._acknowledgements.on_fetched(delivery)
        return message

    def take_all(self) -> deque[ReceivedDelivery]:
        """Remove all messages."""
        taken, self.messages = self.messages, deque()
        return taken

    def clear(self) -> None:
        """Forget all messages."""
        self.messages.clear()
