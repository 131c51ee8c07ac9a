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


class BusState(enum.Enum):
    """Where a bus is in its life."""

    NEW = "not opened yet"
    CONNECTING = "connecting"
    UP = "connected"
    WAITING = "waiting to connect again"
    CLOSED = "closed"


class BusTrigger(enum.Enum):
    """What happens to a bus."""

    CONNECT = "connect"
    UP = "use"
    FAILED = "give up"
    LOST = "lose"
    END = "close"


TRANSITIONS: dict[tuple[BusState, BusTrigger], BusState] = {
    (BusState.NEW, BusTrigger.CONNECT): BusState.CONNECTING,
    (BusState.NEW, BusTrigger.END): BusState.CLOSED,
    (BusState.CONNECTING, BusTrigger.UP): BusState.UP,
    (BusState.CONNECTING, BusTrigger.FAILED): BusState.NEW,
    (BusState.CONNECTING, BusTrigger.LOST): BusState.WAITING,
    (BusState.CONNECTING, BusTrigger.END): BusState.CLOSED,
    (BusState.UP, BusTrigger.LOST): BusState.WAITING,
    (BusState.UP, BusTrigger.END): BusState.CLOSED,
    (BusState.WAITING, BusTrigger.CONNECT): BusState.CONNECTING,
    (BusState.WAITING, BusTrigger.END): BusState.CLOSED,
    (BusState.CLOSED, BusTrigger.END): BusState.CLOSED,
}


class BusStateError(CallerError):
    """Something was asked of a bus that it cannot do now, e.g. to open it a second time."""


def next_state(phase: BusState, step: BusTrigger) -> BusState:
    """The next phase.

    Raises:
        BusStateError: the step is not possible in this phase; nothing changed.
    """
    try:
        return TRANSITIONS[phase, step]
    except KeyError:
        raise BusStateError(f"cannot {step.value} a bus that is {phase.value}") from None
