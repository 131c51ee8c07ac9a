"""A client that sends faster than the disk takes: it is held back, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from broker.protocols.stomp.stomp_wire import dial, stomp_broker
from support.waiting import until

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.recorder import OnStored
from qmf.broker.protocols.stomp.unstored import MAX_FRAMES, UnstoredFrames
from qmf.broker.store.errors import StoreError
from qmf.broker.store.store import Store


class Disk:
    """A recorder whose units wait until the test writes them."""

    def __init__(self) -> None:
        self.units: list[OnStored] = []
        self.flushed = 0
        self.changed = True

    def flush(self) -> None:
        self.flushed += 1

    def close_unit(self, on_stored: OnStored | None) -> bool:
        if self.changed and on_stored is not None:
            self.units.append(on_stored)
        return self.changed

    def is_stored(self, record: int) -> bool:
        raise NotImplementedError

    def when_stored(self, callback: Callable[[], None]) -> None:
        raise NotImplementedError

    def acknowledge(self, entry: Entry) -> None:
        raise NotImplementedError


class Client:
    """What happens to a client, in order."""

    def __init__(self, disk: Disk | None) -> None:
        self.seen: list[str] = []
        self.frames = UnstoredFrames(
            disk,
            1000,
            hold=lambda: self.seen.append("hold"),
            release=lambda: self.seen.append("release"),
            fail=lambda error: self.seen.append(error.reason),
        )


def test_frames_of_a_turn_are_stored_together() -> None:
    disk = Disk()
    client = Client(disk)
    for _ in range(3):
        client.frames.open(10)
    client.frames.close()
    client.frames.close()
    assert (disk.flushed, len(disk.units)) == (1, 1)
    disk.units[0](None)
    assert client.seen == ["release"]


def test_too_many_frames_or_bytes_hold_the_client_back_until_all_are_stored() -> None:
    for count, size in ((MAX_FRAMES + 1, 0), (2, 501)):
        disk = Disk()
        client = Client(disk)
        for _ in range(count - 1):
            client.frames.open(size)
        client.frames.close()
        assert client.seen == []
        client.frames.open(size)
        client.frames.close()
        assert client.seen == ["hold"]
        disk.units[0](None)
        assert client.seen == ["hold"]
        disk.units[1](None)
        assert client.seen == ["hold", "release"]


def test_frames_that_change_nothing_wait_for_nothing() -> None:
    disk = Disk()
    disk.changed = False
    client = Client(disk)
    client.frames.open(5000)
    client.frames.close()
    assert client.seen == []
    client = Client(None)
    client.frames.open(5000)
    client.frames.close()
    assert client.seen == []


def test_what_could_not_be_stored_is_said() -> None:
    disk = Disk()
    client = Client(disk)
    client.frames.open(1)
    client.frames.close()
    disk.units[0](StoreError(Path("broker.db"), "the disk is full"))
    assert client.seen == ["release", "the disk is full"]


class SlowDisk:
    """Units of the store wait for the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.slow = False
        submit = Store.submit

        def submit_later(store: Store, *args: object) -> None:
            if self.slow:
                self.waiting.append(lambda: submit(store, *args))  # type: ignore[arg-type]
            else:
                submit(store, *args)  # type: ignore[arg-type]

        monkeypatch.setattr(Store, "submit", submit_later)

    def go_on(self) -> None:
        self.slow = False
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each()


@pytest.mark.slow
@pytest.mark.parametrize("receipts", [False, True], ids=["without receipts", "with receipts"])
async def test_a_client_is_not_read_from_while_the_disk_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, receipts: bool
) -> None:
    disk = SlowDisk(monkeypatch)
    async with stomp_broker(data_dir=tmp_path) as broker:
        client = await dial(broker)
        await client.ask("SEND", b"first", destination="/queue/q", persistent="true")
        disk.slow = True
        head = "SEND\ndestination:/queue/q\npersistent:true\n"
        total = 5 * MAX_FRAMES

        async def send() -> None:
            for number in range(total):
                receipt = f"receipt:{number}\n" if receipts else ""
                client.write(f"{head}{receipt}\n{'x' * 2000}\0".encode())
                if not number % 100:
                    await client.drained()

        queue = broker.registry.queue("q")
        assert queue is not None
        sending = asyncio.create_task(send())
        await until(lambda: len(queue.contents) > MAX_FRAMES, "so many messages that the client is held back")
        held = len(queue.contents)
        for _ in range(200):
            await asyncio.sleep(0)
        assert len(queue.contents) == held < total * 0.7
        assert not sending.done()
        disk.go_on()
        if receipts:
            for number in range(total):
                frame = await client.frame()
                assert (frame.command, frame.headers["receipt-id"]) == ("RECEIPT", str(number))
        await sending
        await client.ask("SEND", b"last", destination="/queue/q", persistent="true")
        assert len(queue.contents) == total + 2


async def test_a_client_learns_that_its_message_could_not_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stomp_broker(data_dir=tmp_path) as broker:
        client = await dial(broker)
        await client.ask("SEND", b"kept", destination="/queue/q", persistent="true")

        def fail(store: Store, unit: object, on_stored: OnStored | None) -> None:
            if on_stored is not None:
                asyncio.get_running_loop().call_soon(on_stored, StoreError(Path("broker.db"), "the disk is full"))

        with monkeypatch.context() as patch:
            patch.setattr(Store, "submit", fail)
            client.send("SEND", b"lost", destination="/queue/q", persistent="true")
            assert await client.error() == "cannot store: the disk is full"
        queue = broker.registry.queue("q")
        assert queue is not None
        assert len(queue.contents) == 1
