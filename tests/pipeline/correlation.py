"""Rules of every kind, a lake with rows for each of them, and the alerts that a batch finds there."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.lakes import HERE, SECOND, Shop

from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.batch import LakeAlerts, correlate_batch
from qmf.pipeline.correlate.batch_input import CorrelateOptions
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.record.buffers import Cells
from qmf.pipeline.record.heartbeats import HeartbeatIntervals
from qmf.pipeline.runners.runner import Runner
from qmf.schema import TYPES, Argument, EventSchema

OPENED = ClassVersion.from_schema(
    EventSchema(package="org.example.shop", name="opened", arguments=(Argument(name="till", type=TYPES["sstr"]),))
)


RULES = """
[busy]
kind = "threshold"
class = "till"
value = "queue"
above = 5
clear = 3
for = "10s"
message = "{name} has a queue of {value:.0f}"
evidence = ["limit"]

[selling]
kind = "rate"
class = "org.example.shop:till"
value = "sales"
above = 10
object = "o*"

[silent]
kind = "absence"
of = "heartbeats"
for = "30s"

[closed]
kind = "absence"
of = "samples"
class = "till"
for = "1m"
goodbye = false

[robbery]
kind = "sequence"
by = ["till"]
within = "1m"
steps = [{event = "opened"}, {event = "tillRobbed", where = "amount > 5"}]
message = "{till} lost {amount}"
severity = "alert"

[often]
kind = "count"
event = "tillRobbed"
by = ["till"]
at_least = 2
within = "30s"

