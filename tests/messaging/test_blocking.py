"""How the caller's thread wakes up that of a connection."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from qmf.messaging.blocking import BlockingAnswer, Wakeup
from qmf.messaging.core.thread_signal import thread_signal
from qmf.messaging.loop import ConnectionLoop


@pytest.fixture
def loop() -> Iterator[ConnectionLoop]:
    made = ConnectionLoop()
    made.run(asyncio.sleep(0))
    yield made
    made.stop()


def test_calls_that_have_not_begun_are_one(loop: ConnectionLoop) -> None:
    block, begun, calls = threading.Event(), threading.Event(), []

    def blocked() -> None:
        begun.set()
        block.wait(30)

    wakeup = Wakeup(loop, lambda: calls.append(threading.current_thread()))
    loop.call_soon(blocked)
    assert begun.wait(30)
    for _ in range(3):
        wakeup()
        wakeup.let_run(if_busy=False)
    wakeup.let_run(if_busy=True)  # gives up soon
    assert calls == []
    block.set()
    loop.run(asyncio.sleep(0))
    assert len(calls) == 1
    assert calls[0] is not threading.current_thread()


def test_a_busy_thread_waits_for_the_other(loop: ConnectionLoop) -> None:
    calls = []
    wakeup = Wakeup(loop, lambda: calls.append(1))
    for count in range(1, 4):
        wakeup.let_run(if_busy=True)
        loop.run(asyncio.sleep(0))  # it waits only so long
        assert len(calls) == count


def test_a_signal_of_the_loop_is_given_now_or_last(loop: ConnectionLoop) -> None:
    given = loop.new_signal()
    loop.call_soon(given.give)
    assert given.wait(30)
    loop.call_soon(given.give_last)
    assert given.wait(30)
    loop.stop()
    given.give_last()
    assert given.wait(30)


def _wait(answer: BlockingAnswer, waiting: threading.Event) -> None:
    waiting.set()
    answer.wait(None)


def test_an_interrupt_that_does_not_end_the_wait_is_noticed_soon_after() -> None:
    def interrupt() -> None:
        # The kernel gives it to this thread then, and the wait of the main one goes on.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        waiting.wait(30)
        os.kill(os.getpid(), signal.SIGINT)

    answer, waiting = BlockingAnswer(thread_signal()), threading.Event()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            _wait(answer, waiting)
    finally:
        thread.join()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def test_an_answer_is_waited_for_as_long_as_the_caller_says() -> None:
    answer = BlockingAnswer(thread_signal())
    assert not answer.wait(0)
    assert not answer.wait(0.21)
    answer.set_result(None)
    assert answer.wait(0)
    assert answer.wait(None)
