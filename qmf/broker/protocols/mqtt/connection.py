"""The broker's end of a connection of MQTT: its sockets, its login, and its end; a `ClientSession` for the broker."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.observed_clients import Traffic
from qmf.broker.nodes.recorder import NotStored
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.protocols.client_connection import ClientConnection
from qmf.broker.protocols.input import InputHold
from qmf.broker.protocols.login import LoginRefusal
from qmf.broker.protocols.mqtt.client import MqttClient
from qmf.broker.protocols.mqtt.client_counts import MqttTotals
from qmf.broker.protocols.mqtt.codec.packets import Auth, Connect, Disconnect, Packet, Publish
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.values import MqttError, ReasonCode, Version
from qmf.broker.protocols.mqtt.connected_client import WillRefused
from qmf.broker.protocols.mqtt.connection_state import MqttState
from qmf.broker.protocols.mqtt.machine import ConnectionMachine
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.mqtt.reasons import LOGIN_CODES, REASONS
from qmf.broker.protocols.mqtt.sessions import MqttSessions, SessionInUse
from qmf.broker.protocols.services import ConnectionServices
from qmf.broker.refusal import Reason
from qmf.sasl.results import Authenticated

log = logging.getLogger("qmf.broker")


class MqttConnection(ClientConnection):
    """A connection that a client of MQTT made; a `ConnectedClient`, and a `CountedClient`."""

    def __init__(
        self,
        services: ConnectionServices,
        options: MqttOptions,
        sessions: MqttSessions,
        shutting_down: Callable[[], bool],
    ) -> None:
        """Make the connection for a socket that a listener has accepted.

        Args:
            shutting_down: says whether the broker ends.
        """
        super().__init__(services)
        self.machine = ConnectionMachine(options)
        self._options = options
        self._sessions = sessions
        self._shutting_down = shutting_down
        self._client: MqttClient | None = None

    # ClientSession

    def traffic(self) -> Traffic:
        machine = self.machine
        return Traffic(machine.packets_in, machine.packets_out, self._input.octets, self._output.octets)

    def totals(self) -> MqttTotals:
        machine, client = self.machine, self._client
        sent, received = (0, 0) if client is None else client.publications
        return MqttTotals(
            1, machine.packets_in, machine.packets_out, self._input.octets, self._output.octets, sent, received
        )

    def close(self, reason: str, cause: Reason | None = None) -> None:
        if cause is not None:
            code = REASONS[cause]
        else:
            code = ReasonCode.SERVER_SHUTTING_DOWN if self._shutting_down() else ReasonCode.ADMINISTRATIVE_ACTION
        self.end(code, reason)

    # ConnectedClient

    def end(self, code: ReasonCode, reason: str) -> None:
        """Close the connection, and give up its session at once; `code`, `reason`: for the client."""
        self.write(self.machine.close(code, reason))
        self._leave()
        self._close_transport()

    # asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        self._input.count(len(data))
        self.machine.feed(data)
        self._handle()
        if self.machine.state is MqttState.LOGGING_IN:
            self._input.hold(InputHold.LOGIN)
        if self._client is not None and self._client.unanswered > self._options.receive_maximum:
            self._input.hold(InputHold.STORING)

    def on_answered(self) -> None:
        if self._client is not None and not self._client.unanswered:
            self._input.release(InputHold.STORING)

    # Packets

    def _handle(self) -> None:
        """Handle the packets that are there, and write what they cause."""
        if self._handling:
            return
        self._handling = self._output.collecting = True
        machine, together = self.machine, list[Publish]()
        try:
            while True:
                if (run := machine.next_run()) is not None:
                    if together:
                        together = self._publish(together)
                    if self._client is not None:
                        self._client.take_run(run)
                    continue
                if (packet := machine.next_packet()) is None:
                    break
                if type(packet) is Publish:
                    together.append(packet)
                    continue
                if together:
                    together = self._publish(together)
                self._on_packet(packet)
            if together:
                self._publish(together)
        except MqttError as error:
            if together:
                self._publish(together)
            self._log_failure(f"{error.code.name}: {error.reason}")
            self.end(error.code, error.reason)
        finally:
            self._handling = self._output.collecting = False
        if self._client is not None:
            self._client.end_turn()
        self._output.flush()

    def _publish(self, packets: list[Publish]) -> list[Publish]:
        """Publish what came together; gives an empty list for what follows."""
        if self._client is not None:
            self._client.take_publications(packets)
        return []

    def _on_packet(self, packet: Packet) -> None:
        match packet:
            case Connect():
                assert self._login is not None
                self._begin_login(packet)
            case Auth():
                self._on_auth(packet)
            case Disconnect():
                self._leave()
                self._close_transport()
            case _:
                if self._client is not None:
                    self._client.on_packet(packet)

    def _begin_login(self, connect: Connect) -> None:
        assert self._login is not None
        method = connect.properties.get(PacketProperty.AUTHENTICATION_METHOD)
        if method is None:
            self._login.begin(connect.username, connect.password)
        else:
            self._login.begin_exchange(method, connect.properties.get(PacketProperty.AUTHENTICATION_DATA))

    def _on_auth(self, packet: Auth) -> None:
        assert self._login is not None
        data = packet.properties.get(PacketProperty.AUTHENTICATION_DATA)
        if packet.code == ReasonCode.RE_AUTHENTICATE:
            self._login.begin_exchange(packet.properties[PacketProperty.AUTHENTICATION_METHOD], data)
        else:
            self._login.answer(data)

    # LoginOwner

    def on_challenge(self, data: bytes) -> None:
        self.write(self.machine.challenge(data))

    def on_authenticated(self, result: Authenticated, mechanism: str) -> None:
        if self.machine.state is MqttState.CLOSED:
            return
        if self.machine.state is MqttState.RENEWING:
            if result.user != self._info.user:
                self.end(ReasonCode.NOT_AUTHORIZED, "another user has authenticated itself")
                return
            self.write(self.machine.confirm(result.data))
            return
        self._on_logged_in(result, mechanism)

    def on_rejected(self, refusal: LoginRefusal, reason: str) -> None:
        """See `LoginOwner`: the client learns the code alone."""
        if self.machine.state is MqttState.CLOSED:
            return
        self._report_rejection(reason)
        renewing = self.machine.state is MqttState.RENEWING
        self.end(ReasonCode.NOT_AUTHORIZED if renewing else LOGIN_CODES[refusal], "the login is refused")

    # Details

    def _on_logged_in(self, result: Authenticated, mechanism: str) -> None:
        machine = self.machine
        connect = machine.connect
        assert connect is not None
        client_id = connect.client_id
        properties: dict[PacketProperty, Any] = {}
        if not client_id:
            if connect.version is Version.V3 and not connect.clean:
                self._refuse(ReasonCode.CLIENT_ID_NOT_VALID, "a session that is kept needs a client id")
                return
            client_id = properties[PacketProperty.ASSIGNED_CLIENT_ID] = f"auto-{uuid.uuid4()}"
        if result.data is not None:
            properties[PacketProperty.AUTHENTICATION_DATA] = result.data
        self._info = ClientInfo(
            self._info.address,
            client_id,
            result.user,
            mechanism,
            dict(connect.properties.get(PacketProperty.USER_PROPERTY, ())),
            connect.version.text,
            groups=result.groups,
            token_end=result.token_end,
        )
        refusal = self._clients.admit(self, self._sessions.holder(client_id, result.user))
        if refusal is not None:
            self._refuse(REASONS[refusal.reason], refusal.description)
            return
        self._stop_timers()
        try:
            client = MqttClient(self, self._clients, self._sessions, self._options)
            present = client.begin(clean=connect.clean)
        except (OperationRefused, SessionInUse) as error:
            self._refuse(ReasonCode.NOT_AUTHORIZED, str(error))
            return
        except WillRefused as error:
            self._refuse(error.code, str(error))
            return
        self._client = client
        self._sessions.counts.add(self)

        def accept(_: NotStored | None = None) -> None:
            if self._client is client:
                self._accept(client, session_present=present, properties=properties)

        # A client that knows of its session relies on it, and on its will: they must be there after a kill.
        recorder = self._registry.recorder if client.is_recorded else None
        if recorder is None or not recorder.close_unit(accept):
            accept()

    def _accept(
        self, client: MqttClient, *, session_present: bool, properties: Mapping[PacketProperty, object]
    ) -> None:
        """Tell the client that it is connected, and go on."""
        machine = self.machine
        data = machine.accept(session_present=session_present, properties=properties)
        if not data:
            self._refuse(ReasonCode.PACKET_TOO_LARGE, "its largest packet is too small for an answer")
            return
        self.write(data)
        self._input.release(InputHold.LOGIN)
        client.resume()
        if machine.keep_alive:
            self._input.begin_silence()
            self._start_timer("keep alive", 1.5 * machine.keep_alive, self._on_keep_alive)
        log.debug("connected: %s", self)
        self._handle()  # what came meanwhile

    def _refuse(self, code: ReasonCode, reason: str) -> None:
        self._log_failure(reason)
        self.end(code, reason)

    @property
    def _has_begun(self) -> bool:
        return self.machine.connect is not None

    def _leave(self) -> None:
        """The client has nothing here any more; its session may be gone on with."""
        self._sessions.counts.remove(self)
        super()._leave()

    # Writing

    def write(self, data: bytes) -> None:
        """Write bytes in this turn of the loop."""
        self._output.write(data)

    def _dispatch_later(self) -> None:
        if self._client is not None:
            self._client.dispatch_later()

    # Time

    def _on_keep_alive(self) -> None:
        allowed = 1.5 * self.machine.keep_alive
        left = allowed - self._input.silence()
        if left > 0:
            self._start_timer("keep alive", left, self._on_keep_alive)
            return
        log.info("dropped %s: it has sent nothing for %g s", self, allowed)
        self.end(ReasonCode.KEEP_ALIVE_TIMEOUT, f"nothing was sent for {allowed:g} s")
