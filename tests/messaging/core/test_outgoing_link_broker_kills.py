"""Brokers whose process is killed: at-least-once loses no durable message."""

from __future__ import annotations

import os
import random
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from support.flow import Flow
from support.killed_brokers import KilledBroker

pytestmark = [pytest.mark.slow, pytest.mark.soak]

MESSAGES, KILLS = int(os.environ.get("QMF_SOAK_MESSAGES", "100000")), int(os.environ.get("QMF_SOAK_KILLS", "100"))


@pytest.mark.parametrize("name", ["artemis", "qpidd"])
def test_at_least_once_loses_nothing_when_brokers_are_killed(name: str, tmp_path: Path) -> None:
    broker = KilledBroker(name, tmp_path)
    chance = random.Random(5)

    restarts: list[Future[None]] = []

    def restart() -> None:
        time.sleep(chance.uniform(0, 0.1))
        broker.kill()
        broker.start()

    broker.start()
    try:
        with ThreadPoolExecutor(1) as pool:
            flow = Flow(
                broker.url,
                "killed; {create: always, node: {type: queue, durable: True}}",
                MESSAGES,
                interruptions=KILLS,
                interrupt=lambda: restarts.append(pool.submit(restart)),  # messages flow meanwhile
                ready=lambda: all(item.done() for item in restarts),
                timeout=300,
            )
            flow.run()
        for item in restarts:
            item.result()
        kills = broker.kills
    finally:
        broker.kill()
    duplicates = flow.seen.total() - len(flow.seen)
    print(f"{name}: {MESSAGES} messages, {kills} kills, {duplicates} duplicates")
    assert flow.seen.keys() == set(range(MESSAGES))
    assert kills == KILLS
