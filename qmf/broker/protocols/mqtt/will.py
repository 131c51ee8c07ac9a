"""The will of a client, as it waits to be published; with a data folder it outlives the broker."""

from __future__ import annotations

import logging

import attrs

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import Message
from qmf.broker.operations.principal import Principal
from qmf.broker.operations.publisher import Publisher
from qmf.broker.operations.publishing import publish_message
from qmf.broker.protocols.mqtt.codec.packets import Will
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty, Properties
from qmf.broker.protocols.mqtt.mapping import to_message
from qmf.broker.protocols.mqtt.records import SessionRecords, StoredWill
from qmf.broker.protocols.mqtt.retained import RetainedMessages

log = logging.getLogger("qmf.broker")


@attrs.frozen(eq=False)
class PendingWill:
    """A will that is published later, by the rights of its client: `origin`, whose publisher it has."""

    _will: Will
    _publisher: Publisher
    _exchange: Exchange
    _origin: ClientInfo
    _retained: RetainedMessages
    _records: SessionRecords

    @property
    def delay(self) -> int:
        """Seconds for which it waits when its client is lost."""
        return int(self._will.properties.get(PacketProperty.WILL_DELAY, 0))

    @property
    def topic(self) -> str:
        """Where it is published."""
        return self._will.topic

    def ask(self) -> None:
        """Ask for the right to publish it.

        Raises:
            OperationRefused: the policy refuses it.
        """
        self._publisher.admit(self._exchange, self._message())

    def record(self) -> None:
        """Record it: after a kill it is published, since its client was lost then."""
        origin = self._origin
        principal = Principal(origin.user, origin.address, origin.protocol, groups=origin.groups)
        self._records.put_will(origin.container, StoredWill(self._will, principal))

    def drop(self) -> None:
        """It is not to be published."""
        self._records.remove_will(self._origin.container)

    def send(self) -> None:
        """Publish it; what is refused is logged. That it was published is recorded with the message itself."""
        recorder = self._publisher.registry.recorder
        if recorder is not None:
            recorder.flush()
        message, will = self._message(), self._will
        refusal = publish_message(self._publisher, message, self._exchange)
        if refusal is None and will.retain:
            refusal = self._retained.retain(message, will.payload)
        self.drop()
        if recorder is not None:
            recorder.flush()
        if refusal is not None:
            log.warning("the will of %s was not published: %s", self._origin.container, refusal.description)

    def _message(self) -> Message:
        will = self._will
        properties: Properties = {
            kind: value for kind, value in will.properties.items() if kind is not PacketProperty.WILL_DELAY
        }
        return to_message(
            will.topic,
            will.payload,
            will.qos,
            retain=will.retain,
            properties=properties,
            exchange=self._exchange.name,
            now=self._publisher.registry.clock(),
            origin=self._origin,
        )
