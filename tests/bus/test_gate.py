"""The wait of an event loop: when other threads may act meanwhile, and what ends it."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator

import pytest
from support import gates
from support.gates import WaitingThread

from qmf.bus.gate import READ, Gate, has_gates, new_gate

pytestmark = pytest.mark.skipif(not has_gates(), reason="the compiled modules are not installed, or this is not Linux")


@pytest.fixture
def posted() -> list[object]:
    return []


@pytest.fixture
def gate(posted: list[object]) -> Iterator[Gate]:
    with gates.gate(posted) as gate:
        yield gate


def test_it_is_open_while_the_loop_waits_and_each_turn_is_another_epoch(gate: Gate) -> None:
    assert gate.epoch() == 0
    epochs = []
    for _ in range(2):
        waiting = WaitingThread(gate)
        epochs.append(gate.epoch())
        gate.wake()
        assert waiting.end() == []
        assert gate.epoch() == 0
    assert epochs[0] != epochs[1]


def test_waking_a_loop_that_does_not_wait_does_not_end_its_next_wait(gate: Gate) -> None:
    gate.wake()
    waiting = WaitingThread(gate)
    assert waiting.found is None
    gate.wake()
    assert waiting.end() == []


def test_there_is_no_wait_for_what_was_posted_before(gate: Gate, posted: list[object]) -> None:
    posted.append("something")
    assert gate.wait(-1, -1, None) == []


def test_a_wait_ends_after_its_time(gate: Gate) -> None:
    assert gate.wait(0, -1, None) == []
    assert gate.wait(1, -1, None) == []


def test_the_socket_is_read(gate: Gate) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        gate.watch(ours.fileno())
        buffer = memoryview(bytearray(4))
        waiting = WaitingThread(gate, ours.fileno(), buffer)
        theirs.sendall(b"abcdef")
        assert waiting.end() == [(READ, 4)]
        assert bytes(buffer) == b"abcd"
        assert gate.wait(-1, ours.fileno(), buffer) == [(READ, 2)]
        assert bytes(buffer[:2]) == b"ef"
        theirs.close()
        assert gate.wait(-1, ours.fileno(), buffer) == [(READ, 0)]
        gate.unwatch(ours.fileno())
        assert gate.wait(0, ours.fileno(), buffer) == []


def test_a_socket_that_is_only_watched_is_reported(gate: Gate) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        gate.watch(ours.fileno())
        theirs.sendall(b"x")
        assert gate.wait(-1, -1, None) == [(ours.fileno(), select.EPOLLIN)]
        assert ours.recv(2) == b"x"


def test_signals_are_given_when_the_loop_waits(gate: Gate) -> None:
    number = os.eventfd(0, os.EFD_NONBLOCK)
    try:
        gate.signal(number, "its owner")
        with pytest.raises(BlockingIOError):
            os.eventfd_read(number)
        gate.wait(0, -1, None)
        assert os.eventfd_read(number) == 1
        waiting = WaitingThread(gate)
        gate.signal(number, "its owner")
        assert os.eventfd_read(number) == 1
        gate.wake()
        waiting.end()
        gate.signal(number, "its owner")
        gate.close()
        gate.signal(number, "its owner")
        assert os.eventfd_read(number) == 2
    finally:
        os.close(number)


def test_more_signals_than_there_is_room_for_are_given_at_once(gate: Gate) -> None:
    number = os.eventfd(0, os.EFD_NONBLOCK)
    try:
        for _ in range(100):
            gate.signal(number, "its owner")
        early = os.eventfd_read(number)
        gate.wait(0, -1, None)
        assert early + os.eventfd_read(number) == 100
    finally:
        os.close(number)


class _Owner:
    """Notes its end."""

    def __init__(self, ended: list[str]) -> None:
        self.ended = ended

    def __del__(self) -> None:
        self.ended.append("owner")


def test_the_owner_of_a_signal_is_kept_until_it_is_given(gate: Gate) -> None:
    number, ended = os.eventfd(0, os.EFD_NONBLOCK), list[str]()
    try:
        gate.signal(number, _Owner(ended))
        assert not ended
        gate.wait(0, -1, None)
        assert ended == ["owner"]
    finally:
        os.close(number)


def test_wrong_arguments_are_errors(gate: Gate) -> None:
    with pytest.raises(TypeError):
        gate.wait(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        gate.signal(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        gate.wait("soon", -1, None)  # type: ignore[arg-type]
    with pytest.raises(BufferError):
        gate.wait(0, 0, b"no place")  # type: ignore[arg-type]
    with pytest.raises(OSError, match="descriptor"):
        gate.watch(-1)
    with pytest.raises(OSError, match="descriptor"):
        gate.unwatch(-1)
    with pytest.raises(OSError, match="descriptor"):
        new_gate(-1, [])


def test_a_loop_whose_poll_is_closed_learns_of_it(posted: list[object]) -> None:
    with select.epoll() as poll:
        gate = new_gate(poll.fileno(), posted)
    with pytest.raises(OSError, match="descriptor"):
        gate.wait(0, -1, None)
