"""The loop's thread and the callbacks' thread."""

from __future__ import annotations

import logging
import sys
import threading

import pytest

from qmf.console.dispatcher import CallbackDispatcher


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


def test_too_many_updates_are_dropped_and_counted_but_never_answers(caplog: pytest.LogCaptureFixture) -> None:
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
