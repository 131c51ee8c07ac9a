"""The table of a request's life, and the requests that follow it."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from support.waiting import until

from qmf._state_table import IllegalEvent
from qmf.console.aio import AgentLost
from qmf.console.aio.rpc.requests import (
    TRANSITIONS,
    PendingRequests,
    Request,
    RequestEvent,
    RequestState,
)
from qmf.errors import DisconnectedError, LinkError, RemoteError, RequestTimeout

FINAL = [RequestState.ANSWERED, RequestState.REFUSED, RequestState.LOST, RequestState.EXPIRED, RequestState.CANCELLED]


def request(state: RequestState) -> Request:
    loop = asyncio.new_event_loop()
    try:
        return Request(1, "method echo", "a:b:c", 5.0, loop.create_future(), state)
    finally:
        loop.close()


async def sent(number: int) -> None:
    return


async def stuck(number: int) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(("state", "step"), list(itertools.product(RequestState, RequestEvent)))
def test_an_event_leads_to_the_state_in_the_table_or_is_illegal(state: RequestState, step: RequestEvent) -> None:
    item = request(state)
    following = TRANSITIONS.rows.get(state, {}).get(step)
    if following is None:
        with pytest.raises(IllegalEvent, match=f"{state.value}; {step.value!r} is not possible"):
            item.advance(step)
        assert item.state is state
    else:
        item.advance(step)
        assert item.state is following


def test_final_states_are_those_without_a_way_out() -> None:
    assert [state for state in RequestState if state.final] == FINAL


def test_every_state_can_be_reached() -> None:
    reached = {RequestState.SENDING} | {following for row in TRANSITIONS.rows.values() for following in row.values()}
    assert reached == set(RequestState)


async def test_parts_are_collected_in_order_until_the_last() -> None:
    requests = PendingRequests()
    asking = asyncio.create_task(requests.ask(sent, what="query", agent="a:b:c", timeout=5))
    await until(lambda: len(requests) == 1)
    for content in ("one", "two"):
        requests.part(1, content, last=False)
    assert not asking.done()
    requests.part(1, "three", last=True)
    assert await asking == ["one", "two", "three"]
    assert (requests.counts.asked, requests.counts.answered, len(requests)) == (1, 1, 0)


async def test_an_answer_may_overtake_the_confirmation() -> None:
    requests = PendingRequests()
    asking = asyncio.create_task(requests.ask(stuck, what="query", agent=None, timeout=5))
    await until(lambda: len(requests) == 1)
    requests.part(1, "answer", last=True)
    assert await asking == ["answer"]


async def test_late_and_foreign_answers_are_counted_and_ignored() -> None:
    requests = PendingRequests()
    first = asyncio.create_task(requests.ask(sent, what="query", agent=None, timeout=0.001))
    with pytest.raises(RequestTimeout):
        await first
    second = asyncio.create_task(requests.ask(sent, what="query", agent=None, timeout=5))
    await until(lambda: len(requests) == 1)
    requests.part(1, "late", last=True)
    requests.refuse(99, RemoteError("no"))
    assert not second.done()
    requests.part(2, "right", last=True)
    assert await second == ["right"]
    assert requests.counts.late == 2
    assert requests.counts.expired == 1


async def test_the_timeout_names_request_and_agent() -> None:
    with pytest.raises(RequestTimeout, match=r"no answer to method echo from agent a:b:c within 0\.001 s"):
        await PendingRequests().ask(sent, what="method echo", agent="a:b:c", timeout=0.001)


async def test_the_timeout_covers_sending() -> None:
    with pytest.raises(RequestTimeout):
        await PendingRequests().ask(stuck, what="method echo", agent="a:b:c", timeout=0.001)


async def test_an_exception_ends_the_request() -> None:
    requests = PendingRequests()
    asking = asyncio.create_task(requests.ask(sent, what="query", agent=None, timeout=5))
    await until(lambda: len(requests) == 1)
    requests.part(1, "part", last=False)
    requests.refuse(1, RemoteError("no", 6))
    with pytest.raises(RemoteError, match="no"):
        await asking
    assert requests.counts.refused == 1


async def test_a_refused_message_fails_its_own_request_only() -> None:
    requests = PendingRequests()

    async def refuse(number: int) -> None:
        raise LinkError("", "amqp:unauthorized-access", "no query for you")

    other = asyncio.create_task(requests.ask(sent, what="query", agent=None, timeout=5))
    await until(lambda: len(requests) == 1)
    with pytest.raises(LinkError, match="no query for you"):
        await requests.ask(refuse, what="query", agent=None, timeout=5)
    assert not other.done()
    requests.part(1, "answer", last=True)
    assert await other == ["answer"]


async def test_losing_the_connection_fails_all() -> None:
    requests = PendingRequests()
    asking = [asyncio.create_task(requests.ask(sent, what="q", agent=name, timeout=5)) for name in ("a", "b", None)]
    await until(lambda: len(requests) == 3)
    requests.lose_all(DisconnectedError("amqp://x", "gone"))
    results = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(item) for item in results] == [DisconnectedError] * 3
    assert requests.counts.lost == 3


async def test_losing_an_agent_fails_its_requests_only() -> None:
    requests = PendingRequests()
    mine = asyncio.create_task(requests.ask(sent, what="method echo", agent="a", timeout=5))
    other = asyncio.create_task(requests.ask(sent, what="q", agent="b", timeout=5))
    await until(lambda: len(requests) == 2)
    requests.lose_agent("a", "restarted (epoch 1, then 2)")
    with pytest.raises(AgentLost, match=r"agent a restarted \(epoch 1, then 2\) before it answered method echo"):
        await mine
    requests.part(2, "answer", last=True)
    assert await other == ["answer"]


async def test_cancelling_forgets_the_request() -> None:
    requests = PendingRequests()
    asking = asyncio.create_task(requests.ask(sent, what="q", agent=None, timeout=5))
    await until(lambda: len(requests) == 1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert len(requests) == 0
    assert requests.counts.cancelled == 1
