"""Start and end of the broker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from broker.raw_clients import usable

from qmf.broker import Broker
from qmf.broker.nodes.topics import TopicError


async def test_closing_twice_and_before_start() -> None:
    broker = Broker(port=0)
    await broker.close()
    await broker.start()
    port = broker.port
    await broker.close()
    await broker.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_a_closed_broker_can_be_started_again() -> None:
    broker = Broker(port=0)
    await broker.start()
    await broker.close()
    await broker.start()
    await usable(broker)
    await broker.close()


async def test_a_start_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    broker = Broker(port=0, data_dir=tmp_path, queue_patterns=["("])
    with pytest.raises(TopicError, match="is no regular expression"):
        await broker.start()
    async with Broker(port=0, data_dir=tmp_path) as another:  # nobody else has the folder
        await usable(another)
