"""The life of agents as the pages tell it."""

from __future__ import annotations

import pytest
from support.waiting import until
from web.pages.world import World

from qmf.console.aio import AgentAdded, AgentRemoved, BusConnected, BusDisconnected, HeartbeatSeen, Removal
from qmf.web.pages.live.presence import AgentHealth, AgentPresence, AgentPresences, ConnectionState
from qmf.web.pages.views.overview import connection_text


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


@pytest.mark.parametrize(
    ("state", "now", "text"),
    [
        (ConnectionState("amqp://b", True, 0.0), 9.0, ""),
        (ConnectionState("amqp://b", False, 0.0), 9.0, "There is no connection to amqp://b yet."),
        (
            ConnectionState("amqp://b", True, 0.0).after(BusDisconnected("amqp://b", "it ended", 3.0), 5.0),
            5.2,
            "The connection to amqp://b was lost just now: it ended. Next attempt in 3 s. "
            "What is shown is from before that.",
        ),
        (
            ConnectionState("amqp://b", True, 0.0).after(BusDisconnected("amqp://b", "it ended", None), 5.0),
            15.0,
            "The connection to amqp://b was lost 10s ago: it ended. What is shown is from before that.",
        ),
    ],
)
def test_the_bar_says_what_is_known_of_the_connection(state: ConnectionState, now: float, text: str) -> None:
    assert connection_text(state, now) == text
    assert connection_text(state.after(BusConnected("amqp://b", again=True), now), now) == ""
