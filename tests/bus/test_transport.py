"""How often a transport writes within one turn of the loop, alone and beside others with output."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from qmf.bus.engine.engine import Engine
from qmf.bus.transport import GIVE_WAY, MAX_ACTIONS, MAX_FACTOR, AmqpTransport, PendingWrites
from qmf.bus.transport_owner import TransportOwner


class _Engine:
    """Has output after each action, and no events."""

    finished = ending = False
    events: tuple[object, ...] = ()
    has_output = True

    def __init__(self) -> None:
        self.waiting = 0

    def feed(self, data: memoryview) -> bool:
        """What was read; the test's own, if it has set one."""
        return True

    def output(self) -> bytes:
        taken, self.waiting = self.waiting, 0
        return b"." * taken

    def next_batch(self) -> None:
        return None

    def tick(self, now: float) -> None:
        return None

    def free(self) -> None:
        pass


class _Owner:
    def on_connected(self) -> None:
        pass

    def on_writable(self) -> None:
        pass

    def on_disconnected(self, error: Exception | None) -> None:
        pass


class _Socket(asyncio.Transport):
    """Remembers the sizes of writes."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[int] = []

    def write(self, data: Any) -> None:
        self.writes.append(len(data))

    def is_closing(self) -> bool:
        return False


class _Peer:
    """A connection of which the test writes the output."""

    def __init__(self, pending: PendingWrites | None) -> None:
        self.engine = _Engine()
        owner = cast("TransportOwner", _Owner())
        self.transport = AmqpTransport(cast("Engine", self.engine), owner, pending=pending)
        self.socket = _Socket()
        self.transport.connection_made(self.socket)

    def act(self, count: int) -> None:
        for _ in range(count):
            self.engine.waiting += 1
            self.transport.flush_soon()


async def _turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize("connections", [1, 3, 10])
async def test_output_is_written_less_often_beside_others(connections: int) -> None:
    pending = PendingWrites()
    peers = [_Peer(pending) for _ in range(connections)]
    await _turn()
    assert pending.count == 0
    for peer in peers:
        peer.act(1)
    assert pending.count == connections
    each = MAX_ACTIONS * min(connections, MAX_FACTOR)
    peers[0].act(2 * each)
    assert peers[0].socket.writes == [each + 1, each]
    await _turn()
    assert pending.count == 0
    assert all(peer.socket.writes == [1] for peer in peers[1:])
    assert sum(peers[0].socket.writes) == 2 * each + 1
    for peer in peers:
        peer.transport.connection_lost(None)


async def test_a_connection_that_is_lost_has_no_output() -> None:
    pending = PendingWrites()
    lost, other = _Peer(pending), _Peer(pending)
    await _turn()
    lost.act(1)
    lost.transport.connection_lost(None)
    assert pending.count == 0
    other.act(1 + MAX_ACTIONS)
    assert other.socket.writes == [1 + MAX_ACTIONS]
    other.transport.connection_lost(None)
    await _turn()
    assert pending.count == 0


async def test_what_an_action_sends_is_written_at_once_and_others_are_told_last() -> None:
    peer = _Peer(None)
    await _turn()
    peer.socket.writes.clear()
    seen: list[list[int]] = []

    def action() -> None:
        peer.act(20)
        peer.transport.call_last(lambda: seen.append(peer.socket.writes.copy()))
        peer.transport.perform(lambda: peer.act(1))
        assert not peer.socket.writes
        assert not seen

    peer.transport.perform(action)
    assert peer.socket.writes == [21]
    assert seen == [[21]]
    peer.transport.call_last(lambda: seen.append([]))
    assert seen == [[21], []]
    peer.transport.perform(lambda: None)
    await _turn()
    assert peer.socket.writes == [21]


async def test_output_is_written_while_more_events_are_handled() -> None:
    peer = _Peer(None)
    await _turn()
    peer.socket.writes.clear()

    def action() -> None:
        peer.act(3)
        peer.transport.write_meanwhile()
        assert peer.socket.writes == [3]
        peer.act(1)

    peer.transport.perform(action)
    assert peer.socket.writes == [3, 1]


async def test_an_action_writes_what_was_left_for_the_end_of_the_turn() -> None:
    pending = PendingWrites()
    peer = _Peer(pending)
    await _turn()
    peer.socket.writes.clear()
    peer.act(1)
    assert pending.count == 1
    peer.transport.perform(lambda: peer.act(1))
    assert pending.count == 0
    assert peer.socket.writes == [2]
    await _turn()
    assert peer.socket.writes == [2]


async def test_others_are_told_when_the_connection_is_lost() -> None:
    peer = _Peer(None)
    seen: list[bool] = []

    def action() -> None:
        peer.transport.call_last(lambda: seen.append(peer.transport.connected))
        peer.transport.connection_lost(None)

    peer.transport.perform(action)
    assert seen == [False]
    peer.transport.perform(lambda: seen.append(True))
    assert seen == [False, True]


def read(peer: _Peer, tasks: int, *, accepted: int = 0) -> None:
    """A read for which so many tasks go on, each of which sends; accepting it is output, too."""

    def feed(data: memoryview) -> bool:
        for _ in range(tasks):
            asyncio.get_running_loop().call_soon(peer.act, 1)
        peer.engine.waiting += accepted
        peer.transport.flush_last()
        return False

    peer.engine.feed = feed  # type: ignore[method-assign]
    peer.transport.buffer_updated(1)


async def test_what_tasks_send_for_a_read_leaves_together_and_before_the_next_one() -> None:
    pending = PendingWrites()
    peer = _Peer(pending)
    await _turn()
    peer.socket.writes.clear()
    for _ in range(3):
        read(peer, 5, accepted=2)
        assert not peer.socket.writes
        assert pending.count == 1
        await asyncio.sleep(0)
        assert peer.socket.writes == [7]
        assert pending.count == 0
        peer.socket.writes.clear()


async def test_what_was_to_be_written_before_waits_for_the_tasks() -> None:
    pending = PendingWrites()
    peer = _Peer(pending)
    await _turn()
    peer.socket.writes.clear()
    peer.act(1)
    read(peer, 3)
    assert pending.count == 1
    await asyncio.sleep(0)
    assert peer.socket.writes == [4]
    assert pending.count == 0
    await _turn()
    assert peer.socket.writes == [4]


async def test_a_connection_that_is_lost_writes_nothing_after_its_tasks() -> None:
    pending = PendingWrites()
    peer = _Peer(pending)
    await _turn()
    peer.socket.writes.clear()
    read(peer, 3)
    peer.transport.connection_lost(None)
    peer.transport.flush_last()
    await _turn()
    assert pending.count == 0
    assert not peer.socket.writes


async def test_others_get_the_processor_when_tasks_have_sent_much(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    peer = _Peer(None)
    monkeypatch.setattr("qmf.bus.transport._give_way", lambda: given.append(sum(peer.socket.writes)))
    await _turn()
    read(peer, 1)
    peer.act(1)
    await _turn()
    peer.engine.waiting += GIVE_WAY
    peer.act(1)  # for no task that waited
    await _turn()
    assert not given
    peer.socket.writes.clear()
    peer.engine.waiting += GIVE_WAY
    read(peer, 1)
    await _turn()
    assert given == [GIVE_WAY + 1]
