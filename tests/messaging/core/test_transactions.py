"""What a broker learns of messages that are acknowledged in a transaction."""

from __future__ import annotations

import queue

import pytest
from messaging.scripted_peer import scripted_peer
from support.waiting import WAIT_LIMIT

from qmf.bus.engine.events import OutcomeReceived
from qmf.bus.engine.values import Outcome
from qmf.messaging import REJECTED, Connection, Disposition


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"code": "shop:no-such-item", "text": "no such item"}, ("shop:no-such-item", "no such item")),
        ({"text": "no such item"}, ("amqp:internal-error", "no such item")),
        ({}, ("", "")),
    ],
)
def test_a_rejection_has_its_reason(options: dict[str, str], expected: tuple[str, str]) -> None:
    with scripted_peer() as peer:
        outcomes: queue.Queue[OutcomeReceived] = queue.Queue()
        peer.on_outcome = outcomes.put
        peer.to_send.append("rejected")
        with Connection.establish(peer.url, timeout=10) as connection:
            session = connection.session(transactional=True)
            message = session.receiver("q").fetch(timeout=10)
            session.acknowledge(message, Disposition(REJECTED, **options))
            outcome = outcomes.get(timeout=WAIT_LIMIT)
            assert (outcome.outcome, outcome.condition, outcome.description) == (Outcome.REJECTED, *expected)
            assert outcome.transaction is not None
