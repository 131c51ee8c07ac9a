"""Messages on their way to the broker, and what a sender needs of others for them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Protocol

from qmf.bus.engine.values import Outcome
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

    def end(self, error: MessagingError | None) -> None:
        """Report to the caller that waits, if one still does, that it was accepted, or why it was not."""
        if self.answer is None or self.answer.done():
            return
        if error is None:
            self.answer.set_result(None)
        else:
            self.answer.set_exception(error)


def are_plain(messages: list[bytes], limit: int) -> bool:
    """Whether none has a format, or is larger than the limit, where there is one."""
    return set(map(type, messages)) == {bytes} and not (limit and max(map(len, messages)) > limit)


def drop_accepted(waiting: deque[bytes | Outgoing], unsettled: Mapping[int, Outcome | None]) -> None:
    """Answer the first messages that wait and that the broker has accepted; the others are sent again, in order.

    Args:
        waiting: where those are removed.
        unsettled: what the broker knows, by delivery tag.
    """
    again: deque[Outgoing] = deque()
    while waiting and isinstance(outgoing := waiting[0], Outgoing) and (tag := outgoing.delivery_tag) is not None:
        waiting.popleft()
        if unsettled.get(tag) is Outcome.ACCEPTED:
            outgoing.end(None)
        else:
            again.append(outgoing)
    waiting.extendleft(reversed(again))


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
