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
    CONNECTED = "be connected"
    RETRY = "connect again"
    FAIL = "fail"
    DETACH = "detach"
    CLOSE = "close"


_S, _T = ConnectionState, ConnectionTrigger

TRANSITIONS: dict[tuple[ConnectionState, ConnectionTrigger], ConnectionState] = {
    (_S.NEW, _T.OPEN): _S.CONNECTING,
    (_S.NEW, _T.DETACH): _S.NEW,
    (_S.NEW, _T.CLOSE): _S.CLOSED,
    (_S.CONNECTING, _T.CONNECTED): _S.ATTACHED,
    (_S.CONNECTING, _T.FAIL): _S.DETACHED,
    (_S.CONNECTING, _T.DETACH): _S.DETACHED,
    (_S.CONNECTING, _T.CLOSE): _S.CLOSED,
    (_S.ATTACHED, _T.RETRY): _S.CONNECTING,
    (_S.ATTACHED, _T.FAIL): _S.DETACHED,
    (_S.ATTACHED, _T.DETACH): _S.DETACHED,
    (_S.ATTACHED, _T.CLOSE): _S.CLOSED,
    (_S.ATTACHED, _T.ATTACH): _S.ATTACHED,
    (_S.DETACHED, _T.ATTACH): _S.CONNECTING,
    (_S.DETACHED, _T.DETACH): _S.DETACHED,
    (_S.DETACHED, _T.CLOSE): _S.CLOSED,
    (_S.CLOSED, _T.OPEN): _S.CONNECTING,
    (_S.CLOSED, _T.DETACH): _S.CLOSED,
    (_S.CLOSED, _T.CLOSE): _S.CLOSED,
}


def next_state(state: ConnectionState, trigger: ConnectionTrigger) -> ConnectionState:
    """The state that follows.

    Raises:
        ConnectionError: the trigger is not possible in this state; nothing changed.
    """
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise ConnectionError(text=f"a connection that is {state.value} cannot {trigger.value}") from None
