"""The table of the states in which an agent is followed."""

from __future__ import annotations

from qmf.console.aio.following.follow_state import (
    TRANSITIONS,
    FollowEvent,
    FollowState,
)


def test_no_event_leaves_the_end() -> None:
    assert set(TRANSITIONS.rows[FollowState.ENDED].values()) == {FollowState.ENDED}
    assert all(FollowEvent.END in row for state, row in TRANSITIONS.rows.items() if state is not FollowState.ENDED)


def test_an_outdated_subscription_accepts_no_publications_until_it_is_replaced() -> None:
    for state in (FollowState.SNAPSHOT, FollowState.UPDATING):
        assert state.subscribed
        outdated = TRANSITIONS.next(state, FollowEvent.OUTDATE)
        assert not outdated.subscribed
        assert (
            TRANSITIONS.next(TRANSITIONS.next(outdated, FollowEvent.RESUME), FollowEvent.SUBSCRIBE)
            is FollowState.SNAPSHOT
        )
