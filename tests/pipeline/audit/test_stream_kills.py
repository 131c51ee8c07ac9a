"""The streaming audit killed at random points: its tables are those of a batch."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from pipeline.kills import kill_family
from pipeline.lakes import HERE, Shop
from pipeline.quick import WAIT_LIMIT
from pipeline.tills import QUEUE_DECLARE, Till, read
from support.processes import command, running
from support.waiting import wait_until

pytest.importorskip("duckdb")

from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.stream import AuditStream
from qmf.pipeline.audit.tables import AuditOptions

pytestmark = [pytest.mark.slow, pytest.mark.soak]


class Day:
    """A shop over time: tills are created, changed and deleted, the agent restarts, and some events are repeated."""

    def __init__(self, shop: Shop, chance: random.Random) -> None:
        self._shop, self._chance, self._at, self._up = shop, chance, 1000.0, False

    def go_on(self) -> None:
        """Some more commits."""
        chance = self._chance
        for _ in range(chance.randint(2, 4)):
            self._at += chance.randint(1, 20)
            if not self._up or chance.random() < 0.2:
                self._up = not self._up
                change, reason = ("added", None) if self._up else ("removed", chance.choice(["goodbye", "silent"]))
                self._shop.agent(self._at, change, reason=reason)
            for name in ("one", "two", "three"):
                # Late ones are committed after later ones; some end, and are made again under their names.
                at = self._at - chance.choice([0, 0, 30])
                deleted = int(at) if chance.random() < 0.2 else 0
                made = 1 + int(self._at // 60)
                Till(self._shop, name, created=made).publish(at, name=name, limit=chance.randrange(3), deleted=deleted)
            self._shop.commit()
            robbed = [(self._at - chance.choice([0, 1]), {"till": "one", "amount": chance.randrange(2)})] * 2
            self._shop.events(*robbed)
            called = {"rhost": "127.0.0.1:1", "user": "me", "qName": f"q{chance.randrange(3)}", "disp": "created"}
            self._shop.events((self._at, called), (self._at, called), table=QUEUE_DECLARE)
            self._shop.beat(self._at + 1)


def test_killed_at_random_points_it_makes_the_tables_of_a_batch(tmp_path: Path) -> None:
    chance = random.Random(random.randrange(1000))  # pytest-randomly prints the seed
    shop = Shop(tmp_path / "lake")
    day = Day(shop, chance)
    stream = AuditOptions(lake=shop.root, out=str(tmp_path / "stream"))
    batch = tmp_path / "batch"
    words = ("audit", "--stream", "--every", "0s", "--lake", shop.root, "--out", stream.out)

    day.go_on()
    for _ in range(4):
        before = _entries(tmp_path / "stream")

        def more_begun(before: int = before) -> bool:
            return _entries(tmp_path / "stream") > before

        with running(command("qmf-pipeline"), *words) as process:
            wait_until(more_begun, "a commit", WAIT_LIMIT)
            for _ in range(2):
                day.go_on()
                threading.Event().wait(chance.uniform(0, 0.3))  # so that the kill comes at any point of its work
            kill_family(process)
        day.go_on()
    AuditStream(HERE, stream).step()
    audit_lake(HERE, AuditOptions(lake=shop.root, out=str(batch)), lambda _text: None)
    expected = read(batch)
    assert read(tmp_path / "stream") == expected
    assert all(expected.values())
    # Events are twice in the lake, and once in the table.
    ids = [row["event_id"] for row in expected["events"]]
    assert len(ids) == len(set(ids)) > 0


def _entries(folder: Path) -> int:
    """The number of commits to the tables in a folder."""
    return len(list(folder.glob("*/_delta_log/[0-9]*.json")))
