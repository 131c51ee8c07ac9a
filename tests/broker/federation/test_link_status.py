"""The states of links to other brokers, and the waits between attempts."""

from __future__ import annotations

from itertools import islice

import attrs
import pytest

from qmf._state_table import IllegalEvent
from qmf.broker.federation.link_status import (
    AT_ONCE,
    LINK_BACKOFF,
    STABLE,
    LinkStatus,
    PeerLinkState,
    PeerLinkTrigger,
    RetryWaits,
)


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


def waits_of(clock: Clock) -> RetryWaits:
    return RetryWaits(attrs.evolve(LINK_BACKOFF, jitter=0, random=lambda: 0.5), clock)


def test_the_first_attempt_is_made_at_once() -> None:
    assert list(islice(waits_of(Clock()).after(lost=False), 8)) == [0, 0.25, 0.5, 1, 2, 4, 5, 5]


def test_a_link_that_was_lost_is_tried_again_at_once_and_then_with_growing_waits() -> None:
    waits = waits_of(Clock())
    waits.on_up()
    assert list(islice(waits.after(lost=True), 5)) == [AT_ONCE / 2, 0.25, 0.5, 1, 2]


def test_waits_grow_over_losses_until_the_link_was_stable() -> None:
    clock = Clock()
    waits = waits_of(clock)
    waits.on_up()
    assert list(islice(waits.after(lost=True), 3)) == [AT_ONCE / 2, 0.25, 0.5]
    waits.on_up()
    clock.now += STABLE / 2
    assert next(waits.after(lost=True)) == 1
    waits.on_up()
    clock.now += STABLE
    assert list(islice(waits.after(lost=True), 2)) == [AT_ONCE / 2, 0.25]


@pytest.mark.parametrize("chance", [0.0, 0.3, 0.999])
@pytest.mark.parametrize("outage", [0.05, 1, 10, 100, 3_600])
def test_a_link_is_back_soon_after_an_outage(outage: float, chance: float) -> None:
    clock = Clock()
    waits = RetryWaits(attrs.evolve(LINK_BACKOFF, random=lambda: chance), clock)
    waits.on_up()
    clock.now += STABLE
    began = clock.now
    for wait in waits.after(lost=True):
        clock.now += wait
        if clock.now - began >= outage:
            break
    assert clock.now - began - outage <= min(max(1.34 * outage, 0.25), LINK_BACKOFF.limit)
