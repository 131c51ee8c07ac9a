"""The states of a connection that reconnects as a table: of buses, and of what else is built on `qmf/bus/client/`.

::

    NEW --connect--> CONNECTING --connected--> CONNECTED --lost--> CONNECTING
     ^                |      |                    |
     '---- failed ----'    detach               detach
                             v                    v
                          DETACHED <--------------'
                             '--connect--> CONNECTING

When the first attempts to connect fail, the connection is NEW again: the caller gets the error, and may open it again.
After a loss there are further attempts, until one succeeds or there shall be no more: it is DETACHED then, as after the
program's own detach. `close` is possible in every state, and final.
"""

from __future__ import annotations

import enum

from qmf._state_table import StateTable
from qmf.errors import CallerError


class ConnectionState(enum.Enum):
    """State of a connection."""

    NEW = "not opened yet"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    DETACHED = "detached"
    CLOSED = "closed"


class ConnectionTrigger(enum.Enum):
    """What changes the state of a connection."""

    CONNECT = "connect"  #: attempts to connect begin
    CONNECTED = "connected"  #: one has succeeded, and all links are in place
    FAILED = "failed"  #: the first attempts have failed
    LOST = "lost"  #: the network connection has ended, and further attempts follow
    DETACH = "detach"  #: by the program, or since there are no further attempts
    CLOSE = "close"


class BusStateError(CallerError):
    """A call is not possible in the bus's state, e.g. to open it a second time."""


_State, _Trigger = ConnectionState, ConnectionTrigger

TRANSITIONS = StateTable(
    "the connection",
    {
        _State.NEW: {
            _Trigger.CONNECT: _State.CONNECTING,
            _Trigger.CLOSE: _State.CLOSED,
        },
        _State.CONNECTING: {
            _Trigger.CONNECTED: _State.CONNECTED,
            _Trigger.FAILED: _State.NEW,
            _Trigger.DETACH: _State.DETACHED,
            _Trigger.CLOSE: _State.CLOSED,
        },
        _State.CONNECTED: {
            _Trigger.LOST: _State.CONNECTING,
            _Trigger.DETACH: _State.DETACHED,
            _Trigger.CLOSE: _State.CLOSED,
        },
        _State.DETACHED: {
            _Trigger.CONNECT: _State.CONNECTING,
            _Trigger.CLOSE: _State.CLOSED,
        },
        _State.CLOSED: {
            _Trigger.CLOSE: _State.CLOSED,
        },
    },
    BusStateError,
)
