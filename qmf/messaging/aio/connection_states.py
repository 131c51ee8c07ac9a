"""The life of a connection as a table.

::

    NEW --open--> CONNECTING --connected--> ATTACHED --lost--> CONNECTING   (with reconnect)
     ^                |                        |
     |           failed, detach          detach, lost                        (lost: without reconnect)
     |                v                        v
     +-- never    DETACHED <-------------------+
                      |
                    attach --> CONNECTING

    close leads from every state to CLOSED, from which open leads on to CONNECTING.
"""

from __future__ import annotations

import enum

from qmf._state_table import StateTable
from qmf.messaging.exceptions import ConnectionError


class ConnectionState(enum.Enum):
    """State of a connection."""

    NEW = "not open"
    CONNECTING = "connecting"
    ATTACHED = "attached"
    DETACHED = "detached"
    CLOSED = "closed"


class ConnectionTrigger(enum.Enum):
    """What happens to a connection."""

    OPEN = "open"
    ATTACH = "attach"
    CONNECTED = "connected"
    RETRY = "retry"
    FAIL = "fail"
    DETACH = "detach"
    CLOSE = "close"


_S, _T = ConnectionState, ConnectionTrigger

TRANSITIONS = StateTable(
    "the connection",
    {
        _S.NEW: {
            _T.OPEN: _S.CONNECTING,
            _T.DETACH: _S.NEW,
            _T.CLOSE: _S.CLOSED,
        },
        _S.CONNECTING: {
            _T.CONNECTED: _S.ATTACHED,
            _T.FAIL: _S.DETACHED,
            _T.DETACH: _S.DETACHED,
            _T.CLOSE: _S.CLOSED,
        },
        _S.ATTACHED: {
            _T.RETRY: _S.CONNECTING,
            _T.FAIL: _S.DETACHED,
            _T.DETACH: _S.DETACHED,
            _T.CLOSE: _S.CLOSED,
            _T.ATTACH: _S.ATTACHED,
        },
        _S.DETACHED: {
            _T.ATTACH: _S.CONNECTING,
            _T.DETACH: _S.DETACHED,
            _T.CLOSE: _S.CLOSED,
        },
        _S.CLOSED: {
            _T.OPEN: _S.CONNECTING,
            _T.DETACH: _S.CLOSED,
            _T.CLOSE: _S.CLOSED,
        },
    },
    lambda text: ConnectionError(text=text),
)
