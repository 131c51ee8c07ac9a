"""Messages that another broker sends again on a later connection, though they were accepted: known by their ids.

For brokers that don't resume links. What was accepted just before a connection was lost, and whose acceptance the other
broker did not receive, comes again then. Messages without an id cannot be told apart, and may come twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from qmf.broker.nodes.message import read_message
from qmf.broker.protocols.amqp.remembering import AmqpMemory, RememberingIncomingLink
from qmf.bus.engine.events import Delivery
from qmf.errors import DecodeError

#: Ids that are remembered of a link: more than can be accepted without the other broker receiving it.
REMEMBERED = 2_000


class RepeatedMessages:
    """Knows the messages of a link that were accepted on earlier connections."""

    def __init__(self, memory: AmqpMemory) -> None:
        """Begin for a new connection.

        Args:
            memory: of the link; it has the messages by numbers that stand for their ids.
        """
        self._memory = memory
        self._before = frozenset(memory.accepted)
        #: By delivery tag, of those that are not settled yet.
        self._numbers: dict[int, int] = {}

    def has(self, tag: int | None, data: bytes, message_format: int = 0) -> bool:
        """A message came: True if it was accepted on an earlier connection."""
        number = _number_of(data, message_format)
        if number is None or tag is None:
            return False
        if number in self._before:
            return True
        self._numbers[tag] = number
        return False

    def begin(self, published: Mapping[int | None, tuple[RememberingIncomingLink, Delivery]]) -> None:
        """Messages were published, and their changes are in the current unit of the store.

        Args:
            published: by delivery tag, with who is to settle each.
        """
        numbers = {tag: self._numbers[tag] for tag in published if tag in self._numbers}
        self._memory.begin({number: published[tag] for tag, number in numbers.items()})

    def end(self, tag: int | None, *, accepted: bool) -> None:
        """A message has its outcome."""
        number = None if tag is None else self._numbers.pop(tag, None)
        if number is None:
            return
        if not accepted:
            self._memory.refuse(number)
        elif number not in self._memory:
            self._memory.accept([number])
            self._memory.trim(REMEMBERED)


def _number_of(data: bytes, message_format: int) -> int | None:
    """What stands for the id of a message; None if it has none."""
    try:
        message = read_message(data, 0.0, message_format)
        id = None if message.opaque else message.fields.message_id
    except DecodeError:
        return None
    if id is None:
        return None
    text = f"{type(id).__name__} {id!r}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
