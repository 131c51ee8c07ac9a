"""What is under way between the broker and a client with QoS 1 and 2, as part of the client's session; without I/O.

Of a message to the client::

    QoS 1:  SENT --puback--> DONE
    QoS 2:  SENT_ONCE --pubrec--> RELEASED --pubcomp--> DONE
                 `-- pubrec with an error --------------^

Of a message from the client with QoS 2 its packet id is kept from PUBLISH to PUBREL: what comes again with this id is
the same message.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from qmf._state_table import StateTable
from qmf.broker.protocols.mqtt.codec.values import protocol_error

T = TypeVar("T")

#: The largest packet id.
MAX_PACKET_ID = 0xFFFF


class SentMessageState(enum.Enum):
    """State of a message that is under way to a client."""

    SENT = "sent with QoS 1"
    SENT_ONCE = "sent with QoS 2"
    RELEASED = "released"
    DONE = "done"


class SentMessageTrigger(enum.Enum):
    """What the client answers."""

    PUBACK = "PUBACK"
    PUBREC = "PUBREC"
    PUBREC_ERROR = "PUBREC with an error"
    PUBCOMP = "PUBCOMP"


_S, _T = SentMessageState, SentMessageTrigger
#: Read for each message: a member of an enumeration takes several times as long to find.
_SENT, _PUBACK, _DONE = _S.SENT, _T.PUBACK, _S.DONE

SENT_TABLE: StateTable[SentMessageState, SentMessageTrigger, SentMessageState] = StateTable(
    "a message",
    {
        _S.SENT: {_T.PUBACK: _S.DONE},
        _S.SENT_ONCE: {_T.PUBREC: _S.RELEASED, _T.PUBREC_ERROR: _S.DONE},
        _S.RELEASED: {_T.PUBREC: _S.RELEASED, _T.PUBREC_ERROR: _S.DONE, _T.PUBCOMP: _S.DONE},
    },
    error=protocol_error,
)


class SentMessage(Generic[T]):
    """A message that is under way to a client.

    Attributes:
        item: the message; None once it is released.
    """

    __slots__ = ("item", "state")

    def __init__(self, item: T | None, state: SentMessageState) -> None:
        self.item = item
        self.state = state


class SentMessages(Generic[T]):
    """The messages that are under way between the broker and one client.

    Attributes:
        received: packet ids of messages from the client with QoS 2 that it has not released.
    """

    def __init__(self) -> None:
        self.received: set[int] = set()
        self._outgoing: dict[int, SentMessage[T]] = {}
        self._last_id = 0

    def __len__(self) -> int:
        """Number of messages that are under way to the client."""
        return len(self._outgoing)

    def __iter__(self) -> Iterator[tuple[int, SentMessage[T]]]:
        """What is under way to the client, by packet id, in its order."""
        return iter(list(self._outgoing.items()))

    def add(self, item: T, qos: int, preferred: int | None = None) -> int:
        """A message is sent; gives its packet id, which no other one has. There are fewer than 65,535 messages.

        Args:
            qos: 1 or 2.
            preferred: packet id that it has if no other message has it; None for any.
        """
        outgoing = self._outgoing
        packet_id = preferred
        if packet_id is None or packet_id in outgoing:
            packet_id = self._last_id
            while True:
                packet_id = packet_id + 1 if packet_id < MAX_PACKET_ID else 1
                if packet_id not in outgoing:
                    break
            self._last_id = packet_id
        outgoing[packet_id] = SentMessage(item, _S.SENT if qos == 1 else _S.SENT_ONCE)
        return packet_id

    def free_ids(self, count: int) -> list[int]:
        """Packet ids that no message has, in their order; as of `add`."""
        first = self._last_id + 1
        if first + count <= MAX_PACKET_ID + 1:
            ids = list(range(first, first + count))
            if self._outgoing.keys().isdisjoint(ids):
                return ids
        outgoing, found, packet_id = self._outgoing, list[int](), self._last_id
        while len(found) < count:
            packet_id = packet_id + 1 if packet_id < MAX_PACKET_ID else 1
            if packet_id not in outgoing:
                found.append(packet_id)
        return found

    def are_free(self, packet_ids: Sequence[int]) -> bool:
        """True if no message has one of these packet ids, and none is there twice."""
        return len(set(packet_ids)) == len(packet_ids) and self._outgoing.keys().isdisjoint(packet_ids)

    def add_all(self, packet_ids: Sequence[int], items: Iterable[T]) -> None:
        """Messages with QoS 1 are sent with some packet ids, which are free."""
        self._outgoing.update(zip(packet_ids, [SentMessage(item, _SENT) for item in items], strict=True))
        self._last_id = packet_ids[-1]

    def restore(self, packet_id: int, item: T | None) -> None:
        """A message with QoS 2 had this packet id before the broker started; None for one that was released."""
        self._outgoing[packet_id] = SentMessage(item, _S.RELEASED if item is None else _S.SENT_ONCE)

    def on_answer(self, packet_id: int, trigger: SentMessageTrigger) -> tuple[T | None, SentMessageState] | None:
        """The client has answered.

        Returns:
            the message that is done with this answer, as far as the queue that it is from is concerned, or None; and
            the state now. None if nothing has this packet id.

        Raises:
            MqttError: the answer does not fit the message.
        """
        delivery = self._outgoing.get(packet_id)
        if delivery is None:
            return None
        if delivery.state is _SENT and trigger is _PUBACK:  # as the table says, and most often
            del self._outgoing[packet_id]
            return delivery.item, _DONE
        delivery.state = state = SENT_TABLE.next(delivery.state, trigger)
        item, delivery.item = delivery.item, None
        if state is _S.DONE:
            del self._outgoing[packet_id]
        return item, state

    def get(self, packet_id: int) -> SentMessage[T] | None:
        """The message with a packet id; None if there is none."""
        return self._outgoing.get(packet_id)

    def forget(self, packet_id: int) -> None:
        """A message is not under way any more, whatever its state."""
        self._outgoing.pop(packet_id, None)
