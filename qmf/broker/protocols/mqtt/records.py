"""What is kept of sessions over a restart of the broker, besides their queues: messages of a queue, `SESSIONS`.

Each record is one message, with what it says in its application properties; changes are units of the store, together
with the messages that they belong to.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable

import attrs

from qmf.broker.nodes.message import read_message
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import Principal
from qmf.broker.protocols.mqtt.codec.fields import PacketFields
from qmf.broker.protocols.mqtt.codec.packets import Will
from qmf.broker.protocols.mqtt.codec.properties import WILL, encode_properties, read_properties
from qmf.broker.protocols.mqtt.last_values import SubjectQueue
from qmf.broker.protocols.mqtt.subscriptions import MqttSubscription
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.message import Section, encode_message

#: Name of the queue.
SESSIONS = "mqtt.sessions"

_SESSION, _SUBSCRIPTION, _RECEIVED, _RELEASED = "session", "subscription", "received", "released"
_WILL = "will"


@attrs.frozen
class StoredWill:
    """The will of a client that was connected, or whose will waited for its delay."""

    will: Will
    principal: Principal


@attrs.define
class StoredSession:
    """What the records say of a session.

    Attributes:
        client_id: of its client.
        user: who may go on with it.
        expiry: seconds for which it is kept; 0 for one of which the will alone is kept.
        subscriptions: of the session.
        received: packet ids of messages with QoS 2 that the client has not released.
        released: those of messages to the client that are released.
        will: to be published; None for none.
    """

    client_id: str
    user: str
    expiry: int
    subscriptions: list[MqttSubscription] = attrs.field(factory=list)
    received: list[int] = attrs.field(factory=list)
    released: list[int] = attrs.field(factory=list)
    will: StoredWill | None = None


class SessionRecords:
    """The records of a broker with a store; without one, nothing is recorded."""

    def __init__(self, operations: Operations) -> None:
        """Find the records of an earlier run."""
        self._registry = operations.registry
        self._queue = (
            None
            if operations.registry.recorder is None
            # Whoever put a record there could publish as anybody: wills have the user with whose rights they are sent.
            else SubjectQueue(SESSIONS, operations, reserved="MQTT")
        )

    def restore(self) -> Iterable[StoredSession]:
        """The sessions of an earlier run, and the wills of others."""
        found: dict[str, StoredSession] = {}
        parts: list[dict[str, object]] = []
        for message in self._queue or ():
            fields = dict(message.headers)
            if fields.get("kind") == _SESSION:
                client_id, expiry = str(fields.get("client-id")), fields.get("expiry")
                found[client_id] = StoredSession(
                    client_id, str(fields.get("user") or ""), expiry if isinstance(expiry, int) else 0
                )
            else:
                parts.append(fields)
        for fields in parts:
            client_id = str(fields.get("client-id"))
            if fields.get("kind") == _WILL and client_id not in found:
                found[client_id] = StoredSession(client_id, str(fields.get("user") or ""), 0)
            session = found.get(client_id)
            if session is not None:
                _add(session, fields)
        return found.values()

    def put_session(self, client_id: str, user: str, expiry: int) -> None:
        """A session is kept."""
        self._put(client_id, _SESSION, "", {"user": user, "expiry": expiry})

    def put_subscription(self, client_id: str, subscription: MqttSubscription) -> None:
        """A session has a subscription."""
        fields = {
            "filter": subscription.text,
            "group": subscription.group,
            "pattern": subscription.pattern,
            "qos": subscription.qos,
            "no-local": subscription.no_local,
            "retain-as-published": subscription.retain_as_published,
            "identifier": subscription.identifier,
        }
        self._put(client_id, _SUBSCRIPTION, subscription.text, fields)

    def put_will(self, client_id: str, stored: StoredWill) -> None:
        """A client has a will."""
        will = stored.will
        fields = {
            "user": stored.principal.user,
            "address": stored.principal.address,
            "protocol": stored.principal.protocol,
            # Application properties are no lists.
            "groups": json.dumps(sorted(stored.principal.groups)),
            "topic": will.topic,
            "payload": b64encode(will.payload).decode(),
            "qos": will.qos,
            "retain": will.retain,
            "properties": b64encode(encode_properties(will.properties)).decode(),
        }
        self._put(client_id, _WILL, "", fields)

    def put_received(self, client_id: str, packet_id: int) -> None:
        """A message of the client with QoS 2 was received."""
        self._put(client_id, _RECEIVED, str(packet_id), {"packet-id": packet_id})

    def put_released(self, client_id: str, packet_id: int) -> None:
        """A message to the client with QoS 2 is released."""
        self._put(client_id, _RELEASED, str(packet_id), {"packet-id": packet_id})

    def remove_session(self, client_id: str) -> None:
        """A session is not kept any more; what else there is of it is removed one by one."""
        self._remove(client_id, _SESSION, "")

    def remove_subscription(self, client_id: str, text: str) -> None:
        """A subscription is gone."""
        self._remove(client_id, _SUBSCRIPTION, text)

    def remove_will(self, client_id: str) -> None:
        """The will of a client was published, or is not to be."""
        self._remove(client_id, _WILL, "")

    def remove_received(self, client_id: str, packet_id: int) -> None:
        """The client has released a message."""
        self._remove(client_id, _RECEIVED, str(packet_id))

    def remove_released(self, client_id: str, packet_id: int) -> None:
        """The client has completed a message."""
        self._remove(client_id, _RELEASED, str(packet_id))

    def _put(self, client_id: str, kind: str, detail: str, fields: dict[str, object]) -> None:
        if self._queue is None:
            return
        message = AmqpMessage(
            durable=True,
            subject=_key(client_id, kind, detail),
            application_properties={"kind": kind, "client-id": client_id, **fields},
            section=Section.DATA,
            body=b"",
        )
        self._queue.put(read_message(encode_message(message), self._registry.clock()))

    def _remove(self, client_id: str, kind: str, detail: str) -> None:
        if self._queue is not None:
            self._queue.remove(_key(client_id, kind, detail))


def _key(client_id: str, kind: str, detail: str) -> str:
    return f"{kind}/{len(client_id)}/{client_id}/{detail}"


def _add(session: StoredSession, fields: dict[str, object]) -> None:
    packet_id = fields.get("packet-id")
    match fields.get("kind"):
        case "received" if isinstance(packet_id, int):
            session.received.append(packet_id)
        case "released" if isinstance(packet_id, int):
            session.released.append(packet_id)
        case "will":
            session.will = _stored_will(fields)
        case "subscription":
            qos, identifier = fields.get("qos"), fields.get("identifier")
            session.subscriptions.append(
                MqttSubscription(
                    str(fields.get("filter") or ""),
                    str(fields.get("group") or ""),
                    str(fields.get("pattern") or ""),
                    qos if isinstance(qos, int) else 0,
                    fields.get("no-local") is True,
                    fields.get("retain-as-published") is True,
                    identifier if isinstance(identifier, int) else 0,
                )
            )


def _stored_will(fields: dict[str, object]) -> StoredWill:
    qos = fields.get("qos")
    will = Will(
        str(fields.get("topic") or ""),
        b64decode(str(fields.get("payload") or "")),
        qos if isinstance(qos, int) else 0,
        fields.get("retain") is True,
        read_properties(PacketFields(b64decode(str(fields.get("properties") or "AA=="))), WILL),
    )
    user, address, protocol = (str(fields.get(name) or "") for name in ("user", "address", "protocol"))
    groups = frozenset(json.loads(str(fields.get("groups") or "[]")))
    return StoredWill(will, Principal(user, address, protocol, groups=groups))
