"""What did not arrive, by the numbers that agents put on what they publish."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from console.conftest import MakeAgent, MakeClient
from hypothesis import given
from hypothesis import strategies as st
from support.scripted_agent import ALARM, TOPIC, part, widget
from support.waiting import until

from qmf.console.aio import AgentRemoved, EventRaised, HeartbeatSeen, Missed, ObjectUpdated, Removal
from qmf.console.aio.indications import MAX_SUBJECTS, SequenceGaps
from qmf.protocol import Envelope, EventData, EventsIndication, event_key


@pytest.mark.parametrize(
    ("numbers", "missed"),
    [
        ([1, 2, 3], [0, 0, 0]),
        ([7, 8, 10], [0, 0, 1]),
        ([1, 5, 6, 9], [0, 3, 0, 2]),
        ([8, 1, 2], [0, 0, 0]),
        ([3, 3, 4], [0, 0, 0]),
    ],
)
def test_numbers_that_are_left_out_are_missing(numbers: Sequence[int], missed: Sequence[int]) -> None:
    gaps = SequenceGaps()
    assert [gaps.count_missed("a", "s", number) for number in numbers] == missed


@given(st.sets(st.integers(1, 60), min_size=2))
def test_what_is_missed_and_what_arrived_is_everything(arrived: set[int]) -> None:
    gaps = SequenceGaps()
    assert sum(gaps.count_missed("a", "s", number) for number in sorted(arrived)) + len(arrived) == (
        max(arrived) - min(arrived) + 1
    )


def test_agents_and_subjects_count_for_themselves() -> None:
    gaps = SequenceGaps()
    for agent, subject, number in (("a", "s", 1), ("b", "s", 5), ("a", "t", 9), ("a", "s", 2), ("b", "s", 6)):
        assert gaps.count_missed(agent, subject, number) == 0
    gaps.forget_agent("a")
    assert gaps.count_missed("a", "s", 50) == 0
    gaps.forget_subjects(lambda subject: subject == "s")
    assert gaps.count_missed("b", "s", 50) == 0
    assert gaps.count_missed("b", "s", 52) == 1


def test_an_agent_that_invents_subjects_does_not_fill_the_memory() -> None:
    gaps = SequenceGaps()
    for number in range(MAX_SUBJECTS * 2):
        gaps.count_missed("a", str(number), 1)
    assert gaps.count_missed("a", str(MAX_SUBJECTS * 2 - 1), 3) == 1
    assert gaps.count_missed("a", "0", 3) == 0  # forgotten


async def test_a_gap_is_reported_with_its_count(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    _, heard = await make_client()
    for number in (4, 5, 9):
        await agent.publish(widget("w"), sequence=number)
    await agent.heartbeat(sequence=1)
    await agent.heartbeat(sequence=3)
    await until(lambda: len(heard.of(HeartbeatSeen)) == 2 and len(heard.of(ObjectUpdated)) == 3)
    assert [(item.agent.name, item.count, item.subject.split(".")[2]) for item in heard.of(Missed)] == [
        (agent.info.name, 3, "data"),
        (agent.info.name, 1, "heartbeat"),
    ]


async def test_what_was_not_asked_for_is_not_missing(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    client, heard = await make_client()
    await agent.publish(widget("w"), sequence=1)
    await until(lambda: len(heard.of(ObjectUpdated)) == 1)
    await client.unbind("agent.ind.data.#")
    await client.bind("agent.ind.data.#")
    await agent.publish(widget("w"), sequence=20)
    await until(lambda: len(heard.of(ObjectUpdated)) == 2)
    agent.restart()
    await agent.heartbeat(sequence=1)
    await agent.publish(widget("w"), sequence=1)
    await agent.publish(widget("w"), sequence=2)
    await until(lambda: len(heard.of(ObjectUpdated)) == 4)
    assert heard.of(Missed) == []


async def test_a_key_that_another_binding_still_brings_goes_on(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    client, heard = await make_client()
    await client.bind("agent.ind.data.*.widget.#")
    await agent.publish(widget("w"), sequence=1)
    await until(lambda: len(heard.of(ObjectUpdated)) == 1)
    await client.unbind("agent.ind.data.#")
    await agent.publish(widget("w"), sequence=3)
    await until(lambda: len(heard.of(ObjectUpdated)) == 2)
    assert [item.count for item in heard.of(Missed)] == [1]


async def test_a_goodbye_is_reported_at_once(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    client, heard = await make_client()
    await agent.publish(widget("w"))
    await until(lambda: heard.of(ObjectUpdated))
    await agent.heartbeat(_goodbye=True)
    await until(lambda: heard.of(AgentRemoved))
    assert [item.reason for item in heard.of(AgentRemoved)] == [Removal.GOODBYE]
    assert client.agents == []
    await agent.publish(widget("w"))  # was on its way
    await agent.heartbeat()
    await until(lambda: client.agents)
    assert len(heard.of(ObjectUpdated)) == 1
    await agent.publish(part("w", {"turns": 8}))
    await until(lambda: len(heard.of(ObjectUpdated)) == 2)
    assert heard.of(ObjectUpdated)[1].object["name"] is None  # what was known of the object is forgotten


async def test_missing_events_are_counted_and_not_only_their_messages(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent()
    _, heard = await make_client()
    key = event_key(ALARM.key, 4, agent.info)
    for number, total, count in ((1, 3, 3), (2, 5, 2), (5, 40, 4), (6, 41, 1), (7, 44, 2)):
        events = [EventData(values={"name": "a"}, class_key=ALARM.key, timestamp=1, severity=4)] * count
        content = EventsIndication(events)
        await agent.send(
            Envelope(content=content, to=TOPIC, subject=key, agent=agent.info.name, sequence=number, events=total)
        )
    await until(lambda: len(heard.of(EventRaised)) == 12)
    missed = heard.of(Missed)
    assert [(item.count, item.events) for item in missed] == [(2, 31), (0, 1)]
    assert str(missed[0]) == f"31 events in 2 messages of agent {agent.info.name} under {key} did not arrive"


async def test_missing_events_are_reported_behind_those_that_wait_for_their_schema(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent()
    _, heard = await make_client(discover=False)
    for number in (1, 4, 5):
        await agent.raise_event({"name": "a"}, sequence=number)
    await until(lambda: len(heard.of(EventRaised)) == 3)
    kinds = [type(item) for item in heard if isinstance(item, EventRaised | Missed)]
    assert kinds == [EventRaised, Missed, EventRaised, EventRaised]


async def test_events_of_agents_that_do_not_count_them_are_missed_by_message(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent()
    _, heard = await make_client()
    for number in (4, 9):
        await agent.publish(widget("w"), sequence=number)
    await until(lambda: len(heard.of(ObjectUpdated)) == 2)
    (missed,) = heard.of(Missed)
    assert (missed.count, missed.events) == (4, None)
    assert str(missed).startswith(f"4 messages of agent {agent.info.name} under agent.ind.data.")
