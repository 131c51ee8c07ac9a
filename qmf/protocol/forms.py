"""The two shapes in which QMFv2 content travels (QMF2.md 3.4)."""

from __future__ import annotations

import enum


class BodyForm(enum.Enum):
    """How a body is written. Receivers get no say: both are always understood."""

    DATA010 = "data"  #: a data section holding an AMQP 0-10 map or list; the only one that every peer understands
    VALUE = "amqp-value"  #: an amqp-value section; libqmf2 on AMQP 1.0 does not understand it
