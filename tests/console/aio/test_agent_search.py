"""The search for agents: how long it waits for whom, and what a console says while it lasts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from console.conftest import MakeAgent, MakeClient
from support.crowd import Crowd
from support.scripted_agent import PACKAGE, ScriptedAgent, part, widget
from support.waiting import WAIT_LIMIT, until

from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import AgentsFound, Client, StillFindingAgents
from qmf.console.aio.agent_search import (
    BROKER_FACTOR,
    LONGEST_QUIET,
    MISSING_QUIET,
    MISSING_QUIET_PER_AGENT,
    OTHERS_QUIET,
    PROBED,
    QUIET,
    QUIET_PER_AGENT,
    AgentSearch,
)
from qmf.schema import ClassKey

EXCHANGE = ClassKey("org.apache.qpid.broker", "exchange")


def started(limit: float = 0.5) -> AgentSearch:
    search = AgentSearch()
    search.begin(100.0, limit)
    return search


def answered(search: AgentSearch, count: int, now: float) -> None:
    for number in range(count):
        search.on_answer(f"example.org:crowd:{number}", now, is_new=True)


def test_a_search_without_an_answer_is_over_at_its_limit() -> None:
    assert started(0.5).due == 100.5


def wants(search: AgentSearch) -> bool:
    """Whether it wants a probe now; a function, since type checkers assume that an attribute stays the same."""
    return search.wants_probe


def over(search: AgentSearch) -> float:
    """When the search is over if nothing but the answers to its probe come, at once."""
    if wants(search):
        now = search.due
        for name in search.probe(now):
            search.on_answer(name, now, is_new=False)
    assert not wants(search)
    return search.due


def test_a_broker_that_takes_long_to_accept_the_request_is_given_longer_for_the_first_answer() -> None:
    search = started(0.5)
    search.on_accepted(100.01)
    assert search.due == pytest.approx(100.51)
    search = started(0.5)
    search.on_accepted(100.1)
    assert search.due == pytest.approx(100.1 + 0.1 * BROKER_FACTOR)
    search = started(0.5)
    search.on_accepted(109)
    assert search.due == pytest.approx(109 + LONGEST_QUIET)


def test_few_agents_are_found_as_soon_as_none_answers_for_a_moment() -> None:
    search = started()
    answered(search, 3, 100.01)
    assert over(search) == pytest.approx(100.01 + QUIET)


def test_answers_that_take_long_are_waited_for_as_long_again() -> None:
    search = started()
    answered(search, 3, 100.3)
    assert over(search) == pytest.approx(100.6)


def test_every_answer_extends_the_search_beyond_its_limit() -> None:
    search = started(0.5)
    for number in range(100):
        search.on_answer(f"example.org:crowd:{number}", 100.0 + number, is_new=True)
    assert search.due > 199


def test_the_time_without_an_answer_grows_with_the_agents_known() -> None:
    search = started()
    answered(search, 1000, 100.01)
    assert over(search) == pytest.approx(100.01 + 1000 * QUIET_PER_AGENT)


def test_agents_that_the_broker_knows_of_are_waited_for() -> None:
    search = started()
    answered(search, 1, 100.01)
    search.expected = 2
    assert search.due == pytest.approx(100.01 + MISSING_QUIET)
    search.expected = 4000
    assert search.due == pytest.approx(100.01 + 4000 * MISSING_QUIET_PER_AGENT)
    search.expected = 10**9
    assert search.due == pytest.approx(100.01 + LONGEST_QUIET)


def test_all_agents_that_the_broker_knows_of_are_found_without_a_long_wait() -> None:
    search = started()
    search.expected = 1000
    answered(search, 1000, 100.01)
    assert search.due == pytest.approx(100.01 + QUIET)


@pytest.mark.parametrize("is_new", [False, True])
def test_a_late_answer_goes_on_with_the_search_if_its_agent_is_new(is_new: bool) -> None:
    search = started()
    answered(search, 1, 100.01)
    search.end()
    search.on_answer(f"example.org:crowd:{7 if is_new else 0}", 100.2, is_new=is_new)
    assert search.running is is_new
    assert search.found == (2 if is_new else 1)


def test_an_agent_that_is_started_does_not_extend_the_search() -> None:
    search = started()
    answered(search, 1, 100.01)
    due = search.due
    search.on_agent_started("example.org:crowd:7")
    assert search.due == due
    assert search.found == 2


def name_of(number: int) -> str:
    return f"example.org:crowd:{number}"


def test_where_nobody_knows_how_many_there_are_some_agents_are_asked_again_before_a_search_ends() -> None:
    search = started()
    answered(search, 100, 100.01)
    assert wants(search)
    now = search.due
    assert now < 100.01 + 100 * QUIET_PER_AGENT
    asked = search.probe(now)
    assert len(asked) == len(set(asked)) == PROBED
    assert name_of(99) in asked
    assert not wants(search)
    assert search.due == pytest.approx(now + LONGEST_QUIET)
    for name in asked[1:]:
        search.on_answer(name, now + 1.0, is_new=False)
    assert search.due == pytest.approx(now + LONGEST_QUIET), "one is still to answer"
    search.on_answer(asked[0], now + 2.0, is_new=False)
    assert search.due == pytest.approx(now + 4.0), "as long again as that answer took"


@pytest.mark.parametrize("before", [True, False])
def test_agents_that_answer_during_or_after_a_probe_make_another_necessary(before: bool) -> None:
    search = started()
    answered(search, 1, 100.01)
    assert search.probe(100.05) == [name_of(0)]
    if before:
        search.on_answer(name_of(1), 101.0, is_new=True)
    search.on_answer(name_of(0), 101.5, is_new=False)
    if not before:
        search.on_answer(name_of(1), 102.0, is_new=True)
    assert wants(search)
    assert sorted(search.probe(search.due)) == [name_of(0), name_of(1)]


def test_a_probe_that_is_never_answered_ends_a_search_unless_others_answer() -> None:
    search = started()
    answered(search, 1, 100.01)
    search.probe(100.05)
    assert not wants(search)
    search.on_answer(name_of(1), 101.0, is_new=True)
    assert wants(search), "at the end of the first one"
    assert search.due == pytest.approx(100.05 + LONGEST_QUIET)


def test_agents_that_announced_themselves_are_asked_when_none_has_answered() -> None:
    search = started(0.5)
    assert not wants(search)
    search.on_agent_started(name_of(7))
    assert search.due == 100.5
    assert wants(search)
    assert search.probe(100.5) == [name_of(7)]
    assert search.due == pytest.approx(100.5 + LONGEST_QUIET)
    search.on_answer(name_of(7), 101.0, is_new=False)
    assert search.found == 1
    assert wants(search)


def test_agents_that_are_gone_are_not_waited_for() -> None:
    search = started()
    answered(search, 2, 100.01)
    search.probe(100.05)
    search.on_answer(name_of(0), 100.06, is_new=False)
    search.on_agent_removed(name_of(1), 100.07)
    assert search.found == 1
    assert search.due < 100.2


def test_the_answer_of_an_agent_inside_a_broker_says_nothing_of_the_others() -> None:
    search = started(30.0)
    search.on_answer("apache.org:qpidd:7", 100.01, is_new=True, in_broker=True)
    assert search.due == pytest.approx(100.01 + OTHERS_QUIET)
    assert not wants(search)
    search = started(30.0)
    search.on_answer("apache.org:qpidd:7", 100.1, is_new=True, in_broker=True)
    assert search.due == pytest.approx(100.1 + 0.1 * BROKER_FACTOR)
    search.on_answer(name_of(1), 100.2, is_new=True)
    assert search.probe(search.due) == [name_of(1)]


def test_a_search_whose_broker_says_how_many_there_are_asks_nobody_again() -> None:
    search = started()
    answered(search, 10, 100.01)
    search.asking = True
    assert not wants(search)
    search.asking, search.expected = False, 10
    assert not wants(search)


def finding(client: Client) -> StillFindingAgents | None:
    """What the client says now; a function, since type checkers assume that an attribute stays the same."""
    return client.finding_agents


@pytest.fixture
async def crowd(exchange: MemoryExchange, request: pytest.FixtureRequest) -> AsyncIterator[Crowd]:
    """Agents of one process, 300 where a test does not say how many."""
    made = Crowd(MemoryBus(exchange), getattr(request, "param", 300))
    await made.start()
    yield made
    await made.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine, agents that are known to be missing answer in time."""
    monkeypatch.setattr("qmf.console.aio.agent_search.MISSING_QUIET", WAIT_LIMIT)
    monkeypatch.setattr("qmf.console.aio.agent_search.LONGEST_QUIET", WAIT_LIMIT)


