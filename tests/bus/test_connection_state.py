"""The life of a bus."""

from __future__ import annotations

from qmf.bus.connection_state import TRANSITIONS, ConnectionState, ConnectionTrigger


def test_every_phase_can_be_ended_and_closed_is_for_good() -> None:
    assert {TRANSITIONS.next(phase, ConnectionTrigger.CLOSE) for phase in ConnectionState} == {ConnectionState.CLOSED}
    assert list(TRANSITIONS.rows[ConnectionState.CLOSED]) == [ConnectionTrigger.CLOSE]
