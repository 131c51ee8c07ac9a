"""Correlation as a stream: it finds what a batch finds."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pipeline.correlation import FOUND, OPENED, batch, fill, ignore, options, short
from pipeline.lakes import SECOND, Shop

from qmf.pipeline import LakeError
from qmf.pipeline.correlate.alerts import AlertRow, in_order
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.maintenance import compact
from qmf.pipeline.recording.buffers import Cells

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.correlate.options import CorrelateOptions
from qmf.pipeline.correlate.stream import CorrelationStream
from qmf.pipeline.correlate.table import StreamProgress, StreamTable, alerts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


def steps(spark: SparkSession, of: CorrelateOptions) -> tuple[list[AlertRow], int, int]:
    """The alerts of all steps that are due, the number of rows that came too late, and the horizon."""
    found: list[AlertRow] = []
    too_late = 0
    # A new stream, as after a kill.
    stream = CorrelationStream(spark, of, ignore, files=30)
    while (step := stream.step()) is not None or stream.is_behind():
        if step is not None:
            found += step.alerts
            too_late += step.counts.too_late
    stream.close()
    return found, too_late, stream.progress.begin


def test_unknown_classes_are_reported_once(spark: SparkSession, shop: Shop) -> None:
    text = '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 1\n'
    shop.beat(0, 1)
    lines: list[str] = []
    stream = CorrelationStream(spark, options(shop, text), lines.append)
    assert stream.step() is None
    shop.put((10, 1), (20, 1), queue=2)
    step = stream.step()
    assert lines == ["r: the lake has no class till yet"]
    assert step is not None
    assert [item.at_ns for item in step.alerts] == [10 * SECOND]
    stream.close()


class UnsteadyShop(Shop):
    """Commits at random, rows in the order of arrival; some of them are late, or have wrong times."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        super().__init__(root)
        self.chance = chance

    def add(
        self,
        kind: RowKind,
        at: float,
        cells: Cells,
        *,
        table: ClassVersion | None = None,
        agent: str = "a",
        epoch: int = 1,
        received: float | None = None,
    ) -> None:
        """Add a row that arrives at a time, with another time of its own."""
        before = at - self.chance.choice([0, 0, 0, 0.5, 3, 500, -50])
        came, ns = round(at * SECOND), round((at if kind is RowKind.SCHEMAS else before) * SECOND)
        self._seq += 1
        self._buffers.add(kind, table, ns, (self._run, self._seq, ns // 1000, ns, came, agent, epoch, *cells))

    def commit(self) -> None:
        if self.chance.random() < 0.2:
            super().commit()

    def restart(self, at: float) -> None:
        """Restart the recorder."""
        super().commit()
        self._run = f"{round(at):020d}_1"

    def pause(self, at: float, again: bool) -> None:
        """Lose the connection, or connect again."""
        self.add(RowKind.GAPS, at, ("connected again" if again else "disconnected", "", 0))
        self.commit()

    def flush(self) -> None:
        super().commit()


def act(shop: UnsteadyShop, at: float) -> None:
    chance = shop.chance
    name, agent, epoch = chance.choice(["one", "two"]), chance.choice("ab"), chance.choice([1, 1, 1, 2])
    match chance.randrange(12):
        case 0 | 1 | 2 | 3:
            values: dict[str, Any] = {"queue": chance.randrange(9), "name": name, "limit": 1 << 63}
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


def test_a_stream_in_random_steps_finds_what_a_batch_finds(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(random.randrange(10_000))  # pytest-randomly prints the seed
    shop = UnsteadyShop(tmp_path / "lake", chance)
    of = options(shop)
    found: list[AlertRow] = []
    at, end = 1000.0, 0
    for _ in range(3):
        for _ in range(chance.randrange(20, 80)):
            at += chance.choice([1, 1, 2, 5, 20])
            act(shop, at)
        if chance.random() < 0.5:
            shop.flush()
        if chance.random() < 0.3:
            compact(shop.lake, before="2030-01-01")
        more, too_late, end = steps(spark, of)
        found += more
        assert too_late == 0
    assert len(found) > 10
    whole = batch(spark, of, until=end / SECOND).alerts
    assert in_order(found) == whole
    table = alerts(spark, of.out)
    assert table is not None
    assert table.count() == len(found)


class Killed(Exception):
    """Stands for a kill of the process."""


@pytest.mark.parametrize("moment", ["before the commit", "after the commit"])
def test_a_step_that_was_killed_is_done_again_or_not_at_all(
    spark: SparkSession, shop: Shop, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    of = options(shop)
    shop.put((0, 0), (10, 0), (100, 0), queue=6, name="one")
    whole = StreamTable.commit

    def kill(self: StreamTable, progress: StreamProgress) -> None:
        if moment == "after the commit":
            whole(self, progress)
        raise Killed

    stream = CorrelationStream(spark, of, ignore)
    with monkeypatch.context() as patch:
        patch.setattr(StreamTable, "commit", kill)
        with pytest.raises(Killed):
            stream.step()
    stream.close()
    shop.put((200, 0), queue=0, name="one")
    found, _, _ = steps(spark, of)
    busy = [item.change for item in found if item.rule == "busy"]
    assert busy == (["raised"] if moment == "before the commit" else [])
    shop.put((300, 0), queue=0, name="one")
    steps(spark, of)
    table = alerts(spark, of.out)
    assert table is not None
    rows = table.where("rule = 'busy'").orderBy("at_ns").collect()
    assert [(row["change"], row["at_ns"] // SECOND) for row in rows] == [("raised", 10), ("cleared", 200)]


def test_rows_that_enter_the_lake_too_late_are_dropped_and_counted(spark: SparkSession, shop: Shop) -> None:
    of = options(shop, '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nbelow = 5')
    other = Shop(Path(shop.root), run="00000000000000000002_1", name="other")
    shop.put((0, 0), (100, 0), queue=6, name="one")
    steps(spark, of)
    other.put((50, 0), (99, 0), queue=0, name="one")
    found, too_late, _ = steps(spark, of)
    assert ([item.at_ns // SECOND for item in found], too_late) == ([], 1)


def test_a_changed_rule_clears_its_alerts(spark: SparkSession, shop: Shop) -> None:
    text = '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = '
    shop.put((0, 0), (100, 0), queue=6, name="one")
    (raised,), _, _ = steps(spark, options(shop, text + "5"))
    (cleared,), _, end = steps(spark, options(shop, text + "7"))
    assert (cleared.alert_id, cleared.change, cleared.reason) == (
        raised.alert_id, "cleared", "the rule was changed or removed",
    )  # fmt: skip
    assert (cleared.at_ns, cleared.rule_hash, cleared.message) == (end, raised.rule_hash, raised.message)
    assert steps(spark, options(shop, text + "7"))[0] == []


def test_time_advances_while_a_recorder_has_nothing_to_write(spark: SparkSession, shop: Shop) -> None:
    of = options(shop, '[silent]\nkind = "absence"\nof = "heartbeats"\nfor = "30s"')
    start = time.time()
    shop.beat(start - 1, start)
    shift = 0
    stream = CorrelationStream(spark, of, ignore, clock=lambda: time.time_ns() + shift)
    assert stream.step() is not None
    shift = 120 * SECOND
    assert stream.step() is None  # without a recorder, time doesn't advance
    lock = shop.lake.lock("shop")
    step = stream.step()
    assert step is not None
    (alert,) = step.alerts
    assert alert.at_ns == round(start * SECOND) + 30 * SECOND
    lock.close()
    stream.close()


def test_days_without_a_recorder_raise_no_alert(spark: SparkSession, shop: Shop) -> None:
    of = options(shop, '[silent]\nkind = "absence"\nof = "heartbeats"\nfor = "30s"')
    later = Shop(Path(shop.root), run="00000000000000000002_1")
    shop.beat(0)
    first, _, _ = steps(spark, of)
    day = 86_400.0
    later.beat(9 * day, 9 * day + 20, 9 * day + 40, agent="b")
    second, _, end = steps(spark, of)
    found = [(item.subject, item.at_ns // SECOND) for item in first + second]
    assert found == [("a", 9 * day + 30)]
    assert batch(spark, of, until=end / SECOND).alerts == second


def test_only_one_process_follows_into_a_folder(spark: SparkSession, shop: Shop) -> None:
    stream = CorrelationStream(spark, options(shop), ignore)
    with pytest.raises(LakeError, match="another process follows"):
        CorrelationStream(spark, options(shop), ignore)
    stream.close()


def test_a_stream_begins_with_the_files_of_a_checkpoint(spark: SparkSession, shop: Shop) -> None:
    fill(shop)
    shop.lake.write_checkpoint(shop.lake.last_entry())
    shop.lake.truncate_log(time.time_ns() + SECOND)
    compact(shop.lake, before="2030-01-01")
    shop.put((200, 300), queue=0, name="one")
    of = options(shop)
    found, _, end = steps(spark, of)
    assert in_order(found) == batch(spark, of, until=end / SECOND).alerts
    assert short(found)[:2] == FOUND[:2]