[robbed-while-busy]
kind = "join"
event = {name = "tillRobbed", id = "till"}
object = {class = "till", id = "name", where = "queue > 2"}
within = "1m"
"""


def options(shop: Shop, text: str = RULES, **more: Any) -> CorrelateOptions:
    chosen = {"late": 5 * SECOND, **more}
    return CorrelateOptions(
        lake=shop.root, out=f"{shop.root}/_tables/correlate", rules=parse_rules(text, "rules.toml"), **chosen,
    )  # fmt: skip


def batch(of: CorrelateOptions, until: float | None = None, runner: Runner | None = None) -> LakeAlerts:
    """The alerts of a batch, from its table."""
    limit = None if until is None else round(until * SECOND)
    found = correlate_batch(runner or HERE, of, ignore, until=limit)
    return LakeAlerts(list(found.table.in_order()), found.counts, found.failures)


def ignore(_text: str) -> None:
    return


def short(found: Sequence[AlertRow]) -> list[tuple[str, str, str, float, float]]:
    return [
        (item.rule, item.change, item.subject, item.began_ns / SECOND, item.at_ns / SECOND)
        for item in sorted(found, key=lambda item: (item.rule, item.at_ns, item.change == "cleared"))
    ]


def fill(shop: Shop) -> None:
    """Write rows for every rule."""
    shop.put((0, 0), (10, 50), queue=6, name="one", limit=9)
    shop.put((20, 200), queue=4, name="one")
    shop.put((30, 210), queue=3, name="one")
    shop.put((40, 220), queue=3, name="one")
    shop.put((0, 0), (50, 500), object="two", queue=2, name="two")
    shop.beat(0, 10, 20)
    shop.beat(0, 20, 40, 60, 80, 100, agent="b")
    shop.events((5, {"till": "one"}), (6, {"till": "two"}), table=OPENED)
    shop.events(
        (15, {"till": "two", "amount": 5}), (25, {"till": "one", "amount": 6}), (45, {"till": "one", "amount": 7})
    )
    shop.put((120, 300), queue=0, name="one")


FOUND = [
    ("busy", "raised", "a, one", 0, 10),
    ("busy", "cleared", "a, one", 0, 30),
    ("closed", "raised", "a, one", 40, 100),
    ("closed", "raised", "a, two", 50, 110),
    ("closed", "cleared", "a, one", 40, 120),
    ("often", "raised", "one", 25, 45),
    ("often", "cleared", "one", 25, 55),
    ("robbed-while-busy", "raised", "a, one", 25, 25),
    ("robbed-while-busy", "cleared", "a, one", 25, 120),
    ("robbery", "raised", "one", 5, 25),
    ("robbery", "cleared", "one", 5, 85),
    ("selling", "raised", "a, one", 20, 20),
    ("selling", "cleared", "a, one", 20, 30),
    ("silent", "raised", "a", 20, 50),
]  # fmt: skip


class UnsteadyShop(Shop):
    """Commits at random, rows in the order of arrival; some of them are late, or have wrong times."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        super().__init__(root)
        self.chance = chance
        self._now_ns = self._started_ns = 0
        self._begin_heartbeats()

    def _begin_heartbeats(self) -> None:
        self.heartbeats = HeartbeatIntervals(self._add_heartbeats, lambda: self._now_ns)

    def _add_heartbeats(self, time_ns: int, agent: str | None, epoch: int | None, cells: Cells) -> None:
        self._seq += 1
        row = (self._run, self._seq, time_ns // 1000, time_ns, self._now_ns, agent, epoch, *cells)
        self._buffers.add(RowKind.HEARTBEATS, None, time_ns, row)

    def beat(
        self, *times: float, agent: str = "a", epoch: int = 1, interval: float = 10.0, commit: bool = True
    ) -> None:
        """Heartbeats, as a recorder writes them."""
        for at in times:
            self._now_ns = round(at * SECOND)
            # They decide which run has an agent: their times don't go back over the restart of a recorder.
            sent = max(self._started_ns, self._now_ns - self.chance.choice([0, SECOND // 2]))
            self.heartbeats.on_heartbeat(agent, epoch, interval, sent)
        if commit:
            self.commit()

    def add(
        self,
        kind: RowKind,
        at: float,
        cells: Cells,
        *,
        table: ClassVersion | None = None,
        agent: str | None = "a",
        epoch: int = 1,
        received: float | None = None,
    ) -> None:
        """Add a row that arrives at a time, with another time of its own."""
        self._now_ns = round(at * SECOND)
        # No two events have the same time by chance: they would be one, as long as its detector remembers it.
        before = at - self.chance.choice([0, 0, 0, 0.5, 3.25, 500.125, -50.375])
        came, ns = round(at * SECOND), round((at if kind is RowKind.SCHEMAS else before) * SECOND)
        self._seq += 1
        self._buffers.add(kind, table, ns, (self._run, self._seq, ns // 1000, ns, came, agent, epoch, *cells))

    def commit(self) -> None:
        if self.chance.random() < 0.2:
            self.flush()

    def restart(self, at: float) -> None:
        """Restart the recorder, which was killed."""
        super().commit()
        self._run = f"{round(at):020d}_1"
        self._started_ns = round(at * SECOND)
        self._begin_heartbeats()

    def pause(self, at: float, again: bool) -> None:
        """Lose the connection, or connect again."""
        if not again:
            self._now_ns = round(at * SECOND)
            self.heartbeats.close()
        self.add(RowKind.GAPS, at, ("connected again" if again else "disconnected", "", 0, None))
        self.commit()

    def flush(self) -> None:
        """Commit what waits."""
        self.heartbeats.write()
        super().commit()


def act(shop: UnsteadyShop, at: float) -> None:
    """Something happens at random."""
    chance = shop.chance
    name, agent, epoch = chance.choice(["one", "two"]), chance.choice("ab"), chance.choice([1, 1, 1, 2])
    match chance.randrange(12):
        case 0 | 1 | 2 | 3:
            values: dict[str, Any] = {"queue": chance.randrange(9), "name": name, "limit": 1 << 63}
            values["nextRef"] = chance.choice(["one", "two", None])
            shop.put((at, chance.randrange(400)), object=name, agent=agent, epoch=epoch, **values)
        case 4:
            shop.put((at, 0), object=name, agent=agent, delete=at)
        case 5 | 6:
            shop.events((at, {"till": name}), table=OPENED, agent=agent)
        case 7 | 8:
            event = (at, {"till": name, "amount": chance.randrange(4, 9)})
            shop.events(*[event] * chance.choice([1, 1, 2]), agent=agent)
        case 9 | 10:
            shop.beat(at, agent=agent)
        case _:
            if chance.random() < 0.5:
                shop.restart(at)
            else:
                shop.pause(at, False)
                shop.pause(at + chance.uniform(0, 1), True)