async def make_broker(make_agent: MakeAgent, agents: int) -> ScriptedAgent:
    qpidd = await make_agent(qpidd=True)
    qpidd.objects = [part("org.apache.qpid.broker:exchange:qmf.default.direct", {"bindingCount": agents}, key=EXCHANGE)]
    return qpidd


#: Few agents for each run, and as many as a site has.
SIZES = pytest.mark.parametrize(
    "crowd", [300, pytest.param(2_000, marks=[pytest.mark.slow, pytest.mark.soak])], indirect=True
)


@SIZES
@pytest.mark.usefixtures("patient")
async def test_a_console_is_open_when_all_agents_that_the_broker_knows_of_have_answered(
    exchange: MemoryExchange, make_agent: MakeAgent, crowd: Crowd
) -> None:
    count = len(crowd.names)
    qpidd = await make_broker(make_agent, count)
    crowd.hold(after=10)
    client = Client(MemoryBus(exchange), timeout=WAIT_LIMIT)
    opening = asyncio.ensure_future(client.open())
    await until(lambda: len(client.agents) == 11 and getattr(finding(client), "expected", None) == count + 1)
    part_of_them = await client.objects("widget", package=PACKAGE)
    assert len(part_of_them) == 10
    assert str(part_of_them.failures["*"]) == f"still finding agents: 11 of {count + 1:,} so far"
    assert "still finding agents" in repr(part_of_them)
    assert not opening.done()
    await crowd.release()
    await opening
    assert finding(client) is None
    found = await client.objects("widget", package=PACKAGE)
    assert len(found) == count
    assert found.failures == {}
    assert qpidd.info.name in {agent.name for agent in client.agents}
    await client.close()


