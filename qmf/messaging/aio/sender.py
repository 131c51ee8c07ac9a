"""Senders for asyncio."""

from __future__ import annotations

import asyncio
from typing import Generic

from qmf._closable import AsyncClosable
from qmf.messaging.bases import SenderBase
from qmf.messaging.core.outgoing import wait_for_answer
from qmf.messaging.core.waiting import deadline_of
from qmf.messaging.message import Message
from qmf.messaging.typing import ContentT


class Sender(SenderBase, AsyncClosable, Generic[ContentT]):
    """Sends messages to a node. Made by `Session.sender`."""

    __slots__ = ()

    async def send(self, object: Message[ContentT] | ContentT, sync: bool = True, timeout: float | None = None) -> None:
        """Send a message.

        Args:
            object: a `Message`, or the content of one.
            sync: wait until the broker has accepted the message.
            timeout: seconds to wait for capacity and, with `sync`, for acceptance; None for no limit.

        Raises:
            EncodeError: the message cannot be encoded.
            SendError, TargetCapacityExceeded, UnauthorizedAccess: the broker did not accept this message or, without
                `sync`, an earlier one.
            InsufficientCapacity: no capacity in time, or a capacity of 0: the message is not sent.
            Timeout: no answer in time: the message may have been sent.
            MessagingError: the sender, its session or its connection failed.

        Cancelling while waiting for capacity sends nothing; while waiting for acceptance, it leaves the outcome open.
        """
        link = self._core
        data = link.encoder.encode(object if isinstance(object, Message) else Message(object))
        answer = asyncio.get_running_loop().create_future() if sync else None
        if not link.send_now(data, answer):
            if not link.post(data, answer):
                await link.send_encoded(data, sync, timeout)
                return
            link.start(answer)
        if answer is not None and timeout is None:
            await answer
        elif answer is not None:
            await wait_for_answer(answer, link.address.name, timeout, deadline_of(timeout))

    async def sync(self, timeout: float | None = None) -> None:
        """Wait until the broker has answered for everything that was sent.

        Raises:
            Timeout: not within `timeout` seconds.
            MessagingError: as of `send`.
        """
        await self._core.sync(timeout)

    async def close(self, timeout: float | None = None) -> None:
        """Wait until everything that was sent is answered, then close the link.

        Raises:
            Timeout: not within `timeout` seconds or, without `timeout`, the broker no longer answers; the link is
                closed nevertheless, without the messages that wait.
            MessagingError: the error of an earlier message that no call has raised; the link is closed nevertheless.
        """
        await self._core.close_orderly(timeout)
