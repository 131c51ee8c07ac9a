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

from qmf._state_table import StateTable
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


TRANSITIONS = StateTable(
    "the link",
    {
        LinkState.DETACHED: {
            LinkTrigger.ATTACH: LinkState.ATTACHING,
            LinkTrigger.LOST: LinkState.DETACHED,
            LinkTrigger.FAIL: LinkState.FAILED,
            LinkTrigger.CLOSE: LinkState.CLOSED,
        },
        LinkState.ATTACHING: {
            LinkTrigger.GRANTED: LinkState.ATTACHED,
            LinkTrigger.LOST: LinkState.DETACHED,
            LinkTrigger.FAIL: LinkState.FAILED,
            LinkTrigger.CLOSE: LinkState.CLOSED,
        },
        LinkState.ATTACHED: {
            LinkTrigger.LOST: LinkState.DETACHED,
            LinkTrigger.FAIL: LinkState.FAILED,
            LinkTrigger.CLOSE: LinkState.CLOSED,
        },
        LinkState.FAILED: {
            LinkTrigger.LOST: LinkState.FAILED,
            LinkTrigger.CLOSE: LinkState.CLOSED,
        },
        LinkState.CLOSED: {
            LinkTrigger.LOST: LinkState.CLOSED,
            LinkTrigger.CLOSE: LinkState.CLOSED,
        },
    },
    lambda text: InternalError(text=text),
)
