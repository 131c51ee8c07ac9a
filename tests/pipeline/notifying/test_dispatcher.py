"""What is notified when: groups, waiting times, repetition, muting, failures, restarts; time is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.notifying.config import Integration, NotifyConfig, Route
from qmf.pipeline.notifying.dispatcher import FIRST_RETRY, LAST_RETRY, MAX_UNDER_WAY, NEVER, Dispatcher
from qmf.pipeline.notifying.matchers import parse_matchers
from qmf.pipeline.notifying.muting import InhibitRule
from qmf.pipeline.notifying.notification import AlertNotification, NotificationOutcome
from qmf.pipeline.notifying.receivers.base import ReceiverSettings
from qmf.pipeline.notifying.silences import Silence
from qmf.pipeline.notifying.state import NotificationState, SentState

S = 10**9
HOUR = 3600 * S

INHIBIT = InhibitRule(source=parse_matchers(["dead=yes"]), target=parse_matchers(["dead!=yes"]), equal=("agent",))


def alert(id: str, at: int, end: int | None = None, **labels: str) -> Alert:
    given = {"alertname": "full", "agent": "a", "object": id, **labels}
    ends = None if end is None else end * S
    return Alert(id=id, incident=id, labels=given, starts_ns=at * S, ends_ns=ends)


def integration(key: str, **settings: Any) -> Integration:
    return Integration(key, ReceiverSettings(**settings))


def plan(
    *, wait: int = 30, interval: int = 300, repeat: int = 14_400, by: tuple[str, ...] = ("alertname",), **more: Any
) -> NotifyConfig:
    route = Route(
        receiver="ops", group_by=by, group_wait=wait * S, group_interval=interval * S, repeat_interval=repeat * S
    )
    return NotifyConfig(route=route, receivers={"ops": [integration("ops/0", **more)]}, inhibit=(INHIBIT,))


def silence(*matchers: str, start: int = 0, end: int = 10**6) -> Silence:
    return Silence(
        id="s", matchers=parse_matchers(matchers), starts_ns=start * S, ends_ns=end * S, created_by="me",
        comment="", updated_ns=0,
    )  # fmt: skip


class World:
    """A dispatcher with its state; times are seconds."""

    def __init__(self, of: NotifyConfig | None = None, *, max_age: int = NEVER) -> None:
        self.state = NotificationState()
        self.plan = of or plan()
        self.max_age = max_age
        self.now = 0
        self.restart()

    def restart(self) -> None:
        self.dispatcher = Dispatcher(self.plan, self.state, self.now * S, max_age=self.max_age)

    def update(self, *alerts: Alert) -> None:
        self.dispatcher.update(alerts, self.now * S)

    def due(self, now: int) -> list[AlertNotification]:
        self.now = now
        return self.dispatcher.due(now * S)

    def send(
        self, now: int, outcome: NotificationOutcome = NotificationOutcome.DELIVERED
    ) -> list[tuple[list[str], list[str]]]:
        """Finish what is due; the ids of what fires and of what is resolved in each notification."""
        found = self.due(now)
        for item in found:
            self.dispatcher.finish(item, outcome, now * S, "no")
        return [([one.id for one in item.firing], [one.id for one in item.resolved]) for item in found]

    def quiet(self, until: int) -> None:
        """Nothing is sent up to a time, in steps of a second."""
        while self.now < until:
            assert self.send(self.now + 1) == []


def test_a_group_waits_then_tells_all_its_alerts_at_once() -> None:
    world = World()
    world.update(alert("1", 0))
    world.quiet(20)
    world.update(alert("2", 20))
    world.quiet(29)
    assert world.send(30) == [(["1", "2"], [])]


def test_changes_of_a_group_wait_for_its_interval() -> None:
    world = World()
    world.update(alert("1", 0))
    world.send(30)
    world.update(alert("2", 31), alert("1", 0, 32))
    world.quiet(329)
    assert world.send(330) == [(["2"], ["1"])]
    assert set(world.state.alerts) == {"2"}


def test_it_is_repeated_after_the_repeat_interval_and_not_before() -> None:
    world = World(plan(repeat=1000))
    world.update(alert("1", 0))
    assert world.send(30) == [(["1"], [])]
    world.quiet(1229)
    assert world.send(1230) == [(["1"], [])]


def test_an_alert_that_ends_within_the_wait_is_not_told() -> None:
    world = World()
    world.update(alert("1", 0))
    world.quiet(10)
    world.update(alert("1", 0, 10))
    world.quiet(400)
    assert not world.state.alerts


def test_an_alert_that_was_found_after_its_end_is_told_as_resolved() -> None:
    world = World()
    world.now = 100
    world.update(alert("1", 0), alert("1", 0, 90))
    assert world.send(100) == [([], ["1"])]
    assert not world.state.alerts
    assert not world.state.told


def test_without_waiting_each_change_is_told_at_once() -> None:
    world = World(plan(wait=0, interval=0, by=("...",)))
    world.update(alert("1", 0), alert("2", 0), alert("3", 0), alert("3", 0, 0))
    assert world.send(0) == [(["1"], []), (["2"], []), ([], ["3"])]
    world.now = 1
    world.update(alert("1", 0, 1))
    assert world.send(1) == [([], ["1"])]
    world.quiet(100)


def test_the_end_is_not_told_to_who_does_not_want_it() -> None:
    world = World(plan(send_resolved=False))
    world.update(alert("1", 0))
    world.send(30)
    world.update(alert("1", 0, 31))
    world.quiet(1000)
    assert not world.state.alerts


def test_what_is_muted_is_not_told_and_its_end_only_to_who_knew() -> None:
    world = World()
    world.update(alert("1", 0))
    world.send(30)
    world.dispatcher.set_silences([silence("agent=a")])
    world.update(alert("2", 40), alert("1", 0, 50), alert("2", 40, 200))
    world.quiet(329)
    assert world.send(330) == [([], ["1"])]
    world.quiet(700)
    assert not world.state.alerts


def test_after_a_silence_what_still_fires_is_told() -> None:
    world = World()
    world.dispatcher.set_silences([silence("agent=a", end=100)])
    world.update(alert("1", 0))
    world.quiet(329)
    assert world.send(330) == [(["1"], [])]


def test_a_source_inhibits_and_its_end_lets_go() -> None:
    world = World()
    world.update(alert("dead", 0, dead="yes", alertname="dead"), alert("1", 0), alert("2", 0, agent="b"))
    assert sorted(world.send(30)) == [(["2"], []), (["dead"], [])]
    world.now = 40
    world.update(alert("dead", 0, 40, dead="yes", alertname="dead"))
    world.quiet(329)
    assert sorted(world.send(330)) == [([], ["dead"]), (["1", "2"], [])]


def test_what_ends_a_little_after_its_source_is_never_told() -> None:
    world = World(plan(wait=0, interval=10, by=("...",)))
    world.update(alert("dead", 0, dead="yes"), alert("1", 0), alert("2", 0))
    assert world.send(0) == [(["dead"], [])]
    world.now = 21
    world.update(alert("dead", 0, 21, dead="yes"), alert("3", 22))  # the last one began after the end of the source
    assert sorted(world.send(22)) == [([], ["dead"]), (["3"], [])]
    world.now = 40
    world.update(alert("1", 0, 40))
    world.quiet(80)
    assert [world.send(at) for at in range(81, 93)].count([(["2"], [])]) == 1


def test_failures_are_tried_again_with_growing_pauses_and_the_current_content() -> None:
    world = World()
    world.update(alert("1", 0))
    assert world.send(30, NotificationOutcome.UNREACHABLE) == [(["1"], [])]
    assert world.dispatcher.next_at() == 30 * S + FIRST_RETRY
    assert world.send(31, NotificationOutcome.UNREACHABLE) == [(["1"], [])]
    world.quiet(32)
    world.update(alert("2", 32), alert("1", 0, 32))
    assert world.send(33, NotificationOutcome.UNREACHABLE) == [(["2"], ["1"])]
    world.quiet(36)
    assert world.send(37) == [(["2"], ["1"])]
    assert not world.dispatcher.is_idle or world.state.told == {"2": {"ops/0": SentState.FIRING}}
    counts = world.state.counts["ops/0"]
    assert (counts.delivered, counts.failed, counts.alerts, counts.last_error) == (1, 3, 2, "")


def test_the_pause_has_a_limit() -> None:
    world = World()
    world.update(alert("1", 0))
    world.send(30, NotificationOutcome.UNREACHABLE)
    for _ in range(40):
        world.send(world.dispatcher.next_at() // S + 1, NotificationOutcome.UNREACHABLE)
    assert world.dispatcher.next_at() - world.now * S <= LAST_RETRY


def test_after_a_failure_one_attempt_at_a_time() -> None:
    world = World(plan(by=("...",)))
    world.update(*(alert(str(number), 0) for number in range(200)))
    first = world.due(30)
    assert len(first) == MAX_UNDER_WAY
    assert world.due(31) == []
    for item in first:
        world.dispatcher.finish(item, NotificationOutcome.UNREACHABLE, 31 * S, "no")
    (probe,) = world.due(10_000)
    world.dispatcher.finish(probe, NotificationOutcome.DELIVERED, 10_000 * S)
    total = 1
    while found := world.send(world.now + 1):
        total += len(found)
    assert total == 200
    assert world.dispatcher.is_idle


def test_what_is_refused_does_not_hold_up_the_others() -> None:
    world = World(plan(by=("...",)))
    world.update(alert("1", 0), alert("2", 0))
    first, second = world.due(30)
    world.dispatcher.finish(first, NotificationOutcome.REFUSED, 30 * S, "400")
    world.dispatcher.finish(second, NotificationOutcome.DELIVERED, 30 * S)
    assert world.due(31) == []
    assert len(world.due(30 + LAST_RETRY // S)) == 1


def test_a_restart_neither_repeats_nor_forgets() -> None:
    world = World()
    world.update(alert("1", 0))
    world.send(30)
    world.update(alert("1", 0, 31))
    world.now = 40
    world.restart()
    world.quiet(329)
    assert world.send(330) == [([], ["1"])]


def test_what_was_under_way_at_a_kill_is_told_even_after_its_end() -> None:
    world = World()
    world.update(alert("1", 0))
    assert len(world.due(30)) == 1  # and killed before its end
    world.restart()
    world.update(alert("1", 0, 31))
    assert world.send(40) == [([], ["1"])]


def test_alerts_of_the_past_wait_for_the_present() -> None:
    world = World(max_age=HOUR)
    world.now = 8000
    world.update(alert("old", 0), alert("open", 0), alert("late", 0), alert("new", 7000))
    world.update(alert("old", 0, 4000), alert("late", 0, 5000))
    assert world.send(8000) == [(["new"], ["late"])]
    world.restart()
    world.dispatcher.release(8001 * S)
    world.quiet(8299)
    assert world.send(8300) == [(["new", "open"][::-1], [])]


def test_pending_alerts_are_not_told() -> None:
    world = World()
    world.update(attrs.evolve(alert("1", 0), pending=True), attrs.evolve(alert("2", 0), pending=True))
    world.quiet(100)
    world.update(alert("1", 0), alert("2", 0, 90))
    assert world.send(101) == [(["1"], [])]
    assert set(world.state.alerts) == {"1"}


def test_who_forgets_is_sent_again_what_fires() -> None:
    world = World(plan(interval=50, resend_interval=60 * S))
    world.update(alert("1", 0))
    world.send(30)
    for at in (90, 150, 210):
        world.quiet(at - 1)
        assert world.send(at) == [(["1"], [])]
    world.dispatcher.set_silences([silence("agent=a")])
    world.quiet(1000)
    assert world.dispatcher.next_at() > 1000 * S


def test_another_configuration_tells_the_new_receiver_only() -> None:
    world = World()
    world.update(alert("1", 0))
    world.send(30)
    both = attrs.evolve(world.plan, receivers={"ops": [integration("ops/0"), integration("ops/1")]})
    world.dispatcher.reconfigure(both, 40 * S)
    found = world.due(400)
    assert [item.integration for item in found] == ["ops/1"]
    world.dispatcher.finish(found[0], NotificationOutcome.DELIVERED, 400 * S)
    world.dispatcher.reconfigure(attrs.evolve(both, receivers={"ops": [integration("ops/1")]}), 400 * S)
    assert world.state.told == {"1": {"ops/1": SentState.FIRING}}
    assert set(world.state.counts) == {"ops/1"}


def test_what_changes_while_a_notification_is_under_way_is_told_next() -> None:
    world = World(plan(wait=0, interval=0, by=("...",)))
    world.update(alert("1", 0))
    (first,) = world.due(0)
    world.update(alert("1", 0, 0))
    assert world.due(0) == []
    world.dispatcher.finish(first, NotificationOutcome.DELIVERED, 0)
    assert not world.dispatcher.is_idle
    assert world.send(0) == [([], ["1"])]
    assert world.dispatcher.is_idle


def test_ending_looks_at_all_groups_at_once() -> None:
    world = World()
    world.update(alert("1", 0))
    world.dispatcher.hurry(S)
    assert world.send(1) == [(["1"], [])]


# -- whatever happens

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("raise"), st.integers(0, 5)),
        st.tuples(st.just("end"), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.integers(1, 400)),
        st.tuples(st.just("mute"), st.integers(0, 3)),
        st.tuples(st.just("reach"), st.integers(0, 2)),
        st.tuples(st.just("kill"), st.integers(0, 1)),
    ),
    max_size=40,
)


class Receiver:
    """Believes what it is told."""

    def __init__(self) -> None:
        self.believes: set[str] = set()
        self.heard: set[str] = set()
        self.last: dict[str, tuple[Any, ...]] = {}

    def take(self, item: AlertNotification) -> None:
        self.believes |= {one.id for one in item.firing}
        self.believes -= {one.id for one in item.resolved}
        self.heard |= {one.id for one in item.alerts}


@given(STEPS, st.booleans(), st.sampled_from([0, 30]), st.sampled_from([0, 60]))
def test_a_receiver_learns_what_is_true(
    steps: Sequence[tuple[str, int]], together: bool, wait: int, interval: int
) -> None:
    world = World(plan(wait=wait, interval=interval, repeat=500, by=("alertname",) if together else ("...",)))
    receiver, reach, incident = Receiver(), NotificationOutcome.DELIVERED, 0
    open_alerts: dict[int, Alert] = {}
    muted: set[str] = set()

    def deliver(*, killed: bool = False) -> None:
        for item in world.due(world.now):
            assert not {one.labels["object"] for one in item.firing} & muted
            assert item.firing or item.resolved
            if reach is NotificationOutcome.DELIVERED:
                receiver.take(item)
            if killed:
                world.restart()
                return
            world.dispatcher.finish(item, reach, world.now * S, "no")

    for step, number in steps:
        match step:
            case "raise" if number not in open_alerts:
                incident += 1
                open_alerts[number] = alert(str(incident), world.now, object=str(number))
                world.update(open_alerts[number])
            case "end" if number in open_alerts:
                ended = attrs.evolve(open_alerts.pop(number), ends_ns=world.now * S)
                world.update(ended)
            case "wait":
                for _ in range(number // 20 + 1):
                    world.now += 20
                    deliver()
            case "mute":
                muted = set() if number == 3 else {str(number)}
                world.dispatcher.set_silences([silence(f"object={number}")] if muted else [])
            case "reach":
                reach = list(NotificationOutcome)[number]
            case "kill":
                world.now += 20
                deliver(killed=True)
                world.dispatcher.set_silences([silence(f"object={one}") for one in muted])
    reach, muted = NotificationOutcome.DELIVERED, set()
    world.dispatcher.set_silences([])
    for _ in range(200):
        world.now += 20
        deliver()
    assert receiver.believes == {one.id for one in open_alerts.values()}
    assert set(world.state.alerts) == receiver.believes
    assert set(world.state.told) == receiver.believes
    assert world.dispatcher.is_idle
    # And from now on only repetitions.
    told = len(receiver.heard)
    world.now += 20
    deliver()
    assert len(receiver.heard) == told


@given(STEPS)
def test_without_failures_nothing_is_told_twice_within_the_repeat_interval(steps: Sequence[tuple[str, int]]) -> None:
    world = World(plan(repeat=10**7, by=("...",)))
    told: list[tuple[str, bool]] = []
    open_alerts: dict[int, Alert] = {}
    incident = 0
    for step, number in steps:
        if step == "raise" and number not in open_alerts:
            incident += 1
            open_alerts[number] = alert(str(incident), world.now, object=str(number))
            world.update(open_alerts[number])
        elif step == "end" and number in open_alerts:
            world.update(attrs.evolve(open_alerts.pop(number), ends_ns=world.now * S))
        elif step == "kill":
            world.restart()
        elif step == "wait":
            for _ in range(number):
                world.now += 1
                for item in world.due(world.now):
                    told += [(one.id, True) for one in item.firing] + [(one.id, False) for one in item.resolved]
                    world.dispatcher.finish(item, NotificationOutcome.DELIVERED, world.now * S)
    assert len(told) == len(set(told))
    for ended in [key for key, fires in told if not fires]:
        assert (ended, True) in told or ended not in world.state.alerts


@pytest.mark.parametrize("count", [2000])
def test_many_alerts_of_one_group_are_one_message(count: int) -> None:
    world = World()
    world.update(*(alert(str(number), 0) for number in range(count)))
    ((firing, resolved),) = world.send(30)
    assert (len(firing), resolved) == (count, [])
