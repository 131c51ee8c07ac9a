"""Method calls and property changes: checks, results, errors, limits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from agent.warehouse import Shelf, ShelfImportResult, ShelfMoveResult
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import Agent, Caller, MethodError, ObjectId, current_caller
from qmf.agent.layout.object_state import object_id
from qmf.agent.request_errors import RequestRefused
from qmf.agent.requests.call_runner import CallRunner
from qmf.protocol import Envelope, ExceptionResponse, MethodRequest, MethodResponse, decode, encode
from qmf.testing import ManualClock


class Stocked(Shelf):
    """A shelf with methods; what it does is the test's choice."""

    def __init__(self) -> None:
        super().__init__(number=1)
        self.calls: list[object] = []
        self.outcome: object = None
        self.callers: list[Caller | None] = []

    def move(self, items: int, from_: str, factor: float) -> ShelfMoveResult:
        self.calls.append((items, from_, factor))
        self.callers.append(current_caller())
        return ShelfMoveResult(moved=items * 2, note="ok")

    async def clear(self) -> None:
        self.calls.append("clear")
        if isinstance(self.outcome, asyncio.Event):
            await self.outcome.wait()
        elif isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome if not isinstance(self.outcome, asyncio.Event) else None  # type: ignore[return-value]

    async def import_(self, data: object) -> ShelfImportResult:
        await asyncio.sleep(0)
        return ShelfImportResult(data=data)

    def _qmf_set_property(self, name: str, value: Any) -> None:
        self.calls.append((name, value))
        if value == "forbidden":
            raise MethodError("not this one", 6)
        super()._qmf_set_property(name, value)


@pytest.fixture
def shelf(agent: Agent) -> Stocked:
    shelf = Stocked()
    agent.add(shelf)
    return shelf


async def call(bus: FakeBus, shelf: Shelf, method: str, **arguments: object) -> Envelope:
    (answer,) = await bus.request(MethodRequest(method=method, object_id=object_id(shelf), arguments=arguments))
    return answer


def outputs(answer: Envelope) -> Mapping[str, object]:
    assert isinstance(answer.content, MethodResponse), answer
    return answer.content.arguments


def refusal(answer: Envelope) -> tuple[int | None, str]:
    assert isinstance(answer.content, ExceptionResponse), answer
    return answer.content.code, answer.content.text


async def test_a_method_with_results(agent: Agent, bus: FakeBus, shelf: Stocked) -> None:
    answer = await call(bus, shelf, "move", items=4, **{"from": "left", "factor": 2})
    assert outputs(answer) == {"moved": 8, "note": "ok"}
    assert shelf.calls == [(4, "left", 2.0)]
    assert (answer.agent, answer.correlation_id, answer.subject) == ("example.org:stock:one", "7", "console-1")


async def test_missing_arguments_take_their_default(agent: Agent, bus: FakeBus, shelf: Stocked) -> None:
    assert outputs(await call(bus, shelf, "move", items=1)) == {"moved": 2, "note": "ok"}
    assert shelf.calls == [(1, "door", 1.0)]


async def test_a_method_without_results(agent: Agent, bus: FakeBus, shelf: Stocked) -> None:
    assert outputs(await call(bus, shelf, "clear")) == {}


async def test_arguments_both_ways_and_reserved_names(agent: Agent, bus: FakeBus, shelf: Stocked) -> None:
    assert outputs(await call(bus, shelf, "import", data={"a": [1, "b"]})) == {"data": {"a": [1, "b"]}}


async def test_a_missing_map_is_empty(agent: Agent, bus: FakeBus, shelf: Stocked) -> None:
    assert outputs(await call(bus, shelf, "import")) == {"data": {}}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "argument 'items' of Shelf.move (uint16) is missing"),
        ({"items": 1, "colour": 2}, "Shelf.move has no input argument 'colour'"),
        ({"items": 1, "moved": 2}, "Shelf.move has no input argument 'moved'"),
        ({"items": "many"}, "argument 'items' of Shelf.move (uint16): must be a valid uint16, not 'many'"),
        ({"items": -1}, "argument 'items' of Shelf.move (uint16): must be 0 to 65535, not -1"),
        ({"items": 1001}, "argument 'items' of Shelf.move (uint16): must be at most 1000, not 1001"),
        ({"items": 1, "from": 5}, "argument 'from' of Shelf.move (sstr): must be a valid sstr, not 5"),
    ],
)
async def test_arguments_are_refused_by_name(
    agent: Agent, bus: FakeBus, shelf: Stocked, arguments: dict[str, object], text: str
) -> None:
    assert refusal(await call(bus, shelf, "move", **arguments)) == (4, text)
    assert shelf.calls == []


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (MethodRequest(method="clear", object_id=ObjectId("nobody")), (1, "no object found with id nobody")),
        (MethodRequest(method="clear"), (4, "method clear needs an '_object_id'")),
    ],
)
async def test_the_object_must_exist(
    agent: Agent, bus: FakeBus, request_: MethodRequest, expected: tuple[int, str]
) -> None:
    (answer,) = await bus.request(request_)
    assert refusal(answer) == expected


