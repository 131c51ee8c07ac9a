"""Receivers, as programs hold them."""

from __future__ import annotations

from qmf.messaging.addresses import Address
from qmf.messaging.aio.incoming_link import IncomingLink
from qmf.messaging.attributes import FixedAttributes
from qmf.messaging.constants import Constant
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.message import Message


class Receiver(FixedAttributes):
    """Receives messages from a node. Made by `Session.receiver`."""

    __slots__ = ("_link",)

    def __init__(self, link: IncomingLink) -> None:
        self._link = link
        link.endpoint = self

    def __repr__(self) -> str:
        return repr(self._link)

    @property
    def source(self) -> Address:
        """The address; of a temporary node the one that the broker gave it."""
        return self._link.node

    @property
    def capacity(self) -> int | Constant:
        """Messages that the broker may send before they are fetched; 0: only while a fetch waits for one.

        When it is lowered, messages above it that were not fetched return to the node.
        """
        return self._link.window.capacity

    @capacity.setter
    def capacity(self, value: int | Constant) -> None:
        self._link.window.resize(value)
        self._link.adjust()

    @property
    def threshold(self) -> float:
        """Part of the capacity: when so many messages are left to come or to be fetched, the broker may send more.

        From 0 to 1, else there is a `ValueError`.
        """
        return self._link.window.threshold

    @threshold.setter
    def threshold(self, value: float) -> None:
        self._link.window.threshold = value
        self._link.grant()

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._link.closed

    def check_error(self) -> None:
        """Raise why the receiver cannot be used, if so."""
        self._link.check()

    def get_error(self) -> MessagingError | None:
        """Why the receiver failed, or None."""
        return self._link.error

    def available(self) -> int:
        """Number of messages that have arrived and can be fetched without waiting."""
        return self._link.available()

    def unsettled(self) -> int:
        """Number of messages that were fetched and are not acknowledged."""
        return self._link.unsettled()

    async def fetch(self, timeout: float | None = None) -> Message:
        """The next message.

        Args:
            timeout: seconds to wait for one; None for no limit; with 0, a message that the broker has is still fetched.

        Raises:
            Empty: there was none.
            DecodeError: a message cannot be decoded; it is rejected, and the next call fetches the next one.
            MessagingError: the receiver, its session or its connection failed, and no message is left.

        Cancelling loses no message: one that arrives is kept for the next call.
        """
        if (message := self._link.take()) is not None:
            return message
        return await self._link.fetch(timeout)

    async def close(self, timeout: float | None = None) -> None:
        """Close the link. Messages that were not fetched return to the node. A durable subscription ends.

        Raises:
            Timeout: the broker did not answer in time: with exactly-once, it may deliver acknowledged messages again;
                else, the address asks for the node to be deleted, and may not be. The link is closed nevertheless.
            MessagingError: the broker did not delete the node.
        """
        if not self.closed:
            await self._link.close_orderly(timeout)


def link_of(receiver: Receiver) -> IncomingLink:
    """The link of a receiver, for its synchronous form."""
    return receiver._link
