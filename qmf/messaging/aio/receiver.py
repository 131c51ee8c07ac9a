"""Receivers for asyncio."""

from __future__ import annotations

from qmf.messaging.bases import ReceiverBase
from qmf.messaging.message import Message


class Receiver(ReceiverBase):
    """Receives messages from a node. Made by `Session.receiver`."""

    __slots__ = ()

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
        if (message := self._core.take()) is not None:  # most often, and without another coroutine
            return message
        return await self._core.fetch(timeout)

    async def close(self, timeout: float | None = None) -> None:
        """Close the link. Messages that were not fetched return to the node. A durable subscription ends.

        Raises:
            Timeout: the broker did not answer in time: with exactly-once, it may deliver acknowledged messages again;
                else, the address asks for the node to be deleted, and may not be. The link is closed nevertheless.
            MessagingError: the broker did not delete the node.
        """
        await self._core.close_orderly(timeout)
