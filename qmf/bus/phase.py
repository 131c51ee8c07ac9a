"""The life of a bus as a table.

::

    NEW --connect--> CONNECTING --up--> UP --lost--> WAITING --connect--> CONNECTING
                         |               |              |
                       failed          end            end
                         v               v              v
                   NEW or WAITING     CLOSED         CLOSED

A first connection that fails leads back to NEW (the caller is told and may open again), a later one to WAITING.
`close` ends every phase; CLOSED is for good.
"""

from __future__ import annotations

import enum

from qmf.errors import CallerError


class Phase(enum.Enum):
    """Where a bus is in its life."""

    NEW = "not opened yet"
    CONNECTING = "connecting"
    UP = "connected"
    WAITING = "waiting to connect again"
    CLOSED = "closed"


class Step(enum.Enum):
    """What happens to a bus."""

    CONNECT = "connect"
    UP = "use"
    FAILED = "give up"
    LOST = "lose"
    END = "close"


TABLE: dict[tuple[Phase, Step], Phase] = {
    (Phase.NEW, Step.CONNECT): Phase.CONNECTING,
    (Phase.NEW, Step.END): Phase.CLOSED,
    (Phase.CONNECTING, Step.UP): Phase.UP,
    (Phase.CONNECTING, Step.FAILED): Phase.NEW,
    (Phase.CONNECTING, Step.LOST): Phase.WAITING,
    (Phase.CONNECTING, Step.END): Phase.CLOSED,
    (Phase.UP, Step.LOST): Phase.WAITING,
    (Phase.UP, Step.END): Phase.CLOSED,
    (Phase.WAITING, Step.CONNECT): Phase.CONNECTING,
    (Phase.WAITING, Step.END): Phase.CLOSED,
    (Phase.CLOSED, Step.END): Phase.CLOSED,
}


class PhaseError(CallerError):
    """Something was asked of a bus that it cannot do now, e.g. to open it a second time."""


def after(phase: Phase, step: Step) -> Phase:
    """The next phase.

    Raises:
        PhaseError: the step is not possible in this phase; nothing changed.
    """
    try:
        return TABLE[phase, step]
    except KeyError:
        raise PhaseError(f"cannot {step.value} a bus that is {phase.value}") from None