async def test_unknown_and_unwritten_methods(agent: Agent, bus: FakeBus, shelf: Stocked) -> None:
    assert refusal(await call(bus, shelf, "clean")) == (2, "no Shelf method 'clean'; did you mean clear?")
    assert refusal(await call(bus, shelf, "_qmf_values"))[0] == 2
    assert refusal(await call(bus, shelf, "unwritten")) == (3, "Shelf.unwritten is not implemented")
    plain = Shelf(number=2)
    agent.add(plain)
    assert refusal(await call(bus, plain, "clear")) == (3, "Shelf.clear is not implemented")


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (MethodError("jammed", 0x10005), (0x10005, "jammed")),
        (MethodError("jammed"), (7, "jammed")),
        (NotImplementedError("later"), (3, "later")),
        (ValueError("first line\nsecond"), (7, "first line")),
        (KeyError("x"), (7, "KeyError: 'x'")),
        (RuntimeError(), (7, "RuntimeError")),
        (TimeoutError("slow disk"), (7, "slow disk")),
        (asyncio.CancelledError(), (7, "Shelf.clear was cancelled")),
        (5, (7, "Shelf.clear returned int instead of None")),
        (RuntimeError("x" * 5000), (7, "x" * 1000)),
    ],
)
async def test_failures(
    agent: Agent,
    bus: FakeBus,
    shelf: Stocked,
    outcome: object,
    expected: tuple[int, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    shelf.outcome = outcome
    answer = await call(bus, shelf, "clear")
    assert refusal(answer) == expected
    assert b"Traceback" not in bus.sent[-1]
    if isinstance(outcome, ValueError):
        assert "Shelf.clear failed" in caplog.text
        assert any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (
            ShelfMoveResult(moved=-1, note=""),
            "argument 'moved' of Shelf.move (uint32): must be 0 to 4294967295, not -1",
        ),
        (ShelfImportResult(data={}), "no attribute 'moved'"),
        (None, "Shelf.move returned NoneType instead of a Result"),
    ],
)
async def test_results_are_checked(
    agent: Agent, bus: FakeBus, shelf: Stocked, monkeypatch: pytest.MonkeyPatch, result: object, text: str
) -> None:
    monkeypatch.setattr(shelf, "move", lambda *_: result)
    code, reason = refusal(await call(bus, shelf, "move", items=1))
    assert code == 7
    assert text in reason


async def test_the_caller_is_known_while_the_method_runs(agent: Agent, bus: FakeBus, shelf: Stocked) -> None:
    request = MethodRequest(method="move", object_id=object_id(shelf), arguments={"items": 1})
    await bus.request(request, user_id="alice", reply_to="qmf.default.topic/k")
    await bus.request(request, reply_to="queue")
    assert shelf.callers == [Caller("alice", "qmf.default.topic/k"), Caller(None, "queue")]
    assert current_caller() is None


async def test_slow_methods_run_beside_others_up_to_the_limit(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, max_calls=2) as agent:
        shelf = Stocked()
        agent.add(shelf)
        shelf.outcome = gate = asyncio.Event()
        bus.take()
        for number in range(3):
            request = MethodRequest(method="clear", object_id=object_id(shelf))
            bus.deliver(encode(Envelope(content=request, reply_to="q", correlation_id=str(number))), bus.direct_key())
        await until(lambda: len(shelf.calls) == 2)
        for _ in range(20):
            await asyncio.sleep(0)
        assert (len(shelf.calls), bus.undone) == (2, 3)
        gate.set()
        await until(lambda: bus.undone == 0)
        assert [answer.correlation_id for answer in bus.take()] == ["0", "1", "2"]


