"""Time limits of methods, what comes too late, and tracebacks on demand."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import Awaitable, Callable

import pytest
from agent.asking import call, refusal
from agent.warehouse import PACKAGE, Shelf
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import Agent, MethodError, current_caller
from qmf.agent.layout.object_state import object_id
from qmf.agent.request_errors import MAX_TRACEBACK
from qmf.protocol import Envelope, ExceptionResponse, MethodRequest, MethodResponse, QueryRequest, What, encode
from qmf.schema import ClassKey
from qmf.testing import ManualClock


class Slow(Shelf):
    """A shelf whose `clear` does what the test wants."""

    def __init__(self, work: Callable[[], Awaitable[None] | None]) -> None:
        super().__init__(number=1)
        self.work = work

    def clear(self) -> Awaitable[None] | None:
        return self.work()


async def agent_with(bus: FakeBus, clock: ManualClock, shelf: Shelf, **options: object) -> Agent:
    agent = Agent(bus, vendor="v", product="p", clock=clock, **options)  # type: ignore[arg-type]
    agent.add(shelf)
    await agent.start()
    bus.take()
    return agent


async def test_a_method_that_ignores_being_cancelled_is_answered_in_time(
    bus: FakeBus, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "qmf.agent")
    gate = asyncio.Event()

    async def stubborn() -> None:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            await gate.wait()

    shelf = Slow(stubborn)
    agent = await agent_with(bus, clock, shelf, method_timeout=0.02, max_calls=1)
    assert refusal(await call(bus, object_id(shelf), "clear")) == (7, "Shelf.clear took longer than 0.02 s")
    # It still holds the only place, so the next one waits for its turn, no longer than it may.
    assert refusal(await call(bus, object_id(shelf), "clear")) == (7, "Shelf.clear took longer than 0.02 s")
    gate.set()
    await until(lambda: "its result is dropped" in caplog.text)
    shelf.work = lambda: None
    assert isinstance((await call(bus, object_id(shelf), "clear")).content, MethodResponse)
    assert bus.take() != []
    await agent.close()


async def test_a_late_failure_is_logged(bus: FakeBus, clock: ManualClock, caplog: pytest.LogCaptureFixture) -> None:
    async def failing() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("while tidying up")

    shelf = Slow(failing)
    agent = await agent_with(bus, clock, shelf, method_timeout=0.01)
    assert refusal(await call(bus, object_id(shelf), "clear"))[0] == 7
    await until(lambda: "Shelf.clear failed after its time limit" in caplog.text)
    assert len(bus.take()) == 1
    await agent.close()


async def test_a_synchronous_method_that_takes_too_long_is_refused_as_well(
    bus: FakeBus, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    shelf = Slow(lambda: time.sleep(0.03))
    agent = await agent_with(bus, clock, shelf, method_timeout=0.01)
    assert refusal(await call(bus, object_id(shelf), "clear")) == (7, "Shelf.clear took longer than 0.01 s")
    await until(lambda: "its result is dropped" in caplog.text)
    await agent.close()


async def test_a_cancelled_method_is_given_up_quietly(
    bus: FakeBus, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def endless() -> None:
        await asyncio.Event().wait()

    shelf = Slow(endless)
    agent = await agent_with(bus, clock, shelf, method_timeout=0.01)
    await call(bus, object_id(shelf), "clear")
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
    await agent.close()


@pytest.mark.parametrize("debug", [False, True])
async def test_tracebacks_are_sent_on_demand(bus: FakeBus, clock: ManualClock, debug: bool) -> None:
    def failing() -> None:
        raise ValueError("no " + "x" * 20_000)

    shelf = Slow(failing)
    agent = await agent_with(bus, clock, shelf, debug=debug)
    content = (await call(bus, object_id(shelf), "clear")).content
    assert isinstance(content, ExceptionResponse)
    assert (content.code, content.text[:3]) == (7, "no ")
    assert ("traceback" in content.values) is debug
    if debug:
        text = str(content.values["traceback"])
        assert len(text) == MAX_TRACEBACK
    await agent.close()


async def test_a_traceback_has_the_place(bus: FakeBus, clock: ManualClock) -> None:
    def failing() -> None:
        raise KeyError("shelf")

    shelf = Slow(failing)
    agent = await agent_with(bus, clock, shelf, debug=True)
    content = (await call(bus, object_id(shelf), "clear")).content
    assert isinstance(content, ExceptionResponse)
    assert content.text == "KeyError: 'shelf'"
    assert "in failing" in str(content.values["traceback"])
    await agent.close()


@pytest.mark.parametrize("error", [MethodError("jammed", 70000), NotImplementedError()])
async def test_errors_for_the_console_have_no_traceback(bus: FakeBus, clock: ManualClock, error: Exception) -> None:
    def refusing() -> None:
        raise error

    shelf = Slow(refusing)
    agent = await agent_with(bus, clock, shelf, debug=True)
    content = (await call(bus, object_id(shelf), "clear")).content
    assert isinstance(content, ExceptionResponse)
    assert "traceback" not in content.values
    await agent.close()


async def test_a_failing_provider_has_one_as_well(bus: FakeBus, clock: ManualClock) -> None:
    agent = await agent_with(bus, clock, Slow(lambda: None), debug=True)
    agent.provide(Shelf, lambda query: [[("a", {"wrong": 1})]])
    query = QueryRequest(what=What.OBJECT, class_key=ClassKey(PACKAGE, "shelf"))
    bus.deliver(encode(Envelope(content=query, reply_to="q")), bus.direct_key())
    await until(lambda: bus.undone == 0)
    content = bus.take()[-1].content
    assert isinstance(content, ExceptionResponse)
    assert "in read" in str(content.values["traceback"])
    await agent.close()


async def test_waiting_calls_get_an_error_when_the_agent_closes(bus: FakeBus, clock: ManualClock) -> None:
    async def endless() -> None:
        await asyncio.Event().wait()

    shelf = Slow(endless)
    agent = await agent_with(bus, clock, shelf, max_calls=1, goodbye=False)
    for number in range(3):
        request = Envelope(
            content=MethodRequest(method="clear", object_id=object_id(shelf)), reply_to="q", correlation_id=str(number)
        )
        bus.deliver(encode(request), bus.direct_key())
    for _ in range(10):
        await asyncio.sleep(0)
    await agent.close()
    answers = [message for message in bus.take() if message.correlation_id]
    assert {message.correlation_id for message in answers} == {"0", "1", "2"}
    assert {refusal(message) for message in answers} == {(7, "Shelf.clear was cancelled")}


def deliver(bus: FakeBus, shelf: Shelf, number: int, ttl: float | None = None) -> None:
    """A call of `clear`."""
    request = MethodRequest(method="clear", object_id=object_id(shelf))
    envelope = Envelope(content=request, reply_to="q", correlation_id=str(number), ttl=ttl)
    bus.deliver(encode(envelope), bus.direct_key())


async def test_a_call_whose_caller_gave_up_while_others_kept_the_agent_busy_is_not_started(
    bus: FakeBus, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[float] = []

    def blocking() -> None:
        calls.append(time.monotonic())
        time.sleep(0.05)

    shelf = Slow(blocking)
    agent = await agent_with(bus, clock, shelf)
    deliver(bus, shelf, 1, ttl=60)
    deliver(bus, shelf, 2, ttl=0.02)
    deliver(bus, shelf, 3)
    await until(lambda: bus.undone == 0)
    first, second, third = bus.take()
    assert isinstance(first.content, MethodResponse)
    assert refusal(second) == (7, "Shelf.clear was not started: its caller has given up")
    assert isinstance(third.content, MethodResponse)
    assert len(calls) == 2
    assert (agent.statistics.calls_expired, agent.statistics.method_calls) == (1, 3)
    assert "its caller has given up" in caplog.text
    await agent.close()


async def test_a_call_whose_caller_gave_up_while_it_waited_for_its_turn_is_not_started(
    bus: FakeBus, clock: ManualClock
) -> None:
    gate, calls = asyncio.Event(), []

    async def waiting() -> None:
        calls.append(1)
        await gate.wait()

    shelf = Slow(waiting)
    agent = await agent_with(bus, clock, shelf, max_calls=1)
    deliver(bus, shelf, 1)
    deliver(bus, shelf, 2, ttl=0.001)
    deliver(bus, shelf, 3, ttl=60)
    begin = asyncio.get_running_loop().time()
    await until(lambda: asyncio.get_running_loop().time() > begin + 0.002)
    gate.set()
    await until(lambda: bus.undone == 0)
    answers = {answer.correlation_id: answer for answer in bus.take()}
    assert refusal(answers["2"]) == (7, "Shelf.clear was not started: its caller has given up")
    assert len(calls) == 2
    await agent.close()


async def test_a_method_that_blocks_is_named_once(
    bus: FakeBus, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    shelf = Slow(lambda: time.sleep(0.11))
    agent = await agent_with(bus, clock, shelf)
    for _ in range(2):
        await call(bus, object_id(shelf), "clear")
    shelf.work = lambda: None
    await call(bus, object_id(shelf), "clear")
    (warning,) = [item.getMessage() for item in caplog.records]
    assert re.fullmatch(r"Shelf.clear kept the agent from everything else for \d\.\d\d s: make it async, .*", warning)
    await agent.close()


async def test_methods_on_threads_hold_nothing_up(
    bus: FakeBus, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    gate, callers = threading.Event(), []

    def blocking() -> None:
        callers.append((current_caller(), threading.current_thread()))
        assert gate.wait(30)

    shelf = Slow(blocking)
    agent = await agent_with(bus, clock, shelf, method_threads=True)
    deliver(bus, shelf, 1)
    await until(lambda: len(callers) == 1)
    query = QueryRequest(what=What.OBJECT, class_key=ClassKey(PACKAGE, "shelf"))
    bus.deliver(encode(Envelope(content=query, reply_to="q", correlation_id="2")), bus.direct_key())
    await until(lambda: bus.undone == 1)
    gate.set()
    await until(lambda: bus.undone == 0)
    query_answer, answer = bus.take()
    assert (query_answer.correlation_id, answer.correlation_id) == ("2", "1")
    assert isinstance(answer.content, MethodResponse)
    (caller, thread) = callers[0]
    assert caller is not None
    assert caller.reply_to == "q"
    assert thread is not threading.current_thread()
    assert caplog.records == []
    await agent.close()


async def test_methods_on_threads_fail_and_await_as_others_do(bus: FakeBus, clock: ManualClock) -> None:
    shelf = Slow(lambda: None)
    agent = await agent_with(bus, clock, shelf, method_threads=True)
    for error, text in ((MethodError("jammed", 70000), "jammed"), (StopIteration(3), "3")):

        def failing(error: Exception = error) -> None:
            raise error

        shelf.work = failing
        code, found = refusal(await call(bus, object_id(shelf), "clear"))
        assert (code, found) == (70000 if isinstance(error, MethodError) else 7, text)
    loops: list[asyncio.AbstractEventLoop] = []

    async def awaiting() -> None:
        loops.append(asyncio.get_running_loop())

    shelf.work = awaiting
    assert isinstance((await call(bus, object_id(shelf), "clear")).content, MethodResponse)
    assert loops == [asyncio.get_running_loop()]
    await agent.close()


async def test_a_method_on_a_thread_keeps_its_place_beyond_its_time_limit(
    bus: FakeBus, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    gate = threading.Event()

    def blocking() -> None:
        gate.wait(30)

    shelf = Slow(blocking)
    agent = await agent_with(bus, clock, shelf, method_threads=True, method_timeout=0.02, max_calls=1)
    for _ in range(2):
        assert refusal(await call(bus, object_id(shelf), "clear")) == (7, "Shelf.clear took longer than 0.02 s")
    gate.set()
    await until(lambda: "its result is dropped" in caplog.text)
    assert isinstance((await call(bus, object_id(shelf), "clear")).content, MethodResponse)
    await agent.close()
