"""The states of a client's connection."""

from __future__ import annotations

import pytest

from qmf.bus.client.connection_state import TRANSITIONS, BusConnectionState, BusConnectionTrigger, next_connection_state


@pytest.mark.parametrize(
    ("state", "trigger"), [(state, trigger) for state in BusConnectionState for trigger in BusConnectionTrigger]
)
def test_each_trigger_leads_where_the_table_says_or_is_refused(
    state: BusConnectionState, trigger: BusConnectionTrigger
) -> None:
    if (state, trigger) in TRANSITIONS:
        assert next_connection_state(state, trigger) is TRANSITIONS[state, trigger]
    else:
        with pytest.raises(RuntimeError, match=f"{state.value} cannot {trigger.value}"):
            next_connection_state(state, trigger)


def test_every_state_can_be_reached() -> None:
    reached = {BusConnectionState.CONNECTING}
    while more := {target for (state, _), target in TRANSITIONS.items() if state in reached} - reached:
        reached |= more
    assert reached == set(BusConnectionState)


def test_every_connection_can_be_closed_and_ends_when_its_transport_is_disconnected() -> None:
    for state in BusConnectionState:
        closed = next_connection_state(state, BusConnectionTrigger.CLOSE)
        assert closed in (BusConnectionState.CLOSING, BusConnectionState.ENDED)
        if closed is BusConnectionState.CLOSING:
            assert next_connection_state(closed, BusConnectionTrigger.DISCONNECTED) is BusConnectionState.ENDED


def test_nothing_leads_out_of_the_end() -> None:
    assert {target for (state, _), target in TRANSITIONS.items() if state is BusConnectionState.ENDED} == {
        BusConnectionState.ENDED
    }
