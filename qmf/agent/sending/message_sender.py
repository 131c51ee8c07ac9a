"""The sender of all messages of an agent: encodes them, sends them on the bus, and counts them."""

from __future__ import annotations

from qmf.agent.metrics import AgentMetrics
from qmf.bus.base import Bus, OutcomeCallback
from qmf.errors import NetworkError
from qmf.protocol import BodyForm, Content, Envelope, MessageTemplate, encode, encode_correlated, parse_reply_to


class SequenceNumbers:
    """The last number of each subject, by which consoles notice losses. Not for use by several threads at once.

    Each subject counts from 1 in each run of an agent. The number of a message that may not have been sent is used
    again: after a lost connection its content is sent again, so nothing is lost.
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def next(self, subject: str) -> int:
        """The number of the next message."""
        return self._last.get(subject, 0) + 1

    def use(self, subject: str) -> int:
        """The number of the next message, which uses it up."""
        number = self._last[subject] = self.next(subject)
        return number

    def save(self) -> dict[str, int]:
        """The state now, for `restore`."""
        return dict(self._last)

    def restore(self, state: dict[str, int]) -> None:
        """Go back to a state: messages that were numbered since then may not have been sent."""
        self._last = dict(state)


class MessageSender:
    """Sends the messages of one agent; belongs to the event loop's thread."""

    def __init__(self, bus: Bus, agent_name: str, form: BodyForm, metrics: AgentMetrics) -> None:
        self._bus = bus
        self._agent_name = agent_name
        #: Encoding of message bodies.
        self.form = form
        self._metrics = metrics

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
        subscription: str | None = None,
        sequence: int | None = None,
        events: int | None = None,
        suppressed: int = 0,
        body: bytes | None = None,
    ) -> bytes:
        """Encode a message from this agent; the arguments are those of `Envelope`, and `body` that of `encode`."""
        envelope = Envelope(
            content=content,
            to=to,
            subject=subject,
            correlation_id=correlation_id,
            agent=self._agent_name,
            partial=partial,
            ttl=ttl,
            subscription=subscription,
            sequence=sequence,
            events=events,
            suppressed=suppressed,
        )
        return encode(envelope, form=self.form, body=body)

    def template(self, content: Content, to: str, subject: str, *, numbered: bool) -> MessageTemplate:
        """A template of event messages that differ in body only, or in their numbers, too, if they are numbered."""
        number = 0 if numbered else None
        return MessageTemplate(
            Envelope(content=content, to=to, subject=subject, agent=self._agent_name, sequence=number, events=number)
        )

    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        """Send an encoded message.

        Raises:
            NetworkError: there is no connection, or the broker refused the message.
        """
        await self._bus.send(data, confirm=confirm)
        self._metrics.add("messages_out")

    def try_send(self, data: bytes, callback: OutcomeCallback) -> bool:
        """Send an encoded message if that takes no waiting; see `Bus.try_send`."""
        if not self._bus.try_send(data, callback):
            return False
        self._metrics.add("messages_out")
        return True

    async def answer(self, request: Envelope, content: Content, *, partial: bool = False) -> None:
        """Send the answer to a request; see `answer_encoded`."""
        await self.answer_encoded(self.encode_answer(request, content, partial=partial))

    def encode_answer(
        self,
        request: Envelope,
        content: Content,
        *,
        partial: bool = False,
        number: int = 1,
        body: bytes | None = None,
    ) -> bytes:
        """Encode an answer, or a part of one: to the request's reply-to, with its correlation id.

        Args:
            content: of the answer.
            partial: more parts follow.
            number: of the part, from 1. It is sent if there are several, so that a console notices missing ones.
            body: as in `encode`.
        """
        to, subject = parse_reply_to(request.reply_to or "")
        sequence = number if partial or number > 1 else None
        if self.form is BodyForm.DATA010 and body is None and sequence is None:
            return encode_correlated(
                Envelope(
                    content=content,
                    to=to,
                    subject=subject,
                    correlation_id=request.correlation_id,
                    agent=self._agent_name,
                )
            )
        return self.encode(
            content,
            to,
            subject,
            correlation_id=request.correlation_id,
            partial=partial,
            sequence=sequence,
            body=body,
        )

    async def answer_encoded(self, data: bytes) -> bool:
        """Send an encoded answer.

        Returns:
            False if the network failed: the answer is lost and counted. The console has lost its queue, too, or
            repeats the request.
        """
        try:
            await self.send(data)
        except NetworkError as error:
            self._metrics.add("answers_lost")
            self._metrics.warn_once("answer", "an answer is lost: %s", error)
            return False
        return True
