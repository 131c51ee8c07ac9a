"""How a thread that waits is woken up, by a counter of the kernel and by a lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.waiting import WAIT_LIMIT

from qmf.messaging.core.thread_signal import EventSignal, LockSignal, ThreadSignal, thread_signal

kinds = pytest.mark.parametrize("kind", [EventSignal, LockSignal])


@kinds
def test_a_signal_ends_a_wait(kind: Callable[[], ThreadSignal]) -> None:
    signal, begun, ended = kind(), threading.Event(), list[bool]()

    def wait() -> None:
        begun.set()
        ended.append(signal.wait(WAIT_LIMIT))

    for count in range(1, 4):
        thread = threading.Thread(target=wait)
        begun.clear()
        thread.start()
        assert begun.wait(WAIT_LIMIT)
        signal.give()
        thread.join(WAIT_LIMIT)
        assert ended == [True] * count


@kinds
def test_a_signal_may_be_given_before(kind: Callable[[], ThreadSignal]) -> None:
    signal = kind()
    assert not signal.wait(0.001)
    signal.give()
    signal.give()
    assert signal.wait(WAIT_LIMIT)
    assert not signal.wait(0.001)


def _count_descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def test_file_descriptors_are_returned() -> None:
    before = _count_descriptors()
    signals = [EventSignal() for _ in range(3)]
    assert _count_descriptors() == before + 6
    signals.clear()
    assert _count_descriptors() == before


@pytest.mark.parametrize("missing", ["os.eventfd", "select.epoll"])
def test_without_file_descriptors_it_is_a_lock(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    assert isinstance(thread_signal(), EventSignal)

    def refuse(*_: object) -> None:
        raise OSError(24, "Too many open files")

    before = _count_descriptors()
    monkeypatch.setattr(missing, refuse)
    signal = thread_signal()
    assert isinstance(signal, LockSignal)
    assert _count_descriptors() == before
    monkeypatch.delattr("os.eventfd")
    assert isinstance(thread_signal(), LockSignal)