async def test_calls_that_fail_at_once_give_their_place_back(
    bus: FakeBus, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, max_calls=1) as agent:
        shelf = Stocked()
        agent.add(shelf)
        for error, text in (
            (ValueError("bad"), "bad"),
            (StopIteration(3), "the function raised StopIteration: 3"),
            (asyncio.CancelledError(), "Shelf.move was cancelled"),
            (MethodError("no", 7), "no"),
        ):

            def fail(*_: object, error: BaseException = error) -> None:
                raise error

            monkeypatch.setattr(shelf, "move", fail)
            assert refusal(await call(bus, shelf, "move", items=1)) == (7, text)
        monkeypatch.undo()
        assert outputs(await call(bus, shelf, "move", items=4)) == {"moved": 8, "note": "ok"}


async def test_a_call_cancelled_before_it_began_to_wait_gives_its_place_back(bus: FakeBus, clock: ManualClock) -> None:
    runner = CallRunner(1, None)

    async def wait() -> None:
        await asyncio.sleep(3600)

    first = asyncio.ensure_future(runner.run("first", wait))
    asyncio.get_running_loop().call_soon(first.cancel)
    with pytest.raises(RequestRefused, match="first was cancelled"):
        await first
    assert await asyncio.wait_for(runner.run("second", lambda: 5), 5) == 5


async def test_a_time_limit_ends_slow_methods(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, method_timeout=0.01) as agent:
        shelf = Stocked()
        agent.add(shelf)
        shelf.outcome = asyncio.Event()
        assert refusal(await call(bus, shelf, "clear")) == (7, "Shelf.clear took longer than 0.01 s")


async def test_callers_get_an_error_when_the_agent_closes(bus: FakeBus, clock: ManualClock) -> None:
    agent = Agent(bus, vendor="v", product="p", clock=clock)
    await agent.start()
    shelf = Stocked()
    agent.add(shelf)
    shelf.outcome = asyncio.Event()
    bus.take()
    bus.deliver(
        encode(Envelope(content=MethodRequest(method="clear", object_id=object_id(shelf)), reply_to="q")),
        bus.direct_key(),
    )
    await until(lambda: bool(shelf.calls))
    await agent.close()
    answer = decode(bus.sent[0])
    assert isinstance(answer, Envelope)
    assert refusal(answer) == (7, "Shelf.clear was cancelled")


async def test_properties_can_be_set(agent: Agent, bus: FakeBus, shelf: Stocked) -> None:
    assert outputs(await call(bus, shelf, "_set_properties", label="low", limit=7)) == {}
    assert (shelf.label, shelf.limit) == ("low", 7)
    assert outputs(await call(bus, shelf, "_set_properties", label=None)) == {}
    assert shelf.label is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"limit": 4}, (4, "Shelf.limit (uint8): must be 5 to 50, not 4")),
        ({"limit": "x"}, (4, "Shelf.limit (uint8): must be a valid uint8, not 'x'")),
        ({"limit": None}, (4, "Shelf.limit (uint8): must be a whole number, not None")),
        ({"limits": 4}, (4, "no Shelf property 'limits'; did you mean limit?")),
        ({"number": 4}, (6, "Shelf.number cannot be set: its access is RC")),
        ({"weight": 4}, (6, "Shelf.weight cannot be set: its access is RO")),
        ({"in": 4}, (6, "Shelf.in is a statistic and cannot be set")),
    ],
)
async def test_property_changes_are_checked_before_any_is_made(
    agent: Agent, bus: FakeBus, shelf: Stocked, values: dict[str, object], expected: tuple[int, str]
) -> None:
    answer = await call(bus, shelf, "_set_properties", **{"label": "new", **values})
    assert refusal(answer) == expected
    assert shelf.calls == []


async def test_an_object_may_refuse_a_change(agent: Agent, bus: FakeBus, shelf: Stocked) -> None:
    assert refusal(await call(bus, shelf, "_set_properties", label="forbidden")) == (6, "not this one")
    assert shelf.label is None


async def test_what_was_set_before_a_refusal_is_set_back(agent: Agent, bus: FakeBus, shelf: Stocked) -> None:
    shelf.limit = 9
    answer = await call(bus, shelf, "_set_properties", limit=7, label="forbidden")
    assert refusal(answer) == (6, "not this one")
    assert (shelf.limit, shelf.label) == (9, None)


async def test_an_object_may_await_a_change(agent: Agent, bus: FakeBus) -> None:
    class Awaiting(Stocked):
        async def _qmf_set_property(self, name: str, value: Any) -> None:  # type: ignore[override]
            await asyncio.sleep(0)
            self.label = f"{value}!"

    shelf = Awaiting()
    agent.add(shelf)
    assert outputs(await call(bus, shelf, "_set_properties", label="a")) == {}
    assert shelf.label == "a!"
