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

TRANSITIONS: dict[tuple[BusLinkState, BusLinkTrigger], BusLinkState] = {
    (_State.IDLE, _Trigger.ATTACH): _State.ATTACHING,
    (_State.ATTACHING, _Trigger.GRANT): _State.ATTACHED,
    (_State.ATTACHING, _Trigger.REFUSE): _State.REFUSED,
    (_State.ATTACHED, _Trigger.REATTACH): _State.REATTACHING,
    (_State.ATTACHED, _Trigger.PAUSE): _State.PAUSED,
    (_State.REATTACHING, _Trigger.GRANT): _State.ATTACHED,
    (_State.REATTACHING, _Trigger.REFUSE): _State.REFUSED,
    (_State.PAUSED, _Trigger.REATTACH): _State.REATTACHING,
    (_State.REFUSED, _Trigger.ATTACH): _State.ATTACHING,
    (_State.REFUSED, _Trigger.PAUSE): _State.PAUSED,
    **dict.fromkeys(
        ((state, _Trigger.CLOSE) for state in (_State.ATTACHING, _State.ATTACHED, _State.REATTACHING, _State.CLOSING)),
        _State.CLOSING,
    ),
    **dict.fromkeys(
        ((state, _Trigger.CLOSE) for state in (_State.IDLE, _State.PAUSED, _State.REFUSED, _State.CLOSED)),
        _State.CLOSED,
    ),
    **dict.fromkeys(((state, _Trigger.END) for state in _State), _State.CLOSED),
}


def next_link_state(state: BusLinkState, trigger: BusLinkTrigger) -> BusLinkState:
    """The state that a trigger leads to.

    Raises:
        RuntimeError: the trigger is not possible in this state, which is a bug; nothing changed.
    """
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise RuntimeError(f"cannot {trigger.value} a link that is {state.value}") from None
