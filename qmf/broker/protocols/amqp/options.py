"""What AMQP 1.0 allows to clients of a broker."""

from __future__ import annotations

import math

import attrs

from qmf.bus.engine.values import MAX_FRAME, MAX_MESSAGE
from qmf.errors import CallerError

#: AMQP 1.0 section 2.8.7: every peer must accept frames of this size.
_SMALLEST_FRAME = 512


def _idle_timeout(_: object, __: object, value: float | None) -> None:
    if value is not None and not 0 < value < math.inf:
        raise CallerError(f"idle_timeout of AMQP must be a positive number of seconds, or None, not {value!r}")


def _max_frame(_: object, __: object, value: int) -> None:
    if value < _SMALLEST_FRAME:
        raise CallerError(f"max_frame of AMQP must be at least {_SMALLEST_FRAME} bytes, not {value!r}")


def _positive(_: object, attribute: attrs.Attribute[int], value: int) -> None:
    if value < 1:
        raise CallerError(f"{attribute.name} of AMQP must be at least 1, not {value!r}")


@attrs.frozen(kw_only=True)
class AmqpOptions:
    """What AMQP 1.0 allows to clients. CallerError if a value is invalid.

    Attributes:
        idle_timeout: seconds without a frame after which a client counts as dead, None for never; it is asked for
            heartbeats at twice that rate. Clients that block in their own code send none meanwhile, so this is longer
            than what `AmqpBus` asks of a broker.
        max_frame, max_message: largest frame and message that are accepted, in bytes.
        max_sessions, max_links: that one connection may have. Consoles and agents have one session and fewer than ten
            links.
    """

    idle_timeout: float | None = attrs.field(default=120.0, validator=_idle_timeout)
    max_frame: int = attrs.field(default=MAX_FRAME, validator=_max_frame)
    max_message: int = attrs.field(default=MAX_MESSAGE, validator=_positive)
    max_sessions: int = attrs.field(default=1_000, validator=_positive)
    max_links: int = attrs.field(default=1_000, validator=_positive)
