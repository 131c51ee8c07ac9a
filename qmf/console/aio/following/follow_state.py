"""The states in which the objects of one agent are followed, and the events that move them on.

With a subscription::

             SUBSCRIBE             COMPLETE
    STARTING ───────▶ SNAPSHOT ───────────▶ UPDATING
       ▲                 │ OUTDATE             │ OUTDATE
       │                 └──────────┬──────────┘
       │          RESUME            ▼
       └──────────────────────── OUTDATED

- SNAPSHOT: the agent publishes all objects, in one or several messages, the last of which is COMPLETE.
- UPDATING: the agent publishes what changes.
- OUTDATED: a publication is missing, has a class that is not known, or the agent ended the subscription or restarted.
  Publications are ignored until the subscription is replaced.

With queries::

             QUERY             ANSWER
    STARTING ─────▶ QUERYING ────────▶ PAUSED
       ▲                                  │ RESUME
       └──────────────────────────────────┘

A subscription that ends without being OUTDATED is resumed, too. From every state FAIL leads to FAILED, which RESUME
leaves after a pause; and END leads to ENDED, the final state. OUTDATE matters to subscriptions only: in other states it
changes nothing, because the next request uses what is known then.

An event that `TRANSITIONS` doesn't list raises `IllegalEvent` and changes nothing.
"""

from __future__ import annotations

import enum

from qmf._state_table import StateTable


class FollowState(enum.Enum):
    """How far the following of one agent is."""

    STARTING = "starting"
    SNAPSHOT = "snapshot"
    UPDATING = "updating"
    OUTDATED = "outdated"
    QUERYING = "querying"
    PAUSED = "paused"
    FAILED = "failed"
    ENDED = "ended"

    @property
    def subscribed(self) -> bool:
        """True while publications are accepted."""
        return self in (FollowState.SNAPSHOT, FollowState.UPDATING)


class FollowEvent(enum.Enum):
    """What can happen while an agent is followed."""

    SUBSCRIBE = "subscribe"
    COMPLETE = "complete"
    OUTDATE = "outdate"
    QUERY = "query"
    ANSWER = "answer"
    RESUME = "resume"
    FAIL = "fail"
    END = "end"


_ALWAYS = {FollowEvent.FAIL: FollowState.FAILED, FollowEvent.END: FollowState.ENDED}

TRANSITIONS = StateTable(
    "the following of an agent",
    {
        FollowState.STARTING: {
            **_ALWAYS,
            FollowEvent.SUBSCRIBE: FollowState.SNAPSHOT,
            FollowEvent.QUERY: FollowState.QUERYING,
            FollowEvent.OUTDATE: FollowState.STARTING,
        },
        FollowState.SNAPSHOT: {
            **_ALWAYS,
            FollowEvent.COMPLETE: FollowState.UPDATING,
            FollowEvent.OUTDATE: FollowState.OUTDATED,
            FollowEvent.RESUME: FollowState.STARTING,
        },
        FollowState.UPDATING: {
            **_ALWAYS,
            FollowEvent.OUTDATE: FollowState.OUTDATED,
            FollowEvent.RESUME: FollowState.STARTING,
        },
        FollowState.OUTDATED: {
            **_ALWAYS,
            FollowEvent.OUTDATE: FollowState.OUTDATED,
            FollowEvent.RESUME: FollowState.STARTING,
        },
        FollowState.QUERYING: {
            **_ALWAYS,
            FollowEvent.ANSWER: FollowState.PAUSED,
            FollowEvent.OUTDATE: FollowState.QUERYING,
        },
        FollowState.PAUSED: {
            **_ALWAYS,
            FollowEvent.RESUME: FollowState.STARTING,
            FollowEvent.OUTDATE: FollowState.PAUSED,
        },
        FollowState.FAILED: {
            FollowEvent.RESUME: FollowState.STARTING,
            FollowEvent.OUTDATE: FollowState.FAILED,
            FollowEvent.END: FollowState.ENDED,
        },
        FollowState.ENDED: {FollowEvent.OUTDATE: FollowState.ENDED},
    },
)
