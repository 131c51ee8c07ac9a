"""The table of the states in which an agent is followed."""

from __future__ import annotations

import itertools

import pytest

from qmf.console.aio.following.follow_state import (
    TRANSITIONS,
    FollowEvent,
    FollowState,
    IllegalFollowEvent,
    next_state,
)


@pytest.mark.parametrize(("state", "event"), list(itertools.product(FollowState, FollowEvent)))
def test_an_event_leads_to_the_state_in_the_table_or_is_illegal(state: FollowState, event: FollowEvent) -> None:
    following = TRANSITIONS[state].get(event)
    if following is None:
        with pytest.raises(IllegalFollowEvent, match=f"{state.value}: no event {event.value}"):
            next_state(state, event)
    else:
        assert next_state(state, event) is following


def test_every_state_can_be_reached_from_the_first() -> None:
    reached, new = set(), {FollowState.STARTING}
    while new:
        reached |= new
        new = {following for state in new for following in TRANSITIONS[state].values()} - reached
    assert reached == set(FollowState)


def test_no_event_leaves_the_end() -> None:
    assert set(TRANSITIONS[FollowState.ENDED].values()) == {FollowState.ENDED}
    assert all(FollowEvent.END in row for state, row in TRANSITIONS.items() if state is not FollowState.ENDED)


def test_an_outdated_subscription_accepts_no_publications_until_it_is_replaced() -> None:
    for state in (FollowState.SNAPSHOT, FollowState.UPDATING):
        assert state.subscribed
        outdated = next_state(state, FollowEvent.OUTDATE)
        assert not outdated.subscribed
        assert next_state(next_state(outdated, FollowEvent.RESUME), FollowEvent.SUBSCRIBE) is FollowState.SNAPSHOT
