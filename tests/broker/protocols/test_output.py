"""The output of a connection, on a transport that keeps what it is given."""

from __future__ import annotations

import asyncio

from qmf.broker.protocols.output import TurnOutput


class Kept(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.closing = True

    def is_closing(self) -> bool:
        return self.closing


async def test_bytes_of_a_turn_go_out_together() -> None:
    output, transport = TurnOutput(lambda: None), Kept()
    output.write(b"lost")  # there is no connection yet
    output.connect(transport)
    output.write(b"a")
    output.write(b"")
    output.write(b"b")
    assert transport.written == []
    await asyncio.sleep(0)
    assert (transport.written, output.octets) == ([b"ab"], 2)


async def test_what_is_collected_waits() -> None:
    output, transport = TurnOutput(lambda: None), Kept()
    output.connect(transport)
    output.collecting = True
    output.write(b"a")
    await asyncio.sleep(0)
    assert transport.written == []
    output.flush()
    assert transport.written == [b"a"]


async def test_queues_learn_that_there_is_room_again() -> None:
    calls: list[bool] = []
    output, transport = TurnOutput(lambda: calls.append(True)), Kept()
    output.connect(transport)
    output.write(b"a")
    output.flush()
    assert calls == []
    output.write(bytes(300_000))
    assert not output.has_room
    output.flush()
    assert (output.has_room, calls) == (True, [True])


async def test_the_end() -> None:
    output, transport = TurnOutput(lambda: None), Kept()
    output.connect(transport)
    output.write(b"last")
    assert output.close()
    assert (transport.written, transport.closing) == ([b"last"], True)
    assert not output.close()
    output.disconnect()
    output.write(b"late")
    await asyncio.sleep(0)
    assert transport.written == [b"last"]
