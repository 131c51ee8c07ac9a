"""Receivers for asyncio."""

from __future__ import annotations

from typing import Generic, Self

from qmf._closable import AsyncClosable
from qmf.messaging.aio.message import ReceivedMessage
from qmf.messaging.bases import ReceiverBase
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.typing import ContentT


class Receiver(ReceiverBase, AsyncClosable, Generic[ContentT]):
    """Receives messages from a node. Made by `Session.receiver`.

    ``async for message in receiver`` fetches one message after the other, without a limit of time. It ends when the
    program closes the receiver, its session or its connection; every other end raises its error, as `fetch` does, and
    the iteration can be begun again.
    """

    __slots__ = ()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ReceivedMessage[ContentT]:
        try:
            return await self.fetch()
        except MessagingError:
            if self._core.ended:
                raise StopAsyncIteration from None
            raise

    async def fetch(self, timeout: float | None = None) -> ReceivedMessage[ContentT]:
        """The next message.

        Args:
            timeout: seconds to wait for one; None for no limit; with 0, a message that the broker has is still fetched.

        Raises:
            Empty: there was none.
            DecodeError: a message cannot be decoded; it is rejected, and the next call fetches the next one. If only
                its content cannot, the error has the message, which waits for `accept`, `reject` and so on.
            MessagingError: the receiver, its session or its connection failed, and no message is left.

        Cancelling loses no message: one that arrives is kept for the next call.
        """
        message: ReceivedMessage[ContentT] | None = self._core.take()  # most often, and without another coroutine
        if message is None:
            message = await self._core.fetch(timeout)
            assert message is not None
        return message

    async def close(self, timeout: float | None = None) -> None:
        """Close the link. Messages that were not fetched return to the node. A durable subscription ends.

        Raises:
            Timeout: the broker did not answer in time: with exactly-once, it may deliver acknowledged messages again;
                else, the address asks for the node to be deleted, and may not be. The link is closed nevertheless.
            MessagingError: the broker did not delete the node.
        """
        await self._core.close_orderly(timeout)
