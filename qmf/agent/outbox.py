"""One door for everything that an agent sends: encodes, hands to the bus, counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from qmf.agent.tally import Tally
from qmf.bus.base import Bus
from qmf.errors import NetworkError, QmfError
from qmf.protocol import BodyForm, Content, Envelope, ObjectData, encode, parse_reply_to

#: Objects in one message, as qpidd sends (QMF2.md 4.4.1).
MAX_OBJECTS = 100

#: Bytes in one message of several objects. qpidd drops bodies over 65536 bytes (QMF2.md 4), and other peers were
#: written next to it; the rest is room for properties and headers. A single larger object still goes out alone.
MAX_BYTES = 60_000


class Outbox:
    """Sends for one agent; belongs to the event loop's thread."""

    def __init__(self, bus: Bus, agent_name: str, form: BodyForm, tally: Tally) -> None:
        self._bus = bus
        self._agent_name = agent_name
        self._form = form
        self._tally = tally

    @property
    def connected(self) -> bool:
        """True while the bus can send."""
        return self._bus.connected

    def encode(
        self,
        content: Content,
        to: str | None,
        subject: str | None,
        *,
        correlation_id: str | None = None,
        partial: bool = False,
        ttl: float | None = None,
    ) -> bytes:
        """Encode a message from this agent."""
        envelope = Envelope(
            content=content,
            to=to,
            subject=subject,
            correlation_id=correlation_id,
            agent=self._agent_name,
            partial=partial,
            ttl=ttl,
        )
        return encode(envelope, form=self._form)

    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        """Send an encoded message.

        Raises:
            NetworkError: no connection, or the broker refused.
        """
        await self._bus.send(data, confirm=confirm)
        self._tally.add("messages_out")

    async def answer(self, request: Envelope, content: Content, *, partial: bool = False) -> None:
        """Answer a request, as `answer_encoded`."""
        await self.answer_encoded(self.encode_answer(request, content, partial=partial))

    def encode_answer(self, request: Envelope, content: Content, *, partial: bool = False) -> bytes:
        """Encode an answer: to the request's reply-to, with its correlation id."""
        to, subject = parse_reply_to(request.reply_to or "")
        return self.encode(content, to, subject, correlation_id=request.correlation_id, partial=partial)

    async def answer_encoded(self, data: bytes) -> bool:
        """Send an encoded answer.

        Returns:
            False if the network failed: the answer is lost and counted. Who asked has lost its queue, too, or asks
            again.
        """
        try:
            await self.send(data)
        except NetworkError as error:
            self._tally.add("answers_lost")
            self._tally.once("answer", "an answer is lost: %s", error)
            return False
        return True


class Packer:
    """Splits objects into messages within `MAX_OBJECTS` and `MAX_BYTES`.

    The size of a message is known only once it is encoded. Objects of a class have about the same size, so the packer
    learns from each message how many fit into the next.

    Attributes:
        room: how many objects to offer at a time.
    """

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self.room = MAX_OBJECTS

    def pack(
        self, objects: Sequence[ObjectData], build: Callable[[Sequence[ObjectData], bool], bytes], *, more: bool
    ) -> Iterator[tuple[bytes, int]]:
        """Encode objects.

        Args:
            objects: at most `MAX_OBJECTS`.
            build: encodes a message; the second argument says that it is not the last.
            more: another call follows, so that even the last message of this one is not the last.

        Returns:
            the messages and the number of objects in each; at least one message unless `more`.
        """
        try:
            data = build(objects, more)
        except (ValueError, QmfError) as error:
            # Halving finds the one that cannot be encoded; the others shall not suffer.
            if len(objects) == 1:
                self._tally.add("unencodable")
                self._tally.once("unencodable", "skipped object %s: %s", objects[0].object_id, error)
                if not more:
                    yield build((), False), 0
                return
        else:
            if objects:
                self.room = max(1, min(MAX_OBJECTS, MAX_BYTES * len(objects) // len(data)))
            if len(data) <= MAX_BYTES or len(objects) < 2:
                yield data, len(objects)
                return
        half = len(objects) // 2
        yield from self.pack(objects[:half], build, more=True)
        yield from self.pack(objects[half:], build, more=more)
