"""The life of a bus."""

from __future__ import annotations

from qmf.bus.bus_state import TRANSITIONS, BusState, BusTrigger


def test_every_phase_can_be_ended_and_closed_is_for_good() -> None:
    assert {TRANSITIONS.next(phase, BusTrigger.CLOSE) for phase in BusState} == {BusState.CLOSED}
    assert list(TRANSITIONS.rows[BusState.CLOSED]) == [BusTrigger.CLOSE]
