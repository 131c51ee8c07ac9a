"""A broker is killed under load: nothing accepted is lost, nothing acknowledged returns, transactions are whole."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker.store.kill_load import MOVED, WORK, Ledger, left, load
from support.processes import Process, command

pytestmark = pytest.mark.slow

#: How often the broker is killed in `make soak`.
KILLS = int(os.environ.get("QMF_SOAK_KILLS", "200"))


class _Broker:
    """The broker as a process, on the same folder in each of its lives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def life(self) -> Iterator[tuple[Process, str]]:
        process = Process(command("qmf-broker"), "--port", "0", "--data-dir", str(self._folder), "--no-management")
        try:
            yield process, process.wait_for("Listening on").split()[-1]
        finally:
            process.end(signal.SIGKILL)


def kill_again_and_again(folder: Path, kills: int, seed: int) -> tuple[Ledger, list[str]]:
    """Load a broker, kill it, start it again; the ledger and its faults."""
    chance = random.Random(seed)
    ledger = Ledger()
    broker = _Broker(folder)

    async def once(process: Process, url: str) -> None:
        working = asyncio.create_task(load(url, ledger))
        # Until something has happened in this life, and a random time on.
        before = len(ledger.accepted)
        while len(ledger.accepted) - before < chance.randrange(20, 2_000) and not working.done():
            await asyncio.sleep(0.005)
        process.popen.kill()
        await working

    for _ in range(kills):
        with broker.life() as (process, url):
            asyncio.run(once(process, url))
    with broker.life() as (_, url):
        work, moved = asyncio.run(left(url, WORK)), asyncio.run(left(url, MOVED))
    return ledger, ledger.compare(work, moved)


def check(ledger: Ledger, faults: list[str], kills: int, seed: int) -> None:
    print(
        f"{kills} kills (seed {seed}): {len(ledger.offered):,} sent, {len(ledger.accepted):,} accepted, "
        f"{len(ledger.acknowledged):,} acknowledged, {len(ledger.committed):,} transactions"
    )
    assert not faults, faults[:20]
    assert ledger.accepted
    assert ledger.acknowledged
    assert ledger.committed


def test_a_few_kills(tmp_path: Path) -> None:
    ledger, faults = kill_again_and_again(tmp_path, 3, 1)
    check(ledger, faults, 3, 1)


@pytest.mark.soak
def test_many_kills(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    ledger, faults = kill_again_and_again(tmp_path, KILLS, seed)
    check(ledger, faults, KILLS, seed)
