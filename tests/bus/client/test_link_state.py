"""The states of a client's link."""

from __future__ import annotations

import pytest

from qmf.bus.client.link_state import TRANSITIONS, BusLinkState, BusLinkTrigger, next_link_state


@pytest.mark.parametrize(
    ("state", "trigger"), [(state, trigger) for state in BusLinkState for trigger in BusLinkTrigger]
)
def test_each_trigger_leads_where_the_table_says_or_is_refused(state: BusLinkState, trigger: BusLinkTrigger) -> None:
    if (state, trigger) in TRANSITIONS:
        assert next_link_state(state, trigger) is TRANSITIONS[state, trigger]
    else:
        with pytest.raises(RuntimeError, match=f"cannot {trigger.value} a link that is {state.value}"):
            next_link_state(state, trigger)


def test_every_state_can_be_reached() -> None:
    reached = {BusLinkState.IDLE}
    while more := {target for (state, _), target in TRANSITIONS.items() if state in reached} - reached:
        reached |= more
    assert reached == set(BusLinkState)


def test_every_link_can_be_closed_and_ends_with_its_connection() -> None:
    for state in BusLinkState:
        assert next_link_state(state, BusLinkTrigger.CLOSE) in (BusLinkState.CLOSING, BusLinkState.CLOSED)
        assert next_link_state(state, BusLinkTrigger.END) is BusLinkState.CLOSED


def test_nothing_leads_out_of_closed() -> None:
    assert {target for (state, _), target in TRANSITIONS.items() if state is BusLinkState.CLOSED} == {
        BusLinkState.CLOSED
    }
