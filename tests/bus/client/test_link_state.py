"""The states of a client's link."""

from __future__ import annotations

from qmf.bus.client.link_state import TRANSITIONS, LinkState, LinkTrigger


def test_every_link_can_be_closed_and_survives_the_loss_of_its_connection() -> None:
    for state in LinkState:
        assert TRANSITIONS.next(state, LinkTrigger.CLOSE) is LinkState.CLOSED
        final = state in (LinkState.FAILED, LinkState.CLOSED)
        assert TRANSITIONS.next(state, LinkTrigger.LOSE) is (state if final else LinkState.DETACHED)
