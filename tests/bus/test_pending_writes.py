"""How often a transport writes within one turn of the loop, alone and beside others with output."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from qmf.bus.engine.engine import Engine
from qmf.bus.transport import MAX_ACTIONS, MAX_FACTOR, AmqpTransport, PendingWrites, TransportOwner


class _Engine:
    """Has output after each action, and no events."""

    finished = has_events = False
    has_output = True

    def __init__(self) -> None:
        self.waiting = 0

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