@SIZES
@pytest.mark.usefixtures("patient")
async def test_classes_and_followed_objects_say_that_agents_are_being_found(
    exchange: MemoryExchange, make_agent: MakeAgent, crowd: Crowd
) -> None:
    count = len(crowd.names)
    await make_broker(make_agent, count)
    crowd.hold(after=5)
    client = Client(MemoryBus(exchange), timeout=WAIT_LIMIT, settle=0)
    heard: list[AgentsFound] = []
    client.listen(lambda item: heard.append(item) if isinstance(item, AgentsFound) else None)
    await client.open()
    await until(lambda: len(client.agents) == 6 and getattr(finding(client), "expected", None) == count + 1)
    assert isinstance((await client.classes()).failures["*"], StillFindingAgents)
    assert isinstance((await client.packages()).failures["*"], StillFindingAgents)
    follow = client.follow("widget", package=PACKAGE)
    entering = asyncio.ensure_future(follow.__aenter__())
    await until(lambda: len(follow) == 5)
    assert isinstance(follow.failures["*"], StillFindingAgents)
    assert [follow.answered] == [False]
    known = client.follow("widget", package=PACKAGE, agent=crowd.names[0])
    async with known:
        assert known.answered, "one agent is followed, which is known"
        assert known.failures == {}
    unknown = client.follow("widget", package=PACKAGE, agent=crowd.names[-1])
    beginning = asyncio.ensure_future(unknown.__aenter__())
    await asyncio.sleep(0)
    assert isinstance(unknown.failures["*"], StillFindingAgents)
    assert [unknown.answered] == [False], "an agent that is being found has not answered"
    one = await client.objects("widget", package=PACKAGE, agent=crowd.names[0])
    assert one.failures == {}, "one agent was asked, which is known"
    waiting = asyncio.ensure_future(client.objects("widget", package=PACKAGE, agent=crowd.names[-1]))
    schema = asyncio.ensure_future(client.schema(ClassKey("org.example.none", "none")))
    await asyncio.sleep(0)
    assert not heard
    await crowd.release()
    await entering
    assert follow.answered
    assert follow.failures == {}
    assert len(follow) == count
    await beginning
    assert unknown.answered
    assert len(unknown) == 1
    assert len(await waiting) == 1, "an agent that is being found is waited for"
    with pytest.raises(LookupError, match=r"no class 'org\.example\.none:none'"):
        await schema
    assert [item.count for item in heard] == [count + 1]
    await unknown.close()
    await follow.close()
    await client.close()


async def test_a_search_ends_with_the_connection(make_client: MakeClient, exchange: MemoryExchange) -> None:
    client, _ = await make_client()
    assert finding(client) is not None
    exchange.drop("cable cut")
    await until(lambda: finding(client) is None)


async def test_a_broker_that_does_not_know_how_many_agents_there_are_delays_nothing_for_long(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    qpidd = await make_agent(qpidd=True)
    qpidd.objects = [widget("w")]
    client, heard = await make_client(settle=WAIT_LIMIT)
    assert client.finding_agents is None
    assert [item.count for item in heard.of(AgentsFound)] == [1]


@pytest.mark.usefixtures("patient")
async def test_a_console_waits_while_a_busy_process_of_agents_answers_nothing(
    exchange: MemoryExchange, crowd: Crowd
) -> None:
    crowd.pause(every=40)
    client = Client(MemoryBus(exchange), timeout=WAIT_LIMIT)
    opening = asyncio.ensure_future(client.open())
    asked: list[int] = []
    for pause in range(1, 8):
        await until(lambda pause=pause: len(client.agents) == 40 * pause and crowd.paused)  # type: ignore[misc]
        assert str(finding(client)) == f"still finding agents: {40 * pause} so far"
        await until(lambda: crowd.asked_again > 0)
        asked.append(crowd.asked_again)
        assert not opening.done()
        await crowd.go_on()
    assert max(asked) <= PROBED
    await opening
    assert finding(client) is None
    assert len(client.agents) == 300
    assert (await client.objects("widget", package=PACKAGE)).failures == {}
    await client.close()
