"""From when on messages may be delivered, as their senders ask for it.

They ask by the message annotations ``x-opt-delivery-time``, in milliseconds since 1970, or ``x-opt-delivery-delay``, in
milliseconds; the first takes precedence. These are the names of the JMS mapping of AMQP.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from qmf.errors import DecodeError

DELIVERY_TIME, DELIVERY_DELAY = "x-opt-delivery-time", "x-opt-delivery-delay"


class InvalidAnnotation(DecodeError):
    """A message annotation has a value of a wrong type."""


def delivery_time(annotations: Mapping[Any, object], now: float) -> float | None:
    """From when on a message may be delivered, in seconds of the broker's clock; None for at once.

    Args:
        now: when it was received, by the same clock.

    Raises:
        InvalidAnnotation: a value is not a number.
    """
    if (at := _milliseconds(annotations, DELIVERY_TIME)) is not None:
        wait = at / 1000 - time.time()
    elif (delay := _milliseconds(annotations, DELIVERY_DELAY)) is not None:
        wait = delay / 1000
    else:
        return None
    return now + wait if wait > 0 else None


def _milliseconds(annotations: Mapping[Any, object], name: str) -> int | None:
    value = annotations.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise InvalidAnnotation(f"message annotation {name}: must be a number of milliseconds, not {value!r:.60}")
