"""The loop's thread and the callbacks' thread."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
from collections.abc import Iterator

import pytest

from qmf._loop_thread import LoopThread
from qmf.console.dispatcher import CallbackDispatcher
from qmf.errors import CallerError


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread("test-loop", "call it from elsewhere")
    yield thread
    thread.stop()


async def ident() -> int:
    return threading.get_ident()


def test_work_runs_on_another_thread_and_gives_its_result(loop: LoopThread) -> None:
    assert not loop.running
    first = loop.run(ident())
    assert first != threading.get_ident()
    assert loop.run(ident()) == first
    assert loop.running


def test_errors_of_the_work_come_through(loop: LoopThread) -> None:
    async def fail() -> None:
        raise ZeroDivisionError("inside")

    with pytest.raises(ZeroDivisionError, match="inside"):
        loop.run(fail())


def test_a_blocking_call_on_the_loop_itself_names_the_cure(loop: LoopThread) -> None:
    async def inside() -> None:
        loop.run(ident())

    with pytest.raises(CallerError, match="event loop of test-loop; call it from elsewhere"):
        loop.run(inside())
    assert loop.run(ident())


def test_it_can_be_stopped_twice_and_started_again(loop: LoopThread) -> None:
    first = loop.run(ident())
    loop.stop()
    loop.stop()
    assert not loop.running
    assert loop.run(ident()) is not None
    assert first is not None


def test_stopping_ends_waiting_calls(loop: LoopThread) -> None:
    waiting = threading.Event()
    errors: list[CallerError] = []

    async def forever() -> None:
        waiting.set()
        await asyncio.Event().wait()

    def caller() -> None:
        try:
            loop.run(forever())
        except CallerError as error:
            errors.append(error)

    thread = threading.Thread(target=caller)
    thread.start()
    assert waiting.wait(5)
    loop.stop()
    thread.join(5)
    assert [str(error) for error in errors] == ["the session was closed during the call"]


def test_an_interrupt_cancels_the_work_and_leaves_the_loop_usable(loop: LoopThread) -> None:
    cancelled = threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    async def forever() -> None:
        signal.pthread_kill(main, signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(KeyboardInterrupt):
        loop.run(forever())
    assert cancelled.wait(5)
    assert loop.run(ident())


# -- callbacks


def test_callbacks_run_in_order_on_one_other_thread() -> None:
    dispatcher = CallbackDispatcher("test-callbacks")
    seen: list[tuple[int, int]] = []
    for number in range(100):
        dispatcher.put("newAgent", lambda number=number: seen.append((number, threading.get_ident())))  # type: ignore[misc]
    dispatcher.close()
    assert [number for number, _ in seen] == list(range(100))
    assert len({thread for _, thread in seen} - {threading.get_ident()}) == 1


def test_a_failing_callback_is_logged_by_name_and_the_next_runs(caplog: pytest.LogCaptureFixture) -> None:
    dispatcher = CallbackDispatcher("test-callbacks")
    done: list[int] = []

    def fail() -> None:
        raise ZeroDivisionError("oops")

    dispatcher.put("objectProps", fail)
    dispatcher.put("event", lambda: done.append(1))
    dispatcher.close()
    assert done == [1]
    assert "callback objectProps failed" in caplog.text
    assert "oops" in caplog.text


def test_too_many_updates_are_dropped_and_told_but_never_answers(caplog: pytest.LogCaptureFixture) -> None:
    dispatcher = CallbackDispatcher("test-callbacks", limit=3)
    gate, running = threading.Event(), threading.Event()
    seen: list[str] = []

    def block() -> None:
        running.set()
        gate.wait(5)

    dispatcher.put("newAgent", block)
    assert running.wait(5)
    with caplog.at_level(logging.WARNING, "qmf.console"):
        for number in range(5):
            dispatcher.put("objectStats", lambda number=number: seen.append(f"stats {number}"))  # type: ignore[misc]
        dispatcher.put("methodResponse", lambda: seen.append("answer"))
        gate.set()
        dispatcher.close()
    assert seen == ["stats 0", "stats 1", "stats 2", "answer"]
    assert dispatcher.dropped == 2
    assert "2 updates were dropped" in caplog.text


def test_closing_from_a_callback_does_not_wait_for_itself() -> None:
    dispatcher = CallbackDispatcher("test-callbacks")
    done = threading.Event()

    def close() -> None:
        dispatcher.close()
        done.set()

    dispatcher.put("event", close)
    assert done.wait(5)
    dispatcher.put("event", lambda: pytest.fail("closed"))
    dispatcher.open()
    again = threading.Event()
    dispatcher.put("event", again.set)
    assert again.wait(5)
    dispatcher.close()


def test_a_callback_that_exits_does_not_end_the_others(caplog: pytest.LogCaptureFixture) -> None:
    dispatcher = CallbackDispatcher("test-callbacks")
    done = threading.Event()
    dispatcher.put("event", lambda: sys.exit(1))
    dispatcher.put("event", done.set)
    assert done.wait(5)
    assert "callback event failed" in caplog.text
    dispatcher.close()


def test_closing_and_opening_in_a_callback_makes_no_second_thread() -> None:
    dispatcher = CallbackDispatcher("test-callbacks")
    threads: list[int] = []
    done = threading.Event()

    def reopen() -> None:
        dispatcher.close()
        dispatcher.open()
        dispatcher.put("event", note)
        dispatcher.put("event", done.set)
        threads.append(threading.get_ident())

    def note() -> None:
        threads.append(threading.get_ident())

    dispatcher.put("event", reopen)
    assert done.wait(5)
    assert len(threads) == 2
    assert len(set(threads)) == 1
    dispatcher.close()
