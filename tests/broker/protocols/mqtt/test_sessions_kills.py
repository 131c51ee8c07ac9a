"""A broker is killed while clients of MQTT use it: nothing of QoS 1 is lost, QoS 2 arrives exactly once."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from broker.protocols.mqtt.kill_load import Ledger, Publisher, Subscriber, retained_numbers
from support.processes import Process, command
from support.waiting import WAIT_LIMIT

pytestmark = pytest.mark.slow

#: How often the broker is killed in `make soak`.
KILLS = int(os.environ.get("QMF_SOAK_KILLS", "100"))


def start(folder: Path, patience: int = 1) -> tuple[Process, int]:
    """The broker as a process, and its port of MQTT.

    Args:
        folder: of its data.
        patience: how often the usual time it has to restore these.
    """
    options = ("--port", "0", "--mqtt-port", "0", "--data-dir", str(folder), "--no-management")
    process = Process(command("qmf-broker"), *options)
    while True:
        try:
            return process, int(process.wait_for("Listening on").rpartition(":")[2])
        except AssertionError:
            patience -= 1
            if not patience or process.popen.poll() is not None:
                process.end(signal.SIGKILL)
                raise


async def live(
    process: Process, port: int, publisher: Publisher, subscribers: Sequence[Subscriber], messages: int
) -> None:
    """Let all clients work until so many more messages are accepted and received; then kill the broker."""
    ledger = publisher.ledger
    accepted = len(ledger.accepted[1]) + len(ledger.accepted[2])
    receiving = [asyncio.create_task(each.run(port, lambda: False)) for each in subscribers]
    while not all(each.subscribed for each in subscribers) and not any(task.done() for task in receiving):
        await asyncio.sleep(0.005)
    publishing = asyncio.create_task(publisher.run(port, lambda: False))
    before = ledger.received.total()
    async with asyncio.timeout(WAIT_LIMIT):
        while (
            len(ledger.accepted[1]) + len(ledger.accepted[2]) < accepted + messages
            or ledger.received.total() < before + messages // 2
        ) and not any(task.done() for task in (publishing, *receiving)):
            await asyncio.sleep(0.002)
    process.popen.kill()
    for result in await asyncio.gather(publishing, *receiving, return_exceptions=True):
        assert isinstance(result, ConnectionError | None), result


async def finish(port: int, publisher: Publisher, subscribers: Sequence[Subscriber]) -> None:
    """Let all that is under way arrive; and look at what is retained."""
    async with asyncio.timeout(2 * WAIT_LIMIT):
        await publisher.run(port, lambda: True)
        await asyncio.gather(*(each.run(port, lambda: True) for each in subscribers))
        wanted = publisher.ledger.retained
        assert await retained_numbers(port, len(wanted)) == wanted


def kill_again_and_again(folder: Path, kills: int, seed: int) -> Ledger:
    chance = random.Random(seed)
    ledger = Ledger()
    publisher, subscribers = Publisher(ledger), [Subscriber(ledger, "subscriber", "t/#")]
    subscribers += [Subscriber(ledger, f"shared-{number}", "$share/g/s/#") for number in range(2)]
    for _ in range(kills):
        process, port = start(folder)
        try:
            asyncio.run(live(process, port, publisher, subscribers, chance.randrange(20, 600)))
        finally:
            process.end(signal.SIGKILL)
    process, port = start(folder)
    try:
        asyncio.run(finish(port, publisher, subscribers))
    finally:
        process.end(signal.SIGTERM)
    print(
        f"{kills} kills (seed {seed}): {publisher.number:,} published, {len(ledger.accepted[1]):,} and "
        f"{len(ledger.accepted[2]):,} accepted with QoS 1 and 2, {ledger.received.total():,} received, "
        f"{ledger.again:,} marked as duplicates"
    )
    return ledger


def test_a_few_kills(tmp_path: Path) -> None:
    assert kill_again_and_again(tmp_path, 3, 1).faults() == []


@pytest.mark.soak
def test_many_kills(tmp_path: Path) -> None:
    assert kill_again_and_again(tmp_path, KILLS, random.randrange(2**32)).faults() == []
