"""The states of a client's link."""

from __future__ import annotations

import pytest

from qmf.bus.client.link_state import TRANSITIONS, LinkState, LinkTrigger, next_link_state


@pytest.mark.parametrize(("state", "trigger"), [(state, trigger) for state in LinkState for trigger in LinkTrigger])
def test_each_trigger_leads_where_the_table_says_or_is_refused(state: LinkState, trigger: LinkTrigger) -> None:
    if (state, trigger) in TRANSITIONS:
        assert next_link_state(state, trigger) is TRANSITIONS[state, trigger]
    else:
        with pytest.raises(RuntimeError, match=f"cannot {trigger.value} a link that is {state.value}"):
            next_link_state(state, trigger)


def test_every_state_can_be_reached() -> None:
    reached = {LinkState.IDLE}
    while more := {target for (state, _), target in TRANSITIONS.items() if state in reached} - reached:
        reached |= more
    assert reached == set(LinkState)


def test_every_link_can_be_closed_and_ends_with_its_connection() -> None:
    for state in LinkState:
        assert next_link_state(state, LinkTrigger.CLOSE) in (LinkState.CLOSING, LinkState.CLOSED)
        assert next_link_state(state, LinkTrigger.END) is LinkState.CLOSED


def test_nothing_leads_out_of_closed() -> None:
    assert {target for (state, _), target in TRANSITIONS.items() if state is LinkState.CLOSED} == {LinkState.CLOSED}
