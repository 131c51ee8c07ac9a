"""Connections are accepted a few at a time; no room for open files ends no broker."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable

import pytest
import uvloop

from qmf.broker import accepting
from qmf.broker.accepting import Acceptor
from qmf.broker.handshakes import Handshakes
from qmf.broker.nodes.counters import BrokerCounters

#: More than three turns accept.
_MANY = 30


def _listening() -> socket.socket:
    listening = socket.create_server(("127.0.0.1", 0), backlog=_MANY)
    listening.setblocking(False)
    return listening


def _handshakes() -> Handshakes:
    return Handshakes(0, 1.0, BrokerCounters())


async def _accept_turns(count: int) -> list[int]:
    """How many of that many waiting clients were accepted in each turn of the loop."""
    listening = _listening()
    clients = [socket.create_connection(listening.getsockname()) for _ in range(count)]
    acceptor = Acceptor([listening], asyncio.Protocol, None, _handshakes(), 1.0)
    turns: list[int] = []
    while sum(turns) < count:
        waiting = acceptor.accepted
        await asyncio.sleep(0)
        turns.append(acceptor.accepted - waiting)
    for client in clients:
        client.close()
    acceptor.close()
    await acceptor.wait_closed(1.0)
    return turns


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_turn_of_the_loop_accepts_a_few_connections(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        turns = runner.run(_accept_turns(_MANY))
    assert sum(turns) == _MANY
    assert max(turns) == accepting.TURN


class _Full(socket.socket):
    """A listening socket for which there is no open file left at first."""

    failures = 1

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            self.failures -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().accept()


async def test_without_room_for_open_files_it_tries_again_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(accepting, "_PAUSE", 0.01)
    made = asyncio.Event()

    class Made(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            made.set()
            transport.close()

    listening = _Full(fileno=_listening().detach())
    acceptor = Acceptor([listening], Made, None, _handshakes(), 1.0)
    with caplog.at_level(logging.ERROR, "qmf.broker"), socket.create_connection(listening.getsockname()) as client:
        client.send(b"A")
        await asyncio.wait_for(made.wait(), 5)
    assert caplog.messages == ["no connection can be accepted: Too many open files; trying again in 0.01 s"]
    acceptor.close()
    await acceptor.wait_closed(1.0)


async def test_closed_while_it_waits_for_room_it_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepting, "_PAUSE", 0.0)
    listening = _Full(fileno=_listening().detach())
    address = listening.getsockname()
    acceptor = Acceptor([listening], asyncio.Protocol, None, _handshakes(), 1.0)
    client = socket.create_connection(address)
    while listening.failures:
        await asyncio.sleep(0)
    acceptor.close()
    assert not acceptor.accepting
    await asyncio.sleep(0)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)
    client.close()
