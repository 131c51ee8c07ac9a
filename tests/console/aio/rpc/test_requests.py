"""The table of a request's life."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from qmf._state_table import IllegalEvent
from qmf.console.aio.rpc.requests import TRANSITIONS, Request, RequestEvent, RequestState

FINAL = [RequestState.ANSWERED, RequestState.REFUSED, RequestState.LOST, RequestState.EXPIRED, RequestState.CANCELLED]


def request(state: RequestState) -> Request:
    loop = asyncio.new_event_loop()
    try:
        return Request(1, "method echo", "a:b:c", 5.0, 5.0, loop.create_future(), state)
    finally:
        loop.close()


@pytest.mark.parametrize(("state", "step"), list(itertools.product(RequestState, RequestEvent)))
def test_an_event_leads_to_the_state_in_the_table_or_is_illegal(state: RequestState, step: RequestEvent) -> None:
    item = request(state)
    following = TRANSITIONS.rows.get(state, {}).get(step)
    if following is None:
        with pytest.raises(IllegalEvent, match=f"{state.value}; {step.value!r} is not possible"):
            item.end(step)
        assert item.state is state
    else:
        assert item.end(step) is following is item.state


def test_final_states_are_those_without_a_way_out() -> None:
    assert [state for state in RequestState if state.final] == FINAL


def test_every_state_can_be_reached() -> None:
    reached = {RequestState.PENDING} | {following for row in TRANSITIONS.rows.values() for following in row.values()}
    assert reached == set(RequestState)
