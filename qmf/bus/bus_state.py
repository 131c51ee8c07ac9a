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

from qmf._state_table import StateTable
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
    CONNECTED = "connected"  #: it has succeeded, and subscriptions are in place
    FAILED = "failed"  #: the first attempt has failed
    LOST = "lost"  #: the connection has ended, or a later attempt has failed
    CLOSE = "close"


class BusStateError(CallerError):
    """A call is not possible in the bus's state, e.g. to open it a second time."""


TRANSITIONS = StateTable(
    "a bus",
    {
        BusState.NEW: {
            BusTrigger.CONNECT: BusState.CONNECTING,
            BusTrigger.CLOSE: BusState.CLOSED,
        },
        BusState.CONNECTING: {
            BusTrigger.CONNECTED: BusState.CONNECTED,
            BusTrigger.FAILED: BusState.NEW,
            BusTrigger.LOST: BusState.WAITING,
            BusTrigger.CLOSE: BusState.CLOSED,
        },
        BusState.CONNECTED: {
            BusTrigger.LOST: BusState.WAITING,
            BusTrigger.CLOSE: BusState.CLOSED,
        },
        BusState.WAITING: {
            BusTrigger.CONNECT: BusState.CONNECTING,
            BusTrigger.CLOSE: BusState.CLOSED,
        },
        BusState.CLOSED: {
            BusTrigger.CLOSE: BusState.CLOSED,
        },
    },
    BusStateError,
)
