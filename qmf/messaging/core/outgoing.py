"""Messages on their way to the broker, and what a sender needs of others for them."""

from __future__ import annotations

import asyncio
from typing import Protocol

from qmf.messaging.exceptions import MessagingError, Timeout


class SenderTransactions(Protocol):
    """What a sender of a transactional session needs of its transactions."""

    @property
    def current(self) -> bytes | None:
        """The id of the current transaction; None while it is being declared or ended: nothing may be sent then."""

    def on_sent(self) -> None:
        """Something was sent in the current transaction."""

    def on_failed(self, error: MessagingError) -> None:
        """A message of the current transaction was not accepted."""


class Answer(Protocol):
    """A future, of asyncio or of `concurrent.futures`."""

    def done(self) -> bool:
        """True if nobody waits any more."""

    def set_result(self, result: None) -> object:
        """The message was accepted."""

    def set_exception(self, exception: BaseException) -> object:
        """The message was not accepted."""


class Outgoing:
    """A message on its way that is more than its bytes; most are `bytes` alone.

    Attributes:
        answer: None if nobody waits for its outcome.
        delivery_tag: with exactly-once, once it was sent; the same whenever it is sent again.
    """

    __slots__ = ("answer", "data", "delivery_tag")

    def __init__(self, data: bytes, answer: Answer | None) -> None:
        self.data = data
        self.answer = answer
        self.delivery_tag: int | None = None


def are_plain(messages: list[bytes], limit: int) -> bool:
    """Whether none has a format, or is larger than the limit, where there is one."""
    return set(map(type, messages)) == {bytes} and not (limit and max(map(len, messages)) > limit)


async def wait_for_answer(
    answer: asyncio.Future[None], name: str, timeout: float | None, deadline: float | None
) -> None:
    """Wait for the acceptance of a message.

    Args:
        answer: done with it.
        name: of the node.
        timeout, deadline: seconds that the program has given, and until when these are, in the loop's time; or None.

    Raises:
        MessagingError: as of `Sender.send`.
    """
    if deadline is None:
        await answer
        return
    try:
        async with asyncio.timeout_at(deadline):
            await answer
    except TimeoutError:
        raise Timeout(f"no answer to a message to {name!r} within {timeout:g} s") from None
