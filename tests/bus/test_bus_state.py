"""The life of a bus."""

from __future__ import annotations

import pytest

from qmf.bus.bus_state import TRANSITIONS, BusState, BusStateError, BusTrigger, next_state


@pytest.mark.parametrize(("phase", "step"), [(phase, step) for phase in BusState for step in BusTrigger])
def test_each_step_leads_where_the_table_says_or_is_refused(phase: BusState, step: BusTrigger) -> None:
    if (phase, step) in TRANSITIONS:
        assert next_state(phase, step) is TRANSITIONS[phase, step]
    else:
        with pytest.raises(BusStateError, match=phase.value):
            next_state(phase, step)


def test_every_phase_can_be_ended_and_closed_is_for_good() -> None:
    assert {next_state(phase, BusTrigger.CLOSE) for phase in BusState} == {BusState.CLOSED}
    assert [step for phase, step in TRANSITIONS if phase is BusState.CLOSED] == [BusTrigger.CLOSE]


def test_every_phase_can_be_reached() -> None:
    reached = {BusState.NEW}
    while more := {next_state(phase, step) for phase, step in TRANSITIONS if phase in reached} - reached:
        reached |= more
    assert reached == set(BusState)
