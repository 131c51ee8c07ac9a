"""The states of a client's link."""

from __future__ import annotations

from qmf.bus.client.link_state import TRANSITIONS, BusLinkState, BusLinkTrigger


def test_every_link_can_be_closed_and_ends_with_its_connection() -> None:
    for state in BusLinkState:
        assert TRANSITIONS.next(state, BusLinkTrigger.CLOSE) in (BusLinkState.CLOSING, BusLinkState.CLOSED)
        assert TRANSITIONS.next(state, BusLinkTrigger.END) is BusLinkState.CLOSED


def test_nothing_leads_out_of_closed() -> None:
    assert set(TRANSITIONS.rows[BusLinkState.CLOSED].values()) == {BusLinkState.CLOSED}
