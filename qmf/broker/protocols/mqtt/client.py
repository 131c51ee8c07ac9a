"""What a client of MQTT does once it is connected: it publishes, subscribes, receives; it has a session."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import Principal
from qmf.broker.protocols.client_connection import AdmittedClient
from qmf.broker.protocols.mqtt.codec.packets import (
    MessageAnswer,
    Packet,
    Ping,
    Publish,
    Subscribe,
    SubscriptionRequest,
    Unsubscribe,
)
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.runs import AcknowledgementRun, PublicationRun
from qmf.broker.protocols.mqtt.codec.values import PacketType, ReasonCode, Version
from qmf.broker.protocols.mqtt.connected_client import ConnectedClient, WillRefused
from qmf.broker.protocols.mqtt.mapping import packet_id_annotation
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.mqtt.publishing import RESERVED, PublishingEnd
from qmf.broker.protocols.mqtt.reasons import REASONS
from qmf.broker.protocols.mqtt.sent_messages import SentMessageState, SentMessageTrigger
from qmf.broker.protocols.mqtt.session import MAX_UNDER_WAY, MqttSession, QueuedMessage
from qmf.broker.protocols.mqtt.sessions import MqttSessions
from qmf.broker.protocols.mqtt.subscribing import ClientConsumers
from qmf.broker.protocols.mqtt.will import PendingWill
from qmf.broker.refusal import Reason, Refusal
from qmf.broker.sessions import ClientSessions

log = logging.getLogger("qmf.broker")

_S, _T = SentMessageState, SentMessageTrigger
_PUBACK = _T.PUBACK


class MqttClient(AdmittedClient):
    """A client that is connected, with its session; the `ReceivingClient` of its consumers."""

    def __init__(
        self, connection: ConnectedClient, clients: ClientSessions, sessions: MqttSessions, options: MqttOptions
    ) -> None:
        """Make what a client has that was let in; `begin` follows."""
        self.machine = connection.machine
        self.connection = connection
        self.exchange = sessions.exchange
        self._principal = principal = Principal.of(connection)
        self._operations = operations = sessions.operations
        self._registry = operations.registry
        self.clock = self._registry.clock
        self._clients = clients
        self._sessions = sessions
        self._options = options
        self._loop = asyncio.get_running_loop()
        self.session: MqttSession
        self._consumers: ClientConsumers
        self._publishing: PublishingEnd
        self._publisher = operations.publisher(principal)
        self._will: PendingWill | None = None
        #: For the next turn of the loop.
        self._finishing: list[Callable[[], None]] = []
        self._recording: list[tuple[QueuedMessage, int]] = []
        self._turn: asyncio.Handle | None = None
        #: Messages that the client has acknowledged, by their queues.
        self._accepted: dict[Queue, list[Entry]] = {}
        #: It has completed others, whose messages have left their queues: there is room for new ones.
        self._completed = False
        self._left = False

    # Begin and end

    def begin(self, *, clean: bool) -> bool:
        """Find or begin the session; True if it was there.

        Raises:
            SessionInUse: it is another user's.
            OperationRefused: the policy refuses the exchange, or what the session receives from.
            WillRefused: the will would not be published.
        """
        machine, info, exchange = self.machine, self.connection.info, self.exchange
        self._operations.ask_access(self._principal, exchange)
        if machine.will is not None:
            if machine.will.topic.startswith(RESERVED):
                raise WillRefused(ReasonCode.TOPIC_NAME_INVALID, "the will: topics with $ belong to the broker")
            self._will = PendingWill(
                machine.will, self._publisher, exchange, info, self._sessions.retained, self._sessions.records
            )
            self._will.ask()
        self.session, present = self._sessions.open(
            info.container, info.user, machine.session_expiry, self.connection, clean=clean
        )
        if self._will is not None:
            self._will.record()
        else:
            self._sessions.records.remove_will(info.container)
        self._publishing = PublishingEnd(
            self._publisher, self._sessions, self.session, info, self._answer_publication, self._answer_run
        )
        self._consumers = ClientConsumers(
            self, self._principal, self._clients, self._sessions, self._options.max_subscriptions
        )
        self._clients.link_attached(self.connection, exchange)
        self._registry.observer.on_attached(self.connection, self._publishing)
        return present

    @property
    def publications(self) -> tuple[int, int]:
        """Messages that the client has sent, and was sent."""
        return self._publishing.transfers, self._consumers.transfers

    @property
    def is_recorded(self) -> bool:
        """The session, or the will, is to be there after a kill."""
        return self._registry.recorder is not None and (self.session.durable or self._will is not None)

    def resume(self) -> None:
        """The client knows that it is connected: send again what was under way, then what waits."""
        self.session.again.extend(packet_id for packet_id, _ in self.session.sent)
        try:
            self._consumers.resume()
        except OperationRefused as error:
            self.connection.end(ReasonCode.NOT_AUTHORIZED, str(error))
            return
        self._send_again()
        self.dispatch()

    def leave(self) -> None:
        if self._left:
            return
        self._left = True
        self._settle()
        if self._turn is not None:
            self._turn.cancel()
            self._run_turn()
        self._consumers.stop_all()
        self._give_back()
        self._registry.observer.on_detached(self.connection, self._publishing)
        self._clients.link_detached(self.connection, self.exchange)
        machine, will = self.machine, self._will
        if will is not None and machine.will is None:
            will.drop()
            will = None
        self.session.again.clear()
        self._sessions.close(self.session, machine.session_expiry, will)

    def loses(self, node: Queue | Exchange) -> bool:  # noqa: ARG002
        """See `AdmittedClient`; its session ends with what it cannot go on without."""
        session = self.session
        gone = self._consumers.has_lost_queue() or self._sessions.exchange is not self.exchange
        if gone:
            self._sessions.end(session)
        return gone

    def missing_right(self) -> str:
        return self._consumers.missing_right()

    def _give_back(self) -> None:
        """Messages of shared subscriptions with QoS 1 may go to other clients at once (5.0, section 4.8.2)."""
        for packet_id, each in self.session.sent:
            message = each.item
            if message is not None and message.shared is not None and each.state is _S.SENT:
                self.session.sent.forget(packet_id)
                message.queue.delivery.release([message.entry], failed=True)

    # What the client sends

    def take_publications(self, packets: Sequence[Publish]) -> None:
        """The client publishes."""
        self._publishing.take_publications(packets)
        if (prefix := self._publishing.prefix_of_run(packets)) is not None:
            self.machine.expect_run(packets[-1], prefix)

    def take_run(self, run: PublicationRun | AcknowledgementRun) -> None:
        """The client publishes several messages that are alike, or has acknowledged several."""
        if type(run) is PublicationRun:
            self._publishing.take_run(run)
            return
        for packet_id in run.packet_ids:
            if (found := self.session.sent.on_answer(packet_id, _PUBACK)) is not None and found[0] is not None:
                self._accept(found[0])

    def on_packet(self, packet: Packet) -> None:
        """The client has sent something else."""
        match packet:
            case MessageAnswer():
                if packet.type is PacketType.PUBREL:
                    self._on_release(packet.packet_id)
                else:
                    self._on_answer(packet)
            case Ping():
                self.connection.write(self.machine.pong())
            case Subscribe():
                self._on_subscribe(packet)
            case Unsubscribe():
                self._on_unsubscribe(packet)

    @property
    def unanswered(self) -> int:
        """Publications that have yet to be stored."""
        return self._publishing.unanswered

    def end_turn(self) -> None:
        """What came together was handled: let what was acknowledged leave its queues."""
        if self._accepted or self._completed:
            self._completed = False
            self._settle()
            self._send_again()
            self.dispatch()

    def _settle(self) -> None:
        accepted, self._accepted = self._accepted, {}
        for queue, entries in accepted.items():
            queue.delivery.accept_all(entries)

    def _answer_publication(self, packet: Publish, refusal: Refusal | None) -> None:
        """PUBACK or PUBREC. In 3.1.1 a refusal cannot be said: what has no room is not taken, by the end of all."""
        if self._left or packet.packet_id is None:
            return
        code, reason = ReasonCode.SUCCESS, ""
        if refusal is not None:
            code, reason = REASONS[refusal.reason], refusal.description
            if self.machine.version is Version.V3:
                if refusal.reason is not Reason.UNAUTHORIZED:
                    log.warning("closing the connection of %s: %s", self.connection, reason)
                    self.connection.end(code, reason)
                    return
                if packet.qos == 2:
                    self.session.received.add(packet.packet_id)
        kind = PacketType.PUBACK if packet.qos == 1 else PacketType.PUBREC
        self.connection.write(self.machine.acknowledge(kind, packet.packet_id, code, reason))
        self.connection.on_answered()

    def _answer_run(self, packet_ids: list[int]) -> None:
        if not self._left:
            self.connection.write(self.machine.acknowledge_run(packet_ids))

    def _accept(self, message: QueuedMessage) -> None:
        """The client has a message: it leaves its queue at the end of the turn."""
        accepted = self._accepted.get(message.queue)
        if accepted is None:
            self._accepted[message.queue] = [message.entry]
        else:
            accepted.append(message.entry)

    def _on_release(self, packet_id: int) -> None:
        session = self.session
        code = ReasonCode.SUCCESS if packet_id in session.received else ReasonCode.PACKET_ID_NOT_FOUND
        session.received.discard(packet_id)
        recorder = self._registry.recorder if session.durable else None
        if recorder is not None:
            recorder.flush()
            self._sessions.records.remove_received(session.client_id, packet_id)

        def send(_: NotStored | None = None) -> None:
            if not self._left:
                self.connection.write(self.machine.acknowledge(PacketType.PUBCOMP, packet_id, code))

        # The client uses the packet id for another message then: that must not look like this one after a kill.
        if recorder is None or not recorder.close_unit(send):
            send()

    def _on_answer(self, packet: MessageAnswer) -> None:
        packet_id, session = packet.packet_id, self.session
        if packet.type is PacketType.PUBACK:
            trigger = _T.PUBACK
        elif packet.type is PacketType.PUBREC:
            trigger = _T.PUBREC_ERROR if packet.code >= ReasonCode.UNSPECIFIED_ERROR else _T.PUBREC
        else:
            trigger = _T.PUBCOMP
        found = session.sent.on_answer(packet_id, trigger)
        if found is None:
            if trigger is _T.PUBREC:
                code = ReasonCode.PACKET_ID_NOT_FOUND
                self.connection.write(self.machine.acknowledge(PacketType.PUBREL, packet_id, code))
            return
        message, state = found
        if state is _S.RELEASED:
            self._release(packet_id, message)
            return
        if message is not None:
            self._accept(message)
        else:
            self._completed = True
            if session.durable:
                self._sessions.records.remove_released(session.client_id, packet_id)

    def _release(self, packet_id: int, message: QueuedMessage | None) -> None:
        """The client has a message with QoS 2: it leaves its queue, and its packet id is recorded, in one unit."""
        recorder = self._registry.recorder if self.session.durable else None
        if recorder is not None:
            recorder.flush()
        if message is not None:
            message.queue.delivery.accept_all([message.entry])
            if recorder is not None:
                self._sessions.records.put_released(self.session.client_id, packet_id)

        def send(_: NotStored | None = None) -> None:
            if not self._left:
                self.connection.write(self.machine.acknowledge(PacketType.PUBREL, packet_id))

        if recorder is None or not recorder.close_unit(send):
            send()

    # Subscriptions

    def _on_subscribe(self, packet: Subscribe) -> None:
        codes: list[ReasonCode] = []
        reason = ""
        added: list[tuple[SubscriptionRequest, bool]] = []
        identifier = packet.properties.get(PacketProperty.SUBSCRIPTION_ID, 0)
        for request in packet.subscriptions:
            existed = self.session.subscriptions.get(request.topic_filter) is not None
            code, why = self._consumers.subscribe(request, identifier)
            codes.append(code)
            if code.is_error:
                reason = why
            else:
                added.append((request, existed))
        self._answer_stored(packet, codes, reason)
        for request, existed in added:
            self._consumers.send_retained(request, existed=existed)
        self.dispatch()

    def _on_unsubscribe(self, packet: Unsubscribe) -> None:
        codes: list[ReasonCode] = []
        reason = ""
        for text in packet.topic_filters:
            try:
                existed = self._consumers.unsubscribe(text)
            except OperationRefused as error:
                codes.append(ReasonCode.NOT_AUTHORIZED)
                reason = str(error)
                continue
            codes.append(ReasonCode.SUCCESS if existed else ReasonCode.NO_SUBSCRIPTION_EXISTED)
        self._answer_stored(packet, codes, reason)

    def _answer_stored(self, packet: Subscribe | Unsubscribe, codes: list[ReasonCode], reason: str) -> None:
        """Answer, once the subscriptions are stored as they are now, if they are kept."""
        recorder = self._registry.recorder if self.session.durable else None

        def answer(_: NotStored | None = None) -> None:
            if self._left:
                return
            data = self.machine.answer(packet, codes, reason)
            if data:
                self.connection.write(data)
            else:
                self.connection.end(ReasonCode.PACKET_TOO_LARGE, "the answer is larger than the client allows")

        if recorder is None or not recorder.close_unit(answer):
            answer()

    # What the client receives; see `ReceivingClient`

    def finish_later(self, finish: Callable[[], None]) -> None:
        self._finishing.append(finish)
        self._turn_soon()

    def record_later(self, message: QueuedMessage, packet_id: int) -> None:
        self._recording.append((message, packet_id))
        self._turn_soon()

    def dispatch(self) -> None:
        self._consumers.dispatch()

    def dispatch_later(self) -> None:
        """As `dispatch`, in the next turn of the loop."""
        self.finish_later(self.dispatch)

    def _turn_soon(self) -> None:
        if self._turn is None:
            self._turn = self._loop.call_soon(self._run_turn)

    def _run_turn(self) -> None:
        self._turn = None
        finishing, self._finishing = self._finishing, []
        for finish in finishing:
            finish()
        recording, self._recording = self._recording, []
        if recording:
            self._record(recording)

    def _record(self, messages: Sequence[tuple[QueuedMessage, int]]) -> None:
        """Store with which packet ids messages are sent with QoS 2: after a kill they are sent with the same ones."""
        recorder = self._registry.recorder
        if recorder is not None:
            recorder.flush()
        for message, packet_id in messages:
            sent_to = None if message.shared is None else self.session.client_id
            if not message.queue.contents.annotate(message.entry, packet_id_annotation(packet_id, sent_to)):
                log.warning(
                    "queue %s has no room for a packet id: after a kill, a message may come twice", message.queue.name
                )
        send = partial(self._send_recorded, messages)
        if recorder is None or not recorder.close_unit(send):
            send(None)

    def _send_recorded(self, messages: Sequence[tuple[QueuedMessage, int]], _: NotStored | None) -> None:
        if self._left:
            return
        for message, packet_id in messages:
            self._send(message, packet_id, 2, duplicate=False)

    def _send_again(self) -> None:
        """Send again what was under way when the connection was lost, while the client takes it."""
        session = self.session
        again, sent = session.again, session.sent
        most = min(self.machine.send_quota, MAX_UNDER_WAY)
        while again and len(sent) - len(again) < most and self.connection.has_room:
            packet_id = again.popleft()
            found = sent.get(packet_id)
            if found is None:
                continue
            each, state = found.item, found.state
            if state is _S.RELEASED:
                self.connection.write(self.machine.acknowledge(PacketType.PUBREL, packet_id))
            elif each is None or not each.is_there:
                sent.forget(packet_id)
            else:
                self._send(each, packet_id, 1 if state is _S.SENT else 2, duplicate=True)

    def _send(self, message: QueuedMessage, packet_id: int, qos: int, *, duplicate: bool) -> None:
        consumer = self._consumers.of(message)
        if consumer is None or not consumer.send_again(message.entry, qos, packet_id, duplicate=duplicate):
            self.session.sent.forget(packet_id)
            message.queue.delivery.accept(message.entry)
