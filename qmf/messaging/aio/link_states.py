"""The life of a sender or receiver as a table.

::

    DETACHED --attach--> ATTACHING --granted--> ATTACHED
        ^                    |                     |
        +------- lost -------+-------- lost -------+      the connection is gone; the link is attached again with it

    FAILED: the broker refused or ended the link, or the node is not as demanded. CLOSED: the program closed it.
    Both are final.
"""

from __future__ import annotations

import enum

from qmf.messaging.exceptions import InternalError


class LinkState(enum.Enum):
    """State of a sender or receiver."""

    DETACHED = "detached"
    ATTACHING = "attaching"
    ATTACHED = "attached"
    FAILED = "failed"
    CLOSED = "closed"


class LinkTrigger(enum.Enum):
    """What happens to a sender or receiver."""

    ATTACH = "attach"
    GRANTED = "granted"
    LOST = "lost"
    FAIL = "fail"
    CLOSE = "close"


TRANSITIONS: dict[tuple[LinkState, LinkTrigger], LinkState] = {
    (LinkState.DETACHED, LinkTrigger.ATTACH): LinkState.ATTACHING,
    (LinkState.DETACHED, LinkTrigger.LOST): LinkState.DETACHED,
    (LinkState.DETACHED, LinkTrigger.FAIL): LinkState.FAILED,
    (LinkState.DETACHED, LinkTrigger.CLOSE): LinkState.CLOSED,
    (LinkState.ATTACHING, LinkTrigger.GRANTED): LinkState.ATTACHED,
    (LinkState.ATTACHING, LinkTrigger.LOST): LinkState.DETACHED,
    (LinkState.ATTACHING, LinkTrigger.FAIL): LinkState.FAILED,
    (LinkState.ATTACHING, LinkTrigger.CLOSE): LinkState.CLOSED,
    (LinkState.ATTACHED, LinkTrigger.LOST): LinkState.DETACHED,
    (LinkState.ATTACHED, LinkTrigger.FAIL): LinkState.FAILED,
    (LinkState.ATTACHED, LinkTrigger.CLOSE): LinkState.CLOSED,
    (LinkState.FAILED, LinkTrigger.LOST): LinkState.FAILED,
    (LinkState.FAILED, LinkTrigger.CLOSE): LinkState.CLOSED,
    (LinkState.CLOSED, LinkTrigger.LOST): LinkState.CLOSED,
    (LinkState.CLOSED, LinkTrigger.CLOSE): LinkState.CLOSED,
}


def next_state(state: LinkState, trigger: LinkTrigger) -> LinkState:
    """The state that follows.

    Raises:
        InternalError: the trigger is not possible in this state; nothing changed.
    """
    try:
        return TRANSITIONS[state, trigger]
    except KeyError:
        raise InternalError(text=f"a link that is {state.value} cannot {trigger.value}") from None
