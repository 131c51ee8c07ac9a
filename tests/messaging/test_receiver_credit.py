"""In which portions a receiver gives credit."""

from __future__ import annotations

import pytest
from bus.peer import Peer
from messaging.scripted_peer import scripted_peer
from support.waiting import PATIENCE

from qmf.bus.engine.link import Link
from qmf.messaging import Connection


@pytest.mark.parametrize("capacity", [1, 2, 3, 10])
def test_credit_is_given_for_half_of_the_capacity_or_more(capacity: int) -> None:
    count = 20 * capacity
    portions: list[int] = []
    with scripted_peer() as script:
        send = script.send

        def note_and_send(peer: Peer, link: Link) -> None:
            if link.is_sender and script.to_send:
                portions.append(peer.engine.credit(link))
            send(peer, link)  # uses all of it

        script.send = note_and_send  # type: ignore[method-assign]
        script.to_send += [str(number) for number in range(count)]
        with Connection.establish(script.url) as connection:
            receiver = connection.session().receiver("q", capacity=capacity)
            found = [receiver.fetch(PATIENCE).content for _ in range(count)]
    assert found == [str(number).encode() for number in range(count)]
    assert portions[0] == capacity
    assert all(2 * portion >= capacity for portion in portions)
    assert len(portions) <= 2 * count // capacity + 1
