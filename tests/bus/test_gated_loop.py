"""The loop with a gate: it is asyncio's in all else."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest
from support.waiting import WAIT_LIMIT, until, wait_until

from qmf.bus.gate import has_gates
from qmf.bus.gated_loop import GatedLoop, new_gated_loop

pytestmark = pytest.mark.skipif(not has_gates(), reason="the compiled modules are not installed, or this is not Linux")


@pytest.fixture
def loop() -> Iterator[GatedLoop]:
    loop = new_gated_loop()
    assert loop is not None
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop()
        yield loop
    asyncio.set_event_loop(None)


def test_it_serves_and_connects_and_keeps_time(loop: GatedLoop) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(3 << 20))
        await writer.drain()
        writer.close()

    async def work() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        data = bytes(range(256)) * (12 << 10)
        writer.write(data)  # more than a socket takes at once, in both directions
        assert await reader.read(-1) == data
        writer.close()
        server.close()
        before = loop.time()
        await asyncio.sleep(0.02)
        assert loop.time() - before >= 0.019
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)

    loop.run_until_complete(work())


def test_what_other_threads_post_is_called_in_order(loop: GatedLoop) -> None:
    called: list[int] = []
    done = asyncio.Event()

    def post() -> None:
        wait_until(loop.gate.epoch)  # it waits
        for number in range(1000):
            loop.post(lambda number=number: called.append(number))  # type: ignore[misc]
        loop.post(done.set)

    async def work() -> None:
        thread = threading.Thread(target=post)
        thread.start()
        await asyncio.wait_for(done.wait(), WAIT_LIMIT)
        thread.join()

    loop.run_until_complete(work())
    assert called == list(range(1000))


def test_what_is_posted_on_the_loop_itself_is_called(loop: GatedLoop) -> None:
    async def work() -> None:
        done = asyncio.Event()
        loop.post(lambda: loop.post(done.set))
        await asyncio.wait_for(done.wait(), WAIT_LIMIT)

    loop.run_until_complete(work())


def test_an_error_in_what_is_posted_is_reported_and_the_next_is_called(loop: GatedLoop) -> None:
    errors: list[object] = []
    loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))

    async def work() -> None:
        done = asyncio.Event()
        loop.post(lambda: 1 / 0)
        loop.post(done.set)
        await done.wait()

    loop.run_until_complete(work())
    assert [type(error) for error in errors] == [ZeroDivisionError]


def test_a_closed_loop_takes_nothing() -> None:
    loop = new_gated_loop()
    assert loop is not None
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop.post(print)


class _Reader:
    """Notes what is read of a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self.descriptor = sock.fileno()
        self.space = bytearray(16)
        self.read: list[bytes] = []
        self.given_back = 0

    def buffer(self) -> memoryview:
        return memoryview(self.space)

    def on_read(self, size: int) -> None:
        self.read.append(bytes(self.space[:size]))

    def on_left(self) -> None:
        raise AssertionError

    def give_back(self) -> None:
        self.given_back += 1


def test_its_wait_reads_one_socket(loop: GatedLoop) -> None:
    ours, theirs = socket.socketpair()
    others, more = socket.socketpair()

    async def work() -> None:
        first, second = _Reader(ours), _Reader(others)
        loop.read_by(first)
        theirs.sendall(b"one")
        await until(lambda: first.read)
        assert loop.reader is first
        loop.read_by(second)
        assert (loop.reader, first.given_back) == (second, 1)
        more.sendall(b"two")
        await until(lambda: second.read)
        assert (first.read, second.read) == ([b"one"], [b"two"])
        loop.stop_reading(first)  # it does not any more
        assert loop.reader is second
        loop.stop_reading(second)
        assert loop.reader is None

    with ours, theirs, others, more:
        loop.run_until_complete(work())
