"""The states of links to other brokers, and the waits between attempts."""

from __future__ import annotations

from itertools import islice

import pytest

from qmf._state_table import IllegalEvent
from qmf.broker.federation.link_status import STABLE, LinkStatus, PeerLinkState, PeerLinkTrigger, RetryWaits
from qmf.bus.backoff import Backoff


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_status_has_its_reason_and_since_when() -> None:
    clock = Clock()
    status = LinkStatus(clock)
    assert (status.state, status.reason, status.since) == (PeerLinkState.CONNECTING, "", 100.0)
    for trigger, reason, changes, state in (
        (PeerLinkTrigger.LOSE, "refused", True, PeerLinkState.WAITING),
        (PeerLinkTrigger.LOSE, "refused", False, PeerLinkState.WAITING),
        (PeerLinkTrigger.LOSE, "no host", True, PeerLinkState.WAITING),
        (PeerLinkTrigger.UP, "", True, PeerLinkState.OPERATIONAL),
        (PeerLinkTrigger.LOSE, "gone", True, PeerLinkState.WAITING),
        (PeerLinkTrigger.FAIL, "deleted", True, PeerLinkState.FAILED),
        (PeerLinkTrigger.CLOSE, "", True, PeerLinkState.CLOSED),
    ):
        before = status.since
        clock.now += 1
        assert status.change(trigger, reason) is changes
        assert (status.state, status.reason, status.since) == (state, reason, clock.now if changes else before)
        assert status.ended is (state in (PeerLinkState.FAILED, PeerLinkState.CLOSED))


@pytest.mark.parametrize("last", [PeerLinkTrigger.FAIL, PeerLinkTrigger.CLOSE])
def test_a_link_that_has_ended_does_not_come_back(last: PeerLinkTrigger) -> None:
    status = LinkStatus(Clock())
    status.change(last)
    with pytest.raises(IllegalEvent):
        status.change(PeerLinkTrigger.UP)


def test_the_first_attempt_is_made_at_once() -> None:
    waits = RetryWaits(Backoff(first=1, jitter=0), Clock())
    assert list(islice(waits.after(lost=False), 4)) == [0, 1, 2, 4]


def test_waits_grow_over_losses_until_the_link_was_stable() -> None:
    clock = Clock()
    waits = RetryWaits(Backoff(first=1, jitter=0), clock)
    waits.on_up()
    assert list(islice(waits.after(lost=True), 2)) == [1, 2]
    waits.on_up()
    clock.now += STABLE / 2
    assert next(waits.after(lost=True)) == 4
    waits.on_up()
    clock.now += STABLE
    assert next(waits.after(lost=True)) == 1
