"""Which connections have a lane, and how one ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from messaging.scripted_peer import ScriptedPeer, scripted_peer
from support.waiting import until

from qmf.bus.client.failures import NetworkFailure
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.client.settings import client_settings
from qmf.bus.engine.engine import Engine
from qmf.bus.engine.values import ConnectionSettings
from qmf.bus.gate import has_gates
from qmf.bus.gated_loop import GatedLoop, new_gated_loop
from qmf.bus.lane import Lane, lane_of
from qmf.bus.url import parse_url

pytestmark = pytest.mark.skipif(not has_gates(), reason="the compiled modules are not installed, or this is not Linux")


@pytest.fixture
def loop() -> Iterator[GatedLoop]:
    loop = new_gated_loop()
    assert loop is not None
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop()
        yield loop
    asyncio.set_event_loop(None)


@pytest.fixture
def peer() -> Iterator[ScriptedPeer]:
    with scripted_peer() as peer:
        yield peer


def _is_read(loop: GatedLoop) -> bool:
    return loop.reader is not None


class _User:
    """A protocol that is never called."""

    at_rest = True

    def __init__(self) -> None:
        self.engine = Engine(ConnectionSettings("client", hostname="host"))

    def get_buffer(self, sizehint: int) -> memoryview:
        raise AssertionError

    def buffer_updated(self, nbytes: int) -> None:
        raise AssertionError

    def on_read_by_other(self, data: bytes, found: object) -> None:
        raise AssertionError

    def write_now(self) -> None:
        raise AssertionError


class _Transport(asyncio.Transport):
    """With information that is given, and a protocol if that is."""

    def __init__(self, info: dict[str, Any], protocol: object = None) -> None:
        super().__init__(info)
        self._of = protocol

    def get_protocol(self) -> Any:
        return super().get_protocol() if self._of is None else self._of

    def pause_reading(self) -> None:
        pass


def test_only_connections_over_tcp_and_nothing_else_have_one(loop: GatedLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    user = _User()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        plain = _Transport({"socket": ours}, user)
        found = lane_of(loop, plain, user)
        assert found is not None
        assert loop.reader is found
        found.give_back()
        found.give_back()
        assert not found.epoch()
        assert not _is_read(loop)
        other = asyncio.new_event_loop()
        assert lane_of(other, plain, user) is None
        other.close()
        assert lane_of(loop, _Transport({"socket": ours, "sslcontext": object()}, user), user) is None
        assert lane_of(loop, _Transport({}, user), user) is None
        assert lane_of(loop, _Transport({"socket": ours}, "a protocol between"), user) is None
        assert lane_of(loop, _Transport({"socket": ours}), user) is None
        monkeypatch.setattr("qmf.bus.engine.engine.native", lambda: None)
        pure = _User()
        assert lane_of(loop, _Transport({"socket": ours}, pure), pure) is None
    assert not _is_read(loop)


def _lane(network: NetworkConnection) -> Lane | None:
    return network.transport.lane


async def _connect(url: str, lost: list[NetworkFailure]) -> NetworkConnection:
    settings = client_settings(parse_url(url), "client", mechanisms=None, heartbeat=None, properties={})
    network = NetworkConnection(parse_url(url), settings, lost.append)
    await network.connect(None, 10)
    return network


def test_the_end_of_the_stream_is_the_end_of_the_connection(loop: GatedLoop, peer: ScriptedPeer) -> None:
    async def work() -> None:
        lost: list[NetworkFailure] = []
        network = await _connect(peer.url, lost)
        assert _lane(network) is not None
        assert loop.reader is _lane(network)
        await asyncio.to_thread(peer.do, lambda each: each.transport.abort())
        await until(lambda: lost)
        assert _lane(network) is None
        assert not _is_read(loop)

    loop.run_until_complete(work())


def test_closing_ends_it(loop: GatedLoop, peer: ScriptedPeer) -> None:
    async def work() -> None:
        lost: list[NetworkFailure] = []
        network = await _connect(peer.url, lost)
        await network.close()
        assert _lane(network) is None
        assert not _is_read(loop)
        assert not lost

    loop.run_until_complete(work())


def test_an_error_of_ours_while_bytes_are_handled_ends_the_connection(
    loop: GatedLoop, peer: ScriptedPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[object] = []
    loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))

    async def work() -> None:
        lost: list[NetworkFailure] = []
        network = await _connect(peer.url, lost)

        def fail(data: object) -> bool:
            raise RuntimeError("a defect")

        monkeypatch.setattr(network.engine, "feed", fail)
        await asyncio.to_thread(peer.do, lambda each: each.engine.close())
        await until(lambda: lost)
        assert _lane(network) is None
        assert not _is_read(loop)

    loop.run_until_complete(work())
    assert [str(error) for error in errors] == ["a defect"]
