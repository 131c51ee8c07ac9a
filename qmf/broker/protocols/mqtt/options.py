"""What MQTT allows to clients of a broker."""

from __future__ import annotations

import attrs

from qmf.broker.protocols.mqtt.codec.values import MAX_LENGTH
from qmf.errors import CallerError

#: The smallest packet size that lets clients do anything.
_SMALLEST_PACKET = 512

_LIMITS = {
    "max_packet": (_SMALLEST_PACKET, MAX_LENGTH + 5),
    "receive_maximum": (1, 0xFFFF),
    "topic_aliases": (0, 0xFFFF),
    "max_session_expiry": (0, 0xFFFFFFFF),
    "max_subscriptions": (1, 0xFFFFFF),
    "sys_interval": (0, 0xFFFF),
}


def _in_limits(_: object, attribute: attrs.Attribute[int], value: int) -> None:
    least, most = _LIMITS[attribute.name]
    if not least <= value <= most:
        raise CallerError(f"{attribute.name} of MQTT must be from {least} to {most}, not {value!r}")


def _keep_alive(_: object, __: object, value: int | None) -> None:
    if value is not None and not 1 <= value <= 0xFFFF:
        raise CallerError(f"max_keep_alive of MQTT must be from 1 to 65535 seconds, or None, not {value!r}")


@attrs.frozen(kw_only=True)
class MqttOptions:
    """What MQTT allows to clients. CallerError if a value is invalid.

    Attributes:
        port: TCP port of MQTT, 0 for any free one; None for none. With a TLS context of the broker, it is for TLS
            alone, unless there is a `tls_port`.
        tls_port: TCP port for TLS beside it; None for none.
        max_packet: the largest packet that is accepted, in bytes.
        receive_maximum: messages with QoS 1 and 2 that a client of MQTT 5 may have sent and that are not acknowledged.
        topic_aliases: that a client may use, and that are used for it where it allows them.
        max_keep_alive: seconds that a client of MQTT 5 may ask for, and has if it asks for none; None for any.
        max_session_expiry: seconds for which sessions are kept at most; 4,294,967,295 for ever.
        max_subscriptions: of one session.
        sys_interval: seconds from one publication of the topics below ``$SYS`` to the next; 0 for no such topics.
    """

    port: int | None = None
    tls_port: int | None = None
    max_packet: int = attrs.field(default=4 * 1024 * 1024, validator=_in_limits)
    receive_maximum: int = attrs.field(default=1_000, validator=_in_limits)
    topic_aliases: int = attrs.field(default=32, validator=_in_limits)
    max_keep_alive: int | None = attrs.field(default=None, validator=_keep_alive)
    max_session_expiry: int = attrs.field(default=0xFFFFFFFF, validator=_in_limits)
    max_subscriptions: int = attrs.field(default=10_000, validator=_in_limits)
    sys_interval: int = attrs.field(default=10, validator=_in_limits)

    @property
    def enabled(self) -> bool:
        """There is a port."""
        return self.port is not None or self.tls_port is not None
