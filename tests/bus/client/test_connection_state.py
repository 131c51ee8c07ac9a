"""The states of a client's connection."""

from __future__ import annotations

from qmf.bus.client.connection_state import TRANSITIONS, BusConnectionState, BusConnectionTrigger


def test_every_connection_can_be_closed_and_ends_when_its_transport_is_disconnected() -> None:
    for state in BusConnectionState:
        closed = TRANSITIONS.next(state, BusConnectionTrigger.CLOSE)
        assert closed in (BusConnectionState.CLOSING, BusConnectionState.ENDED)
        if closed is BusConnectionState.CLOSING:
            assert TRANSITIONS.next(closed, BusConnectionTrigger.DISCONNECTED) is BusConnectionState.ENDED


def test_nothing_leads_out_of_the_end() -> None:
    assert set(TRANSITIONS.rows[BusConnectionState.ENDED].values()) == {BusConnectionState.ENDED}
