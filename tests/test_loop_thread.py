"""The thread that runs an event loop for blocking calls."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from qmf._loop_thread import LoopThread, blocking
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


@pytest.fixture
def blocked_signal() -> Iterator[int]:
    """A signal that the kernel gives to another thread than the main one, whose wait it does not end then."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    yield signal.SIGINT
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def test_an_interrupt_cancels_the_work_and_leaves_the_loop_usable(loop: LoopThread) -> None:
    cancelled = threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    async def forever() -> None:
        try:
            signal.pthread_kill(main, signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    with pytest.raises(KeyboardInterrupt):
        loop.run(forever())
    assert cancelled.wait(5)
    assert loop.run(ident())


def test_an_interrupt_that_does_not_end_the_wait_is_noticed_soon_after(loop: LoopThread, blocked_signal: int) -> None:
    async def forever() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {blocked_signal})  # of the loop's thread, which runs this
        os.kill(os.getpid(), blocked_signal)
        await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        loop.run(forever())
    assert loop.run(ident())


def test_a_timeout_of_the_work_is_an_error_of_the_work(loop: LoopThread) -> None:
    async def late() -> None:
        raise TimeoutError("of the work")

    with pytest.raises(TimeoutError, match="of the work"):
        loop.run(late())


class Counted:
    def __init__(self, loop: LoopThread) -> None:
        self._loop = loop

    @blocking
    async def thread(self, *, more: int = 0) -> int:
        """The thread on which it runs."""
        return threading.get_ident() + more


def test_a_blocking_method_runs_its_coroutine_on_the_loop(loop: LoopThread) -> None:
    counted = Counted(loop)
    assert counted.thread() == loop.ident
    assert counted.thread(more=1) == loop.run(ident()) + 1
    assert Counted.thread.__doc__ == "The thread on which it runs."
    assert list(inspect.signature(counted.thread).parameters) == ["more"]
    assert not inspect.iscoroutinefunction(Counted.thread)


def test_a_blocking_method_refuses_arguments_that_it_does_not_have(loop: LoopThread) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'less'"):
        Counted(loop).thread(less=1)  # type: ignore[call-arg]
    assert not loop.running
