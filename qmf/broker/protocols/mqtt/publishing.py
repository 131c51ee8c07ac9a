"""What a client sends: its publications on their way to the exchange, and their answers in the order that is due."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from functools import partial

import attrs

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.observed_clients import TransactionCounts
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored, Recorder
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.publisher import Publisher
from qmf.broker.operations.publishing import INGRESS_TIME, publish_message, reject
from qmf.broker.protocols.mqtt.codec.packets import Publish
from qmf.broker.protocols.mqtt.codec.runs import PublicationRun
from qmf.broker.protocols.mqtt.mapping import head_of, run_messages, to_message
from qmf.broker.protocols.mqtt.session import MqttSession
from qmf.broker.protocols.mqtt.sessions import MqttSessions
from qmf.broker.refusal import Reason, Refusal

#: Called with a publication that has QoS 1 or 2, and why it was refused, or None.
OnPublished = Callable[[Publish, Refusal | None], None]

#: How topics begin that belong to the broker.
RESERVED = "$"


class _Answer:
    """A place in the order of answers: they go out in the order of the publications (5.0, section 4.6)."""

    __slots__ = ("packet", "ready", "refusal")

    def __init__(self, packet: Publish) -> None:
        self.packet = packet
        self.ready = False
        self.refusal: Refusal | None = None


class PublishingEnd:
    """Publishes for one client; a `ClientLink` for observers.

    Attributes:
        transfers: publications received so far.
    """

    name = "publications"  #: see `ClientLink`
    queue: Queue | None = None
    browsing = presettled = False  #: see `ClientLink`
    transactions: TransactionCounts | None = None
    session: Hashable = 0

    def __init__(
        self,
        publisher: Publisher,
        sessions: MqttSessions,
        session: MqttSession,
        origin: ClientInfo,
        on_published: OnPublished,
        on_run_published: Callable[[list[int]], None],
    ) -> None:
        """Publish for a client that was let in.

        Args:
            on_published: sends the answers.
            on_run_published: sends those of publications of QoS 1 that were taken together, by their packet ids.
        """
        self.transfers = 0
        self.exchange = sessions.exchange
        self.source, self.target = session.client_id, self.exchange.name
        self._publisher = publisher
        self._registry = publisher.registry
        self._session = session
        self._origin = origin
        self._retained = sessions.retained
        self._records = sessions.records
        self._on_published = on_published
        self._on_run_published = on_run_published
        #: The last publication, which those of a run are like.
        self._last: Publish | None = None
        self._answers: deque[_Answer] = deque()

    @property
    def unanswered(self) -> int:
        """Publications that wait for their answer, or for that of an earlier one."""
        return len(self._answers)

    def count_unsettled(self) -> tuple[int, int]:
        """See `ClientLink`: none, the client only sends."""
        return 0, 0

    def take_publications(self, packets: Sequence[Publish]) -> None:
        """Publish what came together, and have it answered, now or when it is stored."""
        recorder = self._registry.recorder
        self.transfers += len(packets)
        together: list[Publish] = []
        for packet in packets:
            if packet.qos == 2 and packet.packet_id in self._session.received:
                self._publish_together(together)
                together = []
                self._answer_at_once(packet)  # it was published before
            elif (
                packet.retain
                or packet.qos == 2
                or (recorder is not None and packet.qos)
                or packet.topic.startswith(RESERVED)
            ):
                self._publish_together(together)
                together = []
                self._publish_one(packet, recorder)
            elif together and packet.topic != together[0].topic:
                self._publish_together(together)
                together = [packet]
            else:
                together.append(packet)
        self._publish_together(together)

    def prefix_of_run(self, packets: Sequence[Publish]) -> bytes | None:
        """What the stored forms of publications like the last one begin with.

        Args:
            packets: that were published last.

        Returns:
            None if such are to come one by one: they are stored or retained, or clients send different ones.
        """
        before = self._last if len(packets) == 1 else packets[-2]
        packet = self._last = packets[-1]
        if (
            before is None
            or packet.topic != before.topic
            or packet.properties != before.properties
            or packet.retain
            or packet.qos == 2
            or (packet.qos and self._registry.recorder is not None)
            or packet.topic.startswith(RESERVED)
        ):
            return None
        return head_of(
            packet.topic, packet.qos, retain=False, properties=packet.properties, exchange=self.exchange.name
        )

    def take_run(self, run: PublicationRun) -> None:
        """Publish what is like the last publication, of which nothing is stored, and have it answered."""
        pattern, count = self._last, len(run.messages)
        assert pattern is not None
        self.transfers += count
        messages = run_messages(pattern, run.messages, self._registry.clock(), self._origin)
        if self._registry.timestamps:
            messages = [self._with_time(message) for message in messages]
        try:
            refused = self._publisher.publish_all(self.exchange, messages)
        except OperationRefused as error:
            refusal = reject(self._registry, error, count)
            for packet_id in run.packet_ids:
                self._answer_at_once(attrs.evolve(pattern, packet_id=packet_id), refusal)
            return
        if run.packet_ids and not refused and not self._answers:
            self._on_run_published(run.packet_ids)
            return
        for place, packet_id in enumerate(run.packet_ids):
            reason = Refusal(Reason.FULL, refused[place]) if place in refused else None
            self._answer_at_once(attrs.evolve(pattern, packet_id=packet_id), reason)

    def message_of(self, packet: Publish) -> Message:
        """The stored form of a publication."""
        message = to_message(
            packet.topic,
            packet.payload,
            packet.qos,
            retain=packet.retain,
            properties=packet.properties,
            exchange=self.exchange.name,
            now=self._registry.clock(),
            origin=self._origin,
        )
        return self._with_time(message) if self._registry.timestamps else message

    def _with_time(self, message: Message) -> Message:
        message = message.with_annotation(INGRESS_TIME, time.time_ns())
        message.origin = self._origin
        return message

    def _publish_together(self, packets: Sequence[Publish]) -> None:
        """Publications with the same topic, of which nothing is stored."""
        if not packets:
            return
        messages = [self.message_of(packet) for packet in packets]
        try:
            refused = self._publisher.publish_all(self.exchange, messages)
        except OperationRefused as error:
            refusal = reject(self._registry, error, len(packets))
            for packet in packets:
                self._answer_at_once(packet, refusal)
            return
        for place, packet in enumerate(packets):
            if packet.qos:
                self._answer_at_once(packet, Refusal(Reason.FULL, refused[place]) if place in refused else None)

    def _publish_one(self, packet: Publish, recorder: Recorder | None) -> None:
        """A publication that is stored, retained, or published once."""
        if packet.topic.startswith(RESERVED):
            self._answer_at_once(packet, Refusal(Reason.UNAUTHORIZED, f"topics with {RESERVED} belong to the broker"))
            return
        answer = _Answer(packet)
        if packet.qos:
            self._answers.append(answer)
        if recorder is not None:
            recorder.flush()
        refusal = self._publish(packet)
        if recorder is None:
            self._finish(answer, refusal)
        elif refusal is not None:
            recorder.flush()  # other queues may have it
            self._finish(answer, refusal)
        elif not recorder.close_unit(partial(self._on_stored, answer)):
            self._finish(answer, None)

    def _publish(self, packet: Publish) -> Refusal | None:
        """Publish, retain, and note the packet id of QoS 2; gives why it is refused, and nothing is noted then."""
        message = self.message_of(packet)
        if packet.retain and packet.payload and not self._retained.has_room(message):
            return Refusal(Reason.FULL, "there is no room for another retained message")
        refusal = publish_message(self._publisher, message, self.exchange)
        if refusal is None and packet.retain:
            refusal = self._retained.retain(message, packet.payload)
        if refusal is None and packet.qos == 2 and packet.packet_id is not None:
            self._session.received.add(packet.packet_id)
            if self._session.durable:
                self._records.put_received(self._session.client_id, packet.packet_id)
        return refusal

    def _on_stored(self, answer: _Answer, error: NotStored | None) -> None:
        if error is None:
            self._finish(answer, None)
            return
        packet = answer.packet
        if packet.qos == 2 and packet.packet_id is not None:
            self._session.received.discard(packet.packet_id)
        self._finish(answer, Refusal(Reason.FULL, f"cannot store: {error.reason}"))

    def _answer_at_once(self, packet: Publish, refusal: Refusal | None = None) -> None:
        if not packet.qos:
            return
        if not self._answers:
            self._on_published(packet, refusal)
            return
        answer = _Answer(packet)
        self._answers.append(answer)
        self._finish(answer, refusal)

    def _finish(self, answer: _Answer, refusal: Refusal | None) -> None:
        answer.ready, answer.refusal = True, refusal
        answers = self._answers
        while answers and answers[0].ready:
            first = answers.popleft()
            self._on_published(first.packet, first.refusal)
