"""The states of a persistent link as a table, the same for links that send and links that receive.

::

    DETACHED --attach--> ATTACHING --grant--> ATTACHED
        ^ |                  |                   |
        | '--- pause ---.    '------ lose -------'    the broker refused or ended the link, or the connection is gone
        |               v                |
        |            PAUSED --attach-->  |
        '-------------------------------'

A link that is gone is DETACHED, until it is attached again: at once, on the next connection, or after a pause in which
it is PAUSED. FAILED: it is not attached again, since the broker has ended or refused it. CLOSED: by the program. Both
are final.
"""

from __future__ import annotations

import enum

from qmf._state_table import StateTable


class LinkState(enum.Enum):
    """State of a link."""

    DETACHED = "detached"
    ATTACHING = "attaching"
    ATTACHED = "attached"
    PAUSED = "waiting to be attached again"
    FAILED = "failed"
    CLOSED = "closed"


class LinkTrigger(enum.Enum):
    """What changes the state of a link."""

    ATTACH = "attach"  #: the broker is asked for the link
    GRANT = "grant"  #: the broker has attached it
    LOSE = "lose"
    PAUSE = "pause"
    FAIL = "fail"
    CLOSE = "close"


_State, _Trigger = LinkState, LinkTrigger

_WANTED = {_Trigger.LOSE: _State.DETACHED, _Trigger.FAIL: _State.FAILED, _Trigger.CLOSE: _State.CLOSED}

TRANSITIONS = StateTable(
    "the link",
    {
        _State.DETACHED: {**_WANTED, _Trigger.ATTACH: _State.ATTACHING, _Trigger.PAUSE: _State.PAUSED},
        _State.ATTACHING: {**_WANTED, _Trigger.GRANT: _State.ATTACHED},
        _State.ATTACHED: _WANTED,
        _State.PAUSED: {**_WANTED, _Trigger.ATTACH: _State.ATTACHING},
        _State.FAILED: {_Trigger.LOSE: _State.FAILED, _Trigger.CLOSE: _State.CLOSED},
        _State.CLOSED: {_Trigger.LOSE: _State.CLOSED, _Trigger.CLOSE: _State.CLOSED},
    },
)
