"""The table of an agent's presence, the registry that follows it, and the tracker with its clock."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from support.growth import growth
from support.waiting import until

from qmf._state_table import IllegalEvent
from qmf.console.aio.agent_tracker import AgentTracker
from qmf.console.aio.agents import (
    GOODBYE_PERIOD,
    TRANSITIONS,
    Agent,
    AgentChange,
    AgentChangeKind,
    AgentEvent,
    AgentRegistry,
    AgentState,
    info_from_name,
)
from qmf.errors import NotFoundError
from qmf.protocol import AgentInfo

NAME = "example.org:widgets:1"
QPIDD = "apache.org:qpidd:b1"


def info(name: str = NAME, **changes: object) -> AgentInfo:
    """An announcement."""
    return attrs.evolve(info_from_name(name), **{"epoch": 1, "heartbeat_interval": 10, **changes})  # type: ignore[arg-type]


def change(found: AgentChange | None) -> AgentChangeKind:
    return found.kind if found else AgentChangeKind.NONE


@pytest.mark.parametrize(("presence", "sign"), list(itertools.product(AgentState, AgentEvent)))
def test_the_broker_is_only_lost_with_the_connection_or_by_its_own_word(presence: AgentState, sign: AgentEvent) -> None:
    move = TRANSITIONS.rows[presence].get(sign)
    if presence is AgentState.BROKER and sign not in (AgentEvent.CUT, AgentEvent.GOODBYE):
        assert move is None or move[0] is AgentState.BROKER
    if presence is AgentState.ABSENT and move is not None:
        assert move[1] is AgentChangeKind.ADDED
    if move is not None and move[0] is AgentState.ABSENT:
        assert move[1] is AgentChangeKind.REMOVED


def test_an_event_that_the_table_lacks_raises() -> None:
    with pytest.raises(IllegalEvent, match=f"agent {NAME} is absent; 'silent' is not possible"):
        TRANSITIONS.next(AgentState.ABSENT, AgentEvent.SILENT, NAME)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("a:b:c", ("a", "b", "c")),
        ("a:b:c:d", ("a", "b", "c:d")),
        ("a:b", ("a", "b", "")),
        ("a", ("a", "", "")),
        ("::x", ("", "", "x")),
    ],
)
def test_a_name_is_split_at_the_first_two_colons(name: str, parts: tuple[str, str, str]) -> None:
    found = info_from_name(name)
    assert (found.vendor, found.product, found.instance) == parts


def test_an_agent_is_learned_from_its_name_and_then_from_its_announcement() -> None:
    registry = AgentRegistry()
    assert change(registry.on_mention(NAME, 0)) is AgentChangeKind.ADDED
    assert change(registry.on_mention(NAME, 1)) is AgentChangeKind.NONE
    assert change(registry.on_announcement(info(), 2)) is AgentChangeKind.UPDATED
    assert change(registry.on_announcement(info(timestamp=99), 3)) is AgentChangeKind.NONE
    assert change(registry.on_announcement(info(schema_updated=5), 4)) is AgentChangeKind.UPDATED
    assert registry.find(NAME).info.schema_updated == 5


@pytest.mark.parametrize(("interval", "patience"), [(1, 10.0), (3, 10.0), (4, 12.0), (60, 180.0), (0, 180.0)])
def test_an_agent_is_removed_after_three_silent_intervals_and_ten_seconds(interval: float, patience: float) -> None:
    registry = AgentRegistry()
    registry.on_announcement(info(heartbeat_interval=interval) if interval else info_from_name(NAME), 100.0)
    assert registry.next_check() == 100.0 + patience
    assert registry.silent(100.0 + patience) == []
    assert [item.kind for item in registry.silent(100.0 + patience + 0.1)] == [AgentChangeKind.REMOVED]
    assert len(registry) == 0
    assert change(registry.on_mention(NAME, 300.0)) is AgentChangeKind.ADDED


def test_any_message_counts_as_a_sign_of_life() -> None:
    registry = AgentRegistry()
    registry.on_announcement(info(), 0.0)
    registry.on_mention(NAME, 25.0)
    assert registry.silent(31.0) == []
    assert len(registry.silent(55.1)) == 1


def test_the_connected_broker_is_never_silent() -> None:
    registry = AgentRegistry()
    registry.on_announcement(info(QPIDD), 0.0)
    assert registry.broker is not None
    assert registry.next_check() is None
    assert registry.silent(1e9) == []


def test_the_alias_broker_means_the_connected_qpidd() -> None:
    registry = AgentRegistry()
    assert registry.on_mention("broker", 0.0) is None
    assert registry.get("broker") is None
    registry.on_announcement(info(QPIDD), 0.0)
    assert registry.find("broker").name == QPIDD
    assert registry.on_mention("broker", 1.0) is None
    assert [agent.name for agent in registry] == [QPIDD]


def test_a_federated_qpidd_gives_way_to_the_connected_one() -> None:
    registry = AgentRegistry()
    registry.on_announcement(info("apache.org:qpidd:far"), 0.0)
    registry.on_announcement(info(QPIDD), 1.0, connected=True)
    assert registry.find("broker").name == QPIDD
    assert not registry.find("apache.org:qpidd:far").is_broker
    assert [item.agent.name for item in registry.silent(1e6)] == ["apache.org:qpidd:far"]


def test_a_second_qpidd_is_no_broker() -> None:
    registry = AgentRegistry()
    registry.on_announcement(info(QPIDD), 0.0, connected=True)
    registry.on_announcement(info("apache.org:qpidd:far"), 1.0)
    assert registry.find("broker").name == QPIDD


@pytest.mark.parametrize(
    ("old", "new", "restarted"),
    [
        ({"epoch": 1}, {"epoch": 2}, True),
        ({"epoch": 4095}, {"epoch": 1}, True),
        ({"epoch": 1}, {"epoch": 0}, False),
        ({"epoch": 0}, {"epoch": 1}, False),
        ({"direct_subject": "a"}, {"direct_subject": "b"}, True),
        ({"direct_subject": "a"}, {"direct_subject": None}, False),
        ({"schema_updated": 1}, {"schema_updated": 2}, False),
    ],
)
def test_a_restart_shows_in_epoch_or_direct_subject(old: dict[str, Any], new: dict[str, Any], restarted: bool) -> None:
    registry = AgentRegistry()
    registry.on_announcement(info(**old), 0.0)
    found = registry.on_announcement(info(**new), 1.0)
    assert (change(found) is AgentChangeKind.RESTARTED) is restarted
    if restarted:
        assert found is not None
        assert found.old is not None
        assert found.old.info != found.agent.info


def test_losing_the_connection_removes_all() -> None:
    registry = AgentRegistry()
    registry.on_announcement(info(), 0.0)
    registry.on_announcement(info(QPIDD), 0.0)
    assert {item.kind for item in registry.on_connection_lost(1.0)} == {AgentChangeKind.REMOVED}
    assert len(registry) == 0
    assert registry.broker is None


def test_a_goodbye_removes_at_once_and_what_was_on_its_way_does_not_bring_the_agent_back() -> None:
    registry = AgentRegistry()
    registry.on_announcement(info(), 0.0)
    gone = registry.on_announcement(info(attributes={"_goodbye": True}), 1.0)
    assert gone is not None
    assert (gone.kind, gone.event, gone.agent.info.attributes) == (AgentChangeKind.REMOVED, AgentEvent.GOODBYE, {})
    assert registry.on_mention(NAME, 2.0) is None
    assert registry.on_announcement(info(attributes={"_goodbye": True}), 3.0) is None
    assert len(registry) == 0
    assert change(registry.on_mention(NAME, 3.0 + GOODBYE_PERIOD)) is AgentChangeKind.ADDED
    registry.on_announcement(info(attributes={"_goodbye": True}), 20.0)
    assert change(registry.on_announcement(info(epoch=2), 20.1)) is AgentChangeKind.ADDED


@pytest.mark.parametrize(("value", "yes"), [(1, True), (2, True), (0, False), ("1", False), (None, False)])
def test_subscriptions_are_announced_by_an_attribute(value: object, yes: bool) -> None:
    attributes = {} if value is None else {"_subscriptions": value}
    assert Agent(info(attributes=attributes)).supports_subscriptions is yes


def test_an_agent_is_announced_when_more_than_its_name_is_known() -> None:
    assert not Agent(info_from_name(NAME)).is_announced
    assert Agent(info()).is_announced


def test_an_unknown_agent_is_named_with_similar_ones() -> None:
    registry = AgentRegistry()
    registry.on_announcement(info(), 0.0)
    with pytest.raises(NotFoundError, match=f"no agent 'example.org:widget:1'; did you mean {NAME}"):
        registry.find("example.org:widget:1")


@pytest.mark.parametrize("name", [QPIDD, "qmf:broker:here"])
def test_the_agent_of_a_broker_is_known_as_such_by_whatever_comes_of_it_first(name: str) -> None:
    registry = AgentRegistry()
    added = registry.on_mention(name, 0.0)
    assert added is not None
    assert (added.kind, added.agent.is_broker) == (AgentChangeKind.ADDED, True)
    # Another broker's answer to a request that only the connected one gets.
    registry.on_announcement(info("qmf:broker:other"), 1.0, connected=True)
    assert {agent.name: agent.is_broker for agent in registry} == {name: False, "qmf:broker:other": True}


async def test_the_tracker_removes_silent_agents_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.console.aio.agents.MIN_SILENCE", 0.0)
    monkeypatch.setattr("qmf.console.aio.agents.MISSED_HEARTBEATS", 0.001)
    changes: list[AgentChange] = []
    tracker = AgentTracker(changes.append, ageing=True)
    tracker.on_announcement(info())
    assert [item.kind for item in changes] == [AgentChangeKind.ADDED]
    await until(lambda: len(changes) == 2)
    tracker.close()
    assert changes[1].kind is AgentChangeKind.REMOVED
    assert len(tracker.agents) == 0


async def test_settling_ends_at_the_limit_when_no_agent_answers() -> None:
    tracker = AgentTracker(lambda _: None, ageing=False)
    tracker.begin_search(0.01)
    await tracker.settle(0.01)
    assert len(tracker.agents) == 0


async def test_settling_waits_for_announcements() -> None:
    tracker = AgentTracker(
        lambda _: None, on_probe=lambda _: tracker.on_announcement(info(), located=True), ageing=False
    )
    tracker.on_mention(NAME)
    tracker.begin_search(30.0)
    settled = asyncio.ensure_future(tracker.settle(30.0))
    await asyncio.sleep(0)
    assert not settled.done()
    tracker.on_announcement(info(), located=True)
    async with asyncio.timeout(5.0):
        await settled
    assert [agent.info.epoch for agent in tracker.agents] == [info().epoch]


def test_agents_that_come_send_heartbeats_and_end_cost_the_same_however_many_there_are() -> None:
    def prepare(count: int) -> Callable[[], object]:
        registry, infos = AgentRegistry(), [info(f"example.org:crowd:{number}") for number in range(count)]

        def work() -> None:
            for one in infos * 2:
                registry.on_announcement(one, 1.0)
            for one in infos:
                registry.on_announcement(attrs.evolve(one, attributes={"_goodbye": True}), 1.0)
            assert len(registry) == 0

        return work

    assert growth(prepare) < 9
