"""The tables of states: each of them is complete, and what it does not list is refused."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import Any

import pytest

from qmf._state_table import IllegalEvent, StateTable
from qmf.bus.client.link_state import TRANSITIONS as LINK
from qmf.bus.client.link_state import LinkState, LinkTrigger
from qmf.bus.connection_state import TRANSITIONS as CONNECTION
from qmf.bus.connection_state import BusStateError, ConnectionState, ConnectionTrigger
from qmf.console.aio.agents import TRANSITIONS as AGENT
from qmf.console.aio.agents import AgentEvent, AgentState
from qmf.console.aio.following.follow_state import TRANSITIONS as FOLLOWING
from qmf.console.aio.following.follow_state import FollowEvent, FollowState
from qmf.console.aio.rpc.requests import TRANSITIONS as REQUEST
from qmf.console.aio.rpc.requests import RequestEvent, RequestState

Table = StateTable[Any, Any, Any]
Enum = type[enum.Enum]

#: Each table with its states, of which the first one is where it begins, its events, and the error of an illegal one.
TABLES: list[tuple[Table, Enum, Enum, type[Exception]]] = [
    (CONNECTION, ConnectionState, ConnectionTrigger, BusStateError),
    (LINK, LinkState, LinkTrigger, IllegalEvent),
    (AGENT, AgentState, AgentEvent, IllegalEvent),
    (REQUEST, RequestState, RequestEvent, IllegalEvent),
    (FOLLOWING, FollowState, FollowEvent, IllegalEvent),
]


def cases() -> Iterator[object]:
    for table, states, events, error in TABLES:
        for state in states:
            for event in events:
                yield pytest.param(table, state, event, error, id=f"{state}-{event.name}")


@pytest.mark.parametrize(("table", "state", "event", "error"), list(cases()))
def test_an_event_leads_to_the_state_in_the_table_or_is_illegal(
    table: Table, state: enum.Enum, event: enum.Enum, error: type[Exception]
) -> None:
    following = table.rows.get(state, {}).get(event)
    if following is not None:
        assert table.next(state, event) is following
        return
    text = re.escape(f"{table.subject} a:b is {state.value}; {event.value!r} is not possible then")
    with pytest.raises(error, match=f"^{text}$"):
        table.next(state, event, "a:b")


@pytest.mark.parametrize(
    ("table", "states", "events", "error"), TABLES, ids=lambda value: getattr(value, "subject", "")
)
def test_every_state_can_be_reached_and_every_event_happens(
    table: Table, states: Enum, events: Enum, error: object
) -> None:
    first = next(iter(states))
    reached, new = {first}, {first}
    while new:
        followings = {following for state in new for following in table.rows.get(state, {}).values()}
        new = {item[0] if isinstance(item, tuple) else item for item in followings} - reached
        reached |= new
    assert reached == set(states)
    assert {event for row in table.rows.values() for event in row} == set(events)
