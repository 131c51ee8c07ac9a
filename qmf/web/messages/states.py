r"""The life of a pull consumer as a table, for both protocols. No HTTP, no broker.

::

    READY --pull--> PULLING --consumed--> READY         auto-acknowledge: the message counts as acknowledged
                       |  \--delivered--> DELIVERED     acknowledged: the client has to say what became of it
                       +-----nothing----> READY
    DELIVERED --settle--> SETTLING --settled--> READY   the broker knows
        |                    |
        +-------lost---------+------> READY             the message went back to its node, and comes again

    CLOSED: by the client, or since it was idle. Final.
"""

from __future__ import annotations

import enum

from qmf._state_table import StateTable


class ConsumerState(enum.Enum):
    """State of a pull consumer."""

    READY = "ready"
    PULLING = "pulling"
    DELIVERED = "delivered"
    SETTLING = "settling"
    CLOSED = "closed"


class ConsumerTrigger(enum.Enum):
    """What happens to a pull consumer."""

    PULL = "pull"
    CONSUMED = "consumed"
    DELIVERED = "delivered"
    NOTHING = "nothing"
    SETTLE = "settle"
    SETTLED = "settled"
    LOST = "lost"
    CLOSE = "close"


TRANSITIONS: StateTable[ConsumerState, ConsumerTrigger, ConsumerState] = StateTable(
    "the consumer",
    {
        ConsumerState.READY: {
            ConsumerTrigger.PULL: ConsumerState.PULLING,
            ConsumerTrigger.CLOSE: ConsumerState.CLOSED,
        },
        ConsumerState.PULLING: {
            ConsumerTrigger.CONSUMED: ConsumerState.READY,
            ConsumerTrigger.DELIVERED: ConsumerState.DELIVERED,
            ConsumerTrigger.NOTHING: ConsumerState.READY,
            ConsumerTrigger.CLOSE: ConsumerState.CLOSED,
        },
        ConsumerState.DELIVERED: {
            ConsumerTrigger.SETTLE: ConsumerState.SETTLING,
            ConsumerTrigger.LOST: ConsumerState.READY,
            ConsumerTrigger.CLOSE: ConsumerState.CLOSED,
        },
        ConsumerState.SETTLING: {
            ConsumerTrigger.SETTLED: ConsumerState.READY,
            ConsumerTrigger.LOST: ConsumerState.READY,
            ConsumerTrigger.CLOSE: ConsumerState.CLOSED,
        },
        ConsumerState.CLOSED: {ConsumerTrigger.CLOSE: ConsumerState.CLOSED},
    },
)
