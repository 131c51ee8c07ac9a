"""The states of a client's link as a table, the same for links that send and links that receive.

::

    IDLE --attach--> ATTACHING --grant--> ATTACHED --reattach--> REATTACHING --grant--> ATTACHED
                         |                    |                    |     ^
                       refuse               pause               refuse   | reattach
                         v                    v                    v     |
                      REFUSED               PAUSED              REFUSED  |
                         |                    '--------------------------'
                         '--pause--> PAUSED, or --attach--> ATTACHING

The broker grants or refuses a link. When it detaches one, the link is attached again: at once, or after a pause when it
was detached too often. A refused link that receives is paused, too; one that sends is attached again for the next
message. `close` leads to CLOSING while there is a link, else to CLOSED. When the broker has confirmed the detach, or
the connection has ended, every state ends in CLOSED.
"""

from __future__ import annotations

import enum

from qmf._state_table import StateTable


class BusLinkState(enum.Enum):
    """State of a client's link."""

    IDLE = "not attached"
    ATTACHING = "being attached"
    ATTACHED = "attached"
    REATTACHING = "being attached again"
    PAUSED = "waiting to be attached again"
    REFUSED = "refused"
    CLOSING = "being closed"
    CLOSED = "closed"


class BusLinkTrigger(enum.Enum):
    """What changes the state of a client's link."""

    ATTACH = "attach"  #: the broker is asked for the link
    GRANT = "grant"  #: the broker attached it
    REFUSE = "refuse"  #: the broker detached it instead
    REATTACH = "reattach"  #: the broker is asked again, after it had detached or refused the link
    PAUSE = "pause"
    CLOSE = "close"
    END = "end"  #: the broker has confirmed the detach, or the connection has ended


_State, _Trigger = BusLinkState, BusLinkTrigger

_ENDED = {_Trigger.END: _State.CLOSED}
_UNATTACHED = {**_ENDED, _Trigger.CLOSE: _State.CLOSED}
_REQUESTED = {**_ENDED, _Trigger.CLOSE: _State.CLOSING}

TRANSITIONS = StateTable(
    "a link",
    {
        _State.IDLE: {**_UNATTACHED, _Trigger.ATTACH: _State.ATTACHING},
        _State.ATTACHING: {**_REQUESTED, _Trigger.GRANT: _State.ATTACHED, _Trigger.REFUSE: _State.REFUSED},
        _State.ATTACHED: {**_REQUESTED, _Trigger.REATTACH: _State.REATTACHING, _Trigger.PAUSE: _State.PAUSED},
        _State.REATTACHING: {**_REQUESTED, _Trigger.GRANT: _State.ATTACHED, _Trigger.REFUSE: _State.REFUSED},
        _State.PAUSED: {**_UNATTACHED, _Trigger.REATTACH: _State.REATTACHING},
        _State.REFUSED: {**_UNATTACHED, _Trigger.ATTACH: _State.ATTACHING, _Trigger.PAUSE: _State.PAUSED},
        _State.CLOSING: _REQUESTED,
        _State.CLOSED: _UNATTACHED,
    },
)
