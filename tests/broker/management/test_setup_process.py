"""The process of the broker and its machine as consoles see them; what its log and its clock are told."""

from __future__ import annotations

import re
import sys
import time
import uuid
from pathlib import Path

import pytest
from broker.management.managed import TOPIC, connected, id_of, managed
from support.recording import message
from support.waiting import until

from qmf.broker.management import memory
from qmf.broker.store.folder import SYSTEM_ID
from qmf.broker.store.system_id import stored_id
from qmf.bus import Binding, ReceivedMessage
from qmf.codec import decode_message
from qmf.errors import RemoteError
from qmf.models.broker import console as remote
from qmf.protocol import ErrorCode


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the values are those of glibc")
async def test_the_memory_is_shown() -> None:
    async with managed() as (_, client):
        (found,) = await client.objects(remote.Memory)
        assert found.name == "amqp-broker"
        if found.malloc_arena is None:
            pytest.skip("the C library is not glibc")
        assert found.malloc_uordblks
        assert found.malloc_fordblks is not None
        assert found.malloc_uordblks + found.malloc_fordblks == found.malloc_arena


async def test_without_glibc_the_memory_has_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_reader", lambda: None)
    async with managed() as (_, client):
        (found,) = await client.objects(remote.Memory)
        assert (found.malloc_arena, found.malloc_uordblks) == (None, None)


async def test_the_machine_has_the_same_id_after_a_restart(tmp_path: Path) -> None:
    seen = set()
    for _ in range(2):
        async with managed(data_dir=tmp_path) as (_, client):
            (system,) = await client.objects(remote.System)
            (vhost,) = await client.objects(remote.Vhost)
            (it,) = await client.objects(remote.Broker)
            assert vhost.federationTag == str(system.systemId)
            assert it.dataDir == str(tmp_path)
            assert it.stagingThreshold == 0
            assert it.systemRef == id_of(system)
            seen.add(system.systemId)
    assert len(seen) == 1


async def test_without_a_data_folder_there_is_no_folder_to_show() -> None:
    async with managed() as (_, client):
        assert (await client.objects(remote.Broker))[0].dataDir is None


def test_an_id_that_cannot_be_read_is_replaced(tmp_path: Path) -> None:
    (tmp_path / SYSTEM_ID).write_text("no id\n")
    first = stored_id(tmp_path)
    assert stored_id(tmp_path) == first
    assert uuid.UUID((tmp_path / SYSTEM_ID).read_text().strip()) == first


def test_an_id_that_cannot_be_written_is_new_each_time(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert stored_id(missing) != stored_id(missing)


async def test_messages_get_the_time_when_they_come() -> None:
    async with managed() as (broker, client), connected(broker.url) as bus:
        (it,) = await client.objects(remote.Broker)
        received: list[ReceivedMessage] = []
        await bus.subscribe(Binding(TOPIC, "k"), received.append)
        assert (await it.getTimestampConfig()).receive is False
        await bus.send(message(TOPIC, "k", "without"), confirm=True)
        await it.setTimestampConfig(True)
        assert (await it.getTimestampConfig()).receive is True
        before = time.time_ns()
        await bus.send(message(TOPIC, "k", "with"), confirm=True)
        await until(lambda: len(received) == 2, "both messages")
        plain, stamped = (decode_message(item.data).message_annotations for item in received)
        assert "x-opt-ingress-timestamp" not in plain
        stamp = stamped["x-opt-ingress-timestamp"]
        assert isinstance(stamp, int)
        assert before <= stamp <= time.time_ns()


async def test_messages_get_the_time_from_the_start() -> None:
    async with managed(timestamps=True) as (_, client):
        (it,) = await client.objects(remote.Broker)
        assert (await it.getTimestampConfig()).receive is True


async def test_a_broker_within_another_program_says_so() -> None:
    async with managed() as (_, client):
        (it,) = await client.objects(remote.Broker)
        calls = {
            "shutdown": it.shutdown(),
            "getLogLevel": it.getLogLevel(),
            "setLogLevel": it.setLogLevel("debug+"),
            "getLogHiresTimestamp": it.getLogHiresTimestamp(),
            "setLogHiresTimestamp": it.setLogHiresTimestamp(True),
        }
        for name, call in calls.items():
            text = f"NotImplemented: Broker.{name}: the broker runs within another program"
            with pytest.raises(RemoteError, match=re.escape(text)) as caught:
                await call
            assert caught.value.code == ErrorCode.NOT_IMPLEMENTED
