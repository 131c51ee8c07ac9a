"""Senders, as programs hold them."""

from __future__ import annotations

import asyncio
from typing import Any

from qmf.messaging.addresses import Address
from qmf.messaging.aio.outgoing_link import OutgoingLink
from qmf.messaging.aio.waiting import deadline_of
from qmf.messaging.attributes import FixedAttributes
from qmf.messaging.constants import UNLIMITED, Constant
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.message import Message


class Sender(FixedAttributes):
    """Sends messages to a node. Made by `Session.sender`."""

    __slots__ = ("_link",)

    def __init__(self, link: OutgoingLink) -> None:
        self._link = link
        link.endpoint = self

    def __repr__(self) -> str:
        return repr(self._link)

    @property
    def target(self) -> Address:
        """The address; of a temporary node the one that the broker gave it."""
        return self._link.node

    @property
    def capacity(self) -> int | Constant:
        """Messages that may be sent without an answer from the broker; an int, or `UNLIMITED`."""
        return self._link.capacity

    @capacity.setter
    def capacity(self, value: int | Constant) -> None:
        self._link.capacity = value

    @property
    def durable(self) -> bool | None:
        """Whether messages that do not say so themselves are durable; None as False."""
        return self._link.encoder.durable

    @durable.setter
    def durable(self, value: bool | None) -> None:
        self._link.encoder.durable = value

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return self._link.closed

    def check_error(self) -> None:
        """Raise why the sender cannot be used, if so."""
        self._link.check()

    def get_error(self) -> MessagingError | None:
        """Why the sender failed, or None."""
        return self._link.error

    def unsettled(self) -> int:
        """Number of messages that the broker has not answered yet."""
        return self._link.unsettled()

    def available(self) -> int | Constant:
        """Number of messages that can be sent before the capacity is exhausted."""
        capacity = self._link.capacity
        return UNLIMITED if isinstance(capacity, Constant) else max(0, capacity - self._link.unsettled())

    async def send(self, object: Any, sync: bool = True, timeout: float | None = None) -> None:
        """Send a message.

        Args:
            object: a `Message`, or the content of one: str, bytes, dict, list.
            sync: wait until the broker has accepted the message.
            timeout: seconds to wait for capacity and, with `sync`, for acceptance; None for no limit.

        Raises:
            EncodeError: the message cannot be encoded.
            SendError, TargetCapacityExceeded, UnauthorizedAccess: the broker did not accept this message or, without
                `sync`, an earlier one.
            Timeout: no capacity or no answer in time. Without capacity the message is not sent, without an
                answer it may be.
            MessagingError: the sender, its session or its connection failed.

        Cancelling while waiting for capacity sends nothing; while waiting for acceptance, it leaves the outcome open.
        """
        link = self._link
        data = link.encoder.encode(object if isinstance(object, Message) else Message(object))
        answer = asyncio.get_running_loop().create_future() if sync else None
        if not link.post(data, answer):
            await link.send_encoded(data, sync, timeout)
            return
        link.start(answer)
        if answer is not None:
            await link.wait_for_answer(answer, timeout, deadline_of(timeout))

    async def sync(self, timeout: float | None = None) -> None:
        """Wait until the broker has answered for everything that was sent.

        Raises:
            Timeout: not within `timeout` seconds.
            MessagingError: as of `send`.
        """
        await self._link.sync(timeout)

    async def close(self, timeout: float | None = None) -> None:
        """Wait until everything that was sent is answered, then close the link.

        Raises:
            Timeout: not within `timeout` seconds or, without `timeout`, the broker no longer answers; the link is
                closed nevertheless, without the messages that wait.
            MessagingError: the error of an earlier message that no call has raised; the link is closed nevertheless.
        """
        if not self.closed:
            await self._link.close_orderly(timeout)


def link_of(sender: Sender) -> OutgoingLink:
    """The link of a sender, for its synchronous form."""
    return sender._link
