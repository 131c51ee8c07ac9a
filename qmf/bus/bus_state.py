"""The states of a bus as a table.

::

    NEW --connect--> CONNECTING --connected--> CONNECTED --lost--> WAITING --connect--> CONNECTING
                         |                         |                  |
                   failed, lost                  close              close
                         v                         v                  v
                   NEW, WAITING                 CLOSED             CLOSED

When the first attempt to connect fails, the bus is NEW again: the caller gets the error, and may open it again. When a
later attempt fails, it waits for the next one. `close` is possible in every state, and final.
"""

from __future__ import annotations

import enum

from qmf.errors import CallerError


class BusState(enum.Enum):
    """State of a bus."""

    NEW = "not opened yet"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    WAITING = "waiting to connect again"
    CLOSED = "closed"


class BusTrigger(enum.Enum):
    """What changes the state of a bus."""

    CONNECT = "connect"  #: an attempt to connect starts
    CONNECTED = "use"  #: it has succeeded, and subscriptions are in place
    FAILED = "give up"  #: the first attempt has failed
    LOST = "lose"  #: the connection has ended, or a later attempt has failed
    CLOSE = "close"


TRANSITIONS: dict[tuple[BusState, BusTrigger], BusState] = {
    (BusState.NEW, BusTrigger.CONNECT): BusState.CONNECTING,
    (BusState.NEW, BusTrigger.CLOSE): BusState.CLOSED,
    (BusState.CONNECTING, BusTrigger.CONNECTED): BusState.CONNECTED,
    (BusState.CONNECTING, BusTrigger.FAILED): BusState.NEW,
    (BusState.CONNECTING, BusTrigger.LOST): BusState.WAITING,
    (BusState.CONNECTING, BusTrigger.CLOSE): BusState.CLOSED,
    (BusState.CONNECTED, BusTrigger.LOST): BusState.WAITING,
    (BusState.CONNECTED, BusTrigger.CLOSE): BusState.CLOSED,
    (BusState.WAITING, BusTrigger.CONNECT): BusState.CONNECTING,
    (BusState.WAITING, BusTrigger.CLOSE): BusState.CLOSED,
    (BusState.CLOSED, BusTrigger.CLOSE): BusState.CLOSED,
}


class BusStateError(CallerError):
    """A call is not possible in the bus's state, e.g. to open it a second time."""


def next_state(state: BusState, trigger: BusTrigger) -> BusState:
    """The state that a trigger leads to.

    Raises:
        BusStateError: the trigger is not possible in this state; nothing changed.
    """
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise BusStateError(f"cannot {trigger.value} a bus that is {state.value}") from None
