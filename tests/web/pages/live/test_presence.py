"""The life of agents as the pages tell it."""

from __future__ import annotations

import pytest
from support.waiting import until
from web.pages.world import World

from qmf.console.aio import (
    Agent,
    AgentAdded,
    AgentRemoved,
    AgentUpdated,
    BusConnected,
    BusDisconnected,
    HeartbeatSeen,
    Removal,
    StillFindingAgents,
)
from qmf.errors import RequestTimeout
from qmf.protocol import AgentInfo
from qmf.views.agents import AgentHealth
from qmf.web.pages.live.followed import own_failures
from qmf.web.pages.live.presence import AgentPresence, AgentPresences, BrokerState
from qmf.web.pages.views.graph import bus_graph
from qmf.web.pages.views.overview import agent_rows, connection_text, finding_text, overview


def presence(held: AgentPresences) -> AgentPresence:
    (found,) = held.all()
    return found


async def test_an_agent_that_is_cut_off_is_not_gone_until_it_does_not_return(opened: World) -> None:
    await until(lambda: opened.client.agents)
    (agent,) = opened.client.agents
    held = AgentPresences()
    held.notice(AgentAdded(agent), 1.0)
    held.notice(HeartbeatSeen(agent, 0), 2.0)
    assert presence(held).health(2.0) is AgentHealth.ALIVE
    held.notice(AgentRemoved(agent, Removal.DISCONNECTED), 3.0)
    assert presence(held).health(3.0) is AgentHealth.CUT
    assert (len(held), presence(held).heartbeat) == (1, 2.0)
    held.notice(AgentAdded(agent), 4.0)
    assert presence(held).health(4.0) is AgentHealth.ALIVE
    held.notice(AgentRemoved(agent, Removal.DISCONNECTED), 5.0)
    held.drop_cut(6.0)
    assert presence(held).health(6.0) is AgentHealth.GONE
    assert len(held) == 0


async def test_an_agent_that_said_goodbye_is_gone_at_once(opened: World) -> None:
    await until(lambda: opened.client.agents)
    (agent,) = opened.client.agents
    held = AgentPresences()
    held.notice(AgentAdded(agent), 1.0)
    held.notice(AgentRemoved(agent, Removal.GOODBYE), 3.0)
    assert presence(held).health(3.0) is AgentHealth.GONE


def many(held: AgentPresences, count: int, now: float = 1.0) -> list[Agent]:
    """Agents that have announced themselves, in no order."""
    numbers = [at * 7919 % count for at in range(count)]
    agents = [Agent(AgentInfo(name=f"v:p:{number:05}", heartbeat_interval=10)) for number in numbers]
    for agent in agents:
        held.notice(AgentAdded(agent), now)
    return agents


def test_agents_are_in_order_as_they_come_and_go() -> None:
    held = AgentPresences()
    agents = many(held, 100)
    assert held.names() == [f"v:p:{number:05}" for number in range(100)]
    for agent in agents[::2]:
        held.notice(AgentRemoved(agent, Removal.GOODBYE), 2.0)
    held.notice(AgentAdded(agents[0]), 3.0)
    held.notice(AgentUpdated(agents[0]), 3.0)
    there = sorted(agent.name for agent in (*agents[1::2], agents[0]))
    assert held.names() == there + sorted(agent.name for agent in agents[2::2])
    assert [item.agent.name for item in held.all()] == held.names()
    assert len(held) == 51


def test_states_are_counted_once_a_second_or_when_agents_come_or_go() -> None:
    held = AgentPresences()
    agents = many(held, 4)
    for agent in agents:
        held.notice(HeartbeatSeen(agent, 0), 10.0)
    found = held.tally(11.0)
    assert found == {AgentHealth.ALIVE: 4}
    held.notice(HeartbeatSeen(agents[0], 0), 11.0)
    assert held.tally(11.5) is found
    assert held.tally(26.0) == {AgentHealth.ALIVE: 1, AgentHealth.LATE: 3}
    held.notice(AgentRemoved(agents[1], Removal.GOODBYE), 26.0)
    assert held.tally(26.0) == {AgentHealth.ALIVE: 1, AgentHealth.LATE: 2, AgentHealth.GONE: 1}
    held.notice(AgentRemoved(agents[0], Removal.DISCONNECTED), 26.0)
    assert held.tally(26.0) == {AgentHealth.CUT: 1, AgentHealth.LATE: 2, AgentHealth.GONE: 1}
    assert held.tally(5.0) is not held.tally(26.0)


async def test_a_page_of_agents_reads_no_others(opened: World) -> None:
    site = opened.site
    many(site.agents, 200)
    found = overview(site, 2.0, most=10)
    assert len(found.agents) == 10
    assert found.all_agents >= 200
    assert found.alive >= 200
    assert [row.key for row in agent_rows(site, ["v:p:00007", "nobody"], 2.0)] == ["v:p:00007"]
    agents = [node for node in bus_graph(site).nodes if node.category == "agent"]
    assert len(agents) < 100
    assert bus_graph(site).left_out >= 100


@pytest.mark.parametrize(
    ("search", "text"),
    [
        (None, ""),
        (StillFindingAgents(7, None), "Still finding agents: 7 so far. What is shown is not complete yet."),
        (StillFindingAgents(7, 1234), "Still finding agents: 7 of 1,234 so far. What is shown is not complete yet."),
    ],
)
def test_a_search_for_agents_that_goes_on_is_told(search: StillFindingAgents | None, text: str) -> None:
    assert finding_text(search) == text


def test_a_search_for_agents_is_no_failure_of_one() -> None:
    late = RequestTimeout("query", "a:b:c", 1.0)
    assert own_failures({"*": StillFindingAgents(7, None), "a:b:c": late}) == {"a:b:c": late}


@pytest.mark.parametrize(
    ("state", "now", "text"),
    [
        (BrokerState("amqp://b", True, 0.0), 9.0, ""),
        (BrokerState("amqp://b", False, 0.0), 9.0, "There is no connection to amqp://b yet."),
        (
            BrokerState("amqp://b", True, 0.0).after(BusDisconnected("amqp://b", "it ended", 3.0), 5.0),
            5.2,
            "The connection to amqp://b was lost just now: it ended. Next attempt in 3 s. "
            "What is shown is from before that.",
        ),
        (
            BrokerState("amqp://b", True, 0.0).after(BusDisconnected("amqp://b", "it ended", None), 5.0),
            15.0,
            "The connection to amqp://b was lost 10s ago: it ended. What is shown is from before that.",
        ),
    ],
)
def test_the_bar_says_what_is_known_of_the_connection(state: BrokerState, now: float, text: str) -> None:
    assert connection_text(state, now) == text
    assert connection_text(state.after(BusConnected("amqp://b", again=True), now), now) == ""
