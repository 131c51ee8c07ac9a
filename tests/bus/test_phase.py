"""The life of a bus."""

from __future__ import annotations

import pytest

from qmf.bus.phase import TABLE, Phase, PhaseError, Step, after


@pytest.mark.parametrize(("phase", "step"), [(phase, step) for phase in Phase for step in Step])
def test_each_step_leads_where_the_table_says_or_is_refused(phase: Phase, step: Step) -> None:
    if (phase, step) in TABLE:
        assert after(phase, step) is TABLE[phase, step]
    else:
        with pytest.raises(PhaseError, match=phase.value):
            after(phase, step)


def test_every_phase_can_be_ended_and_closed_is_for_good() -> None:
    assert {after(phase, Step.END) for phase in Phase} == {Phase.CLOSED}
    assert [step for phase, step in TABLE if phase is Phase.CLOSED] == [Step.END]


def test_every_phase_can_be_reached() -> None:
    reached = {Phase.NEW}
    while more := {after(phase, step) for phase, step in TABLE if phase in reached} - reached:
        reached |= more
    assert reached == set(Phase)
