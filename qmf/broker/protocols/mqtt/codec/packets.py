"""The packets of MQTT as values, the same for both versions: what 3.1.1 does not have is empty there.

The packet id of an answer is that of what it answers. Codes are a `ReasonCode`, and success in 3.1.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import attrs

from qmf.broker.protocols.mqtt.codec.properties import NO_PROPERTIES, Properties
from qmf.broker.protocols.mqtt.codec.values import PacketType, ReasonCode, Version


@attrs.frozen
class Will:
    """What is published when a client is lost.

    Attributes:
        topic, payload, qos, retain, properties: of the message; among the properties is the delay.
    """

    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    properties: Properties = NO_PROPERTIES


@attrs.frozen
class Connect:
    """CONNECT.

    Attributes:
        version: that the client speaks.
        client_id: empty to be given one.
        clean: begin a new session; 3.1.1: which ends with the connection.
        keep_alive: seconds; 0 for none.
        will: None for none.
        username, password: None where there is none.
        properties: of the connection.
    """

    type: ClassVar = PacketType.CONNECT

    version: Version = Version.V5
    client_id: str = ""
    clean: bool = True
    keep_alive: int = 0
    will: Will | None = None
    username: str | None = None
    password: bytes | None = None
    properties: Properties = NO_PROPERTIES


@attrs.frozen
class ConnAck:
    """CONNACK.

    Attributes:
        session_present: the session was there already.
        code: a `ReasonCode`; in 3.1.1 a return code from 0 to 5.
        properties: of the broker.
    """

    type: ClassVar = PacketType.CONNACK

    session_present: bool = False
    code: int = ReasonCode.SUCCESS
    properties: Properties = NO_PROPERTIES


@attrs.define
class Publish:
    """PUBLISH. It is never changed; it is not frozen, since frozen objects take longer to create.

    Attributes:
        topic: empty with a topic alias.
        payload: the message.
        qos: from 0 to 2.
        retain, duplicate: flags.
        packet_id: None with QoS 0.
        properties: of the message.
    """

    type: ClassVar = PacketType.PUBLISH

    topic: str
    payload: bytes = b""
    qos: int = 0
    retain: bool = False
    duplicate: bool = False
    packet_id: int | None = None
    properties: Properties = NO_PROPERTIES


@attrs.define
class MessageAnswer:
    """PUBACK, PUBREC, PUBREL or PUBCOMP. It is never changed; not frozen, as `Publish`."""

    type: PacketType
    packet_id: int
    code: int = ReasonCode.SUCCESS
    properties: Properties = NO_PROPERTIES


@attrs.frozen
class SubscriptionRequest:
    """A subscription that a client asks for.

    Attributes:
        topic_filter: which topics.
        qos: the highest one for its messages.
        no_local: without the client's own messages.
        retain_as_published: messages keep their flag `retain`.
        retain_handling: when retained messages are sent: 0 always, 1 for a new subscription, 2 never.
    """

    topic_filter: str
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


@attrs.frozen
class Subscribe:
    """SUBSCRIBE, with at least one subscription; the identifier of these is among the properties."""

    type: ClassVar = PacketType.SUBSCRIBE

    packet_id: int
    subscriptions: Sequence[SubscriptionRequest]
    properties: Properties = NO_PROPERTIES


@attrs.frozen
class SubAck:
    """SUBACK, with a code for each subscription."""

    type: ClassVar = PacketType.SUBACK

    packet_id: int
    codes: Sequence[int]
    properties: Properties = NO_PROPERTIES


@attrs.frozen
class Unsubscribe:
    """UNSUBSCRIBE, with at least one filter."""

    type: ClassVar = PacketType.UNSUBSCRIBE

    packet_id: int
    topic_filters: Sequence[str]
    properties: Properties = NO_PROPERTIES


@attrs.frozen
class UnsubAck:
    """UNSUBACK, with a code for each filter; with none in 3.1.1."""

    type: ClassVar = PacketType.UNSUBACK

    packet_id: int
    codes: Sequence[int] = ()
    properties: Properties = NO_PROPERTIES


@attrs.frozen
class Ping:
    """PINGREQ or PINGRESP."""

    type: PacketType = PacketType.PINGREQ


@attrs.frozen
class Disconnect:
    """DISCONNECT."""

    type: ClassVar = PacketType.DISCONNECT

    code: int = ReasonCode.SUCCESS
    properties: Properties = NO_PROPERTIES


@attrs.frozen
class Auth:
    """AUTH, of MQTT 5 alone; the method and its data are among the properties."""

    type: ClassVar = PacketType.AUTH

    code: int = ReasonCode.SUCCESS
    properties: Properties = NO_PROPERTIES


Packet = (
    Connect | ConnAck | Publish | MessageAnswer | Subscribe | SubAck | Unsubscribe | UnsubAck | Ping | Disconnect | Auth
)
