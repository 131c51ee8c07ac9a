"""Correlation on Spark: known answers for each kind of rule over a lake, and streams that find what batches find."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pipeline.lakes import SECOND, Shop

from qmf.pipeline import LakeError
from qmf.pipeline.correlate import RuleError, parse_rules
from qmf.pipeline.correlate.alerts import Alert, in_order
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.maintenance import compact
from qmf.pipeline.recording.buffers import Cells
from qmf.schema import TYPES, Argument, EventSchema

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.correlate.batch import BatchResult, correlate_batch
from qmf.pipeline.correlate.options import CorrelateOptions
from qmf.pipeline.correlate.stream import CorrelationStream
from qmf.pipeline.correlate.table import StreamProgress, StreamTable, alerts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

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


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


def options(shop: Shop, text: str = RULES, **more: Any) -> CorrelateOptions:
    chosen = {"late": 5 * SECOND, **more}
    return CorrelateOptions(
        lake=shop.root, out=f"{shop.root}/_tables/correlate", rules=parse_rules(text, "rules.toml"),
        file="rules.toml", **chosen,
    )  # fmt: skip


def batch(spark: SparkSession, of: CorrelateOptions, until: float | None = None) -> BatchResult:
    return correlate_batch(spark, of, ignore, until=None if until is None else round(until * SECOND))


def ignore(_text: str) -> None:
    return


def short(found: Sequence[Alert]) -> list[tuple[str, str, str, float, float]]:
    return [
        (item.rule, item.change, item.subject, item.began_ns / SECOND, item.at_ns / SECOND)
        for item in sorted(found, key=lambda item: (item.rule, item.at_ns, item.change == "cleared"))
    ]


def fill(shop: Shop) -> None:
    """Something for every rule."""
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


def test_known_answers_for_every_kind(spark: SparkSession, shop: Shop) -> None:
    fill(shop)
    of = options(shop)
    found = batch(spark, of)
    assert short(found.alerts) == FOUND
    first = next(item for item in found.alerts if item.rule == "busy")
    assert (first.message, first.severity, first.kind, first.agent, first.object) == (
        "one has a queue of 6", 4, "threshold", "a", "one",
    )  # fmt: skip
    assert first.rule_hash == of.rules[0].hash
    assert (first.window_start_ns, first.window_end_ns, first.value) == (0, 10 * SECOND, 6)
    (sample, last) = json.loads(first.evidence)
    assert (sample["time"], sample["value"], sample["name"], sample["limit"]) == (
        "1970-01-01T00:00:00.000000Z", 6, "one", 9,
    )  # fmt: skip
    assert last["time"] == "1970-01-01T00:00:10.000000Z"
    robbery = next(item for item in found.alerts if item.rule == "robbery")
    assert (robbery.message, robbery.severity) == ("one lost 6", 1)
    assert [item["time"][17:19] for item in json.loads(robbery.evidence)] == ["05", "25"]


def test_the_table_is_there_and_a_batch_again_gives_the_same(spark: SparkSession, shop: Shop) -> None:
    fill(shop)
    of = options(shop)
    first = batch(spark, of)
    assert batch(spark, of).alerts == first.alerts
    table = alerts(spark, of.out, by="batch")
    assert table is not None
    assert table.count() == len(FOUND)
    assert table.select("alert_id").distinct().count() == len({item.alert_id for item in first.alerts})
    (row,) = table.where("rule = 'often' AND change = 'raised'").select("began", "at", "evidence").collect()
    assert (row["began"].second, row["at"].second, len(json.loads(row["evidence"]))) == (25, 45, 2)
    assert alerts(spark, of.out, by="stream") is None


def test_days_and_patterns_choose(spark: SparkSession, shop: Shop) -> None:
    fill(shop)
    text = '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 5\n'
    assert len(batch(spark, options(shop, text)).alerts) == 2
    assert batch(spark, options(shop, text, first="1970-01-02")).alerts == []
    assert batch(spark, options(shop, text + 'agent = "b*"')).alerts == []
    assert batch(spark, options(shop, text + 'object = "t?o"')).alerts == []
    assert batch(spark, options(shop, text + "where = \"name = 'two'\"")).alerts == []


WRONG = [
    ('value = "quue"', "rules.toml: r: value: 'quue': [UNRESOLVED_COLUMN"),
    ('value = "queue +"', "rules.toml: r: value: 'queue +': "),
    ('value = "name"', "rules.toml: r: value: 'name' is not a number but string"),
    ('value = "queue"\nwhere = "queue"', "rules.toml: r: where: 'queue' is not a condition but bigint"),
    ('value = "queue"\nmessage = "{nme}"', "rules.toml: r: message: no class of the rule has a 'nme'"),
    ('value = "queue"\nevidence = ["nme"]', "rules.toml: r: evidence: no class of the rule has a 'nme'"),
]


@pytest.mark.parametrize(("keys", "message"), WRONG)
def test_rules_that_do_not_fit_their_class_are_told(spark: SparkSession, shop: Shop, keys: str, message: str) -> None:
    shop.put((0, 1), queue=1)
    with pytest.raises(RuleError) as caught:
        batch(spark, options(shop, f'[r]\nkind = "threshold"\nclass = "till"\nabove = 1\n{keys}'))
    assert str(caught.value).startswith(message)


def test_classes_that_the_lake_does_not_know_are_told_once(spark: SparkSession, shop: Shop) -> None:
    text = '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 1\n'
    shop.beat(0, 1)
    said: list[str] = []
    follower = CorrelationStream(spark, options(shop, text), said.append)
    assert follower.step() is None
    shop.put((10, 1), (20, 1), queue=2)
    step = follower.step()
    assert said == ["r: the lake has no class till yet"]
    assert step is not None
    assert [item.at_ns for item in step.alerts] == [10 * SECOND]
    follower.close()


# -- streams


def steps(spark: SparkSession, of: CorrelateOptions) -> tuple[list[Alert], int, int]:
    """What steps find until there is nothing to do, how many rows came too late, and how far time is."""
    found: list[Alert] = []
    too_late = 0
    # A new one, as after a kill.
    follower = CorrelationStream(spark, of, ignore, files=30)
    while (step := follower.step()) is not None or follower.is_behind():
        if step is not None:
            found += step.alerts
            too_late += step.counts.too_late
    follower.close()
    return found, too_late, follower.progress.begin


class UnsteadyShop(Shop):
    """Commits now and then, what came in the order of its coming; some of it late, or by a clock that is wrong."""

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
        """A row that comes at a time; when it says that it was is another matter."""
        before = at - self.chance.choice([0, 0, 0, 0.5, 3, 500, -50])
        came, ns = round(at * SECOND), round((at if kind is RowKind.SCHEMAS else before) * SECOND)
        self._seq += 1
        self._buffers.add(kind, table, ns, (self._run, self._seq, ns // 1000, ns, came, agent, epoch, *cells))

    def commit(self) -> None:
        if self.chance.random() < 0.2:
            super().commit()

    def restart(self, at: float) -> None:
        """Stop and start again."""
        super().commit()
        self._run = f"{round(at):020d}_1"

    def pause(self, at: float, again: bool) -> None:
        """Lose the connection, or have it again."""
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


def test_a_stream_in_any_parts_finds_what_a_batch_finds(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(random.randrange(10_000))  # pytest-randomly's seed tells which
    shop = UnsteadyShop(tmp_path / "lake", chance)
    of = options(shop)
    found: list[Alert] = []
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
    """The process is gone."""


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

    follower = CorrelationStream(spark, of, ignore)
    with monkeypatch.context() as patch:
        patch.setattr(StreamTable, "commit", kill)
        with pytest.raises(Killed):
            follower.step()
    follower.close()
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


def test_what_enters_the_lake_long_after_it_came_is_left_out_and_counted(spark: SparkSession, shop: Shop) -> None:
    of = options(shop, '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nbelow = 5')
    other = Shop(Path(shop.root), run="00000000000000000002_1", name="other")
    shop.put((0, 0), (100, 0), queue=6, name="one")
    steps(spark, of)
    other.put((50, 0), (99, 0), queue=0, name="one")
    found, too_late, _ = steps(spark, of)
    assert ([item.at_ns // SECOND for item in found], too_late) == ([], 1)


def test_a_rule_that_is_changed_ends_its_alerts(spark: SparkSession, shop: Shop) -> None:
    text = '[r]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = '
    shop.put((0, 0), (100, 0), queue=6, name="one")
    (raised,), _, _ = steps(spark, options(shop, text + "5"))
    (cleared,), _, end = steps(spark, options(shop, text + "7"))
    assert (cleared.alert_id, cleared.change, cleared.reason) == (
        raised.alert_id, "cleared", "the rule was changed or removed",
    )  # fmt: skip
    assert (cleared.at_ns, cleared.rule_hash, cleared.message) == (end, raised.rule_hash, raised.message)
    assert steps(spark, options(shop, text + "7"))[0] == []


def test_time_goes_on_while_a_recorder_has_nothing_to_write(spark: SparkSession, shop: Shop) -> None:
    of = options(shop, '[silent]\nkind = "absence"\nof = "heartbeats"\nfor = "30s"')
    start = time.time()
    shop.beat(start - 1, start)
    shift = 0
    follower = CorrelationStream(spark, of, ignore, clock=lambda: time.time_ns() + shift)
    assert follower.step() is not None
    shift = 120 * SECOND
    assert follower.step() is None  # nobody records, so nobody knows
    lock = shop.lake.lock("shop")
    step = follower.step()
    assert step is not None
    (alert,) = step.alerts
    assert alert.at_ns == round(start * SECOND) + 30 * SECOND
    lock.close()
    follower.close()


def test_a_recorder_that_was_away_for_days_raises_no_alarm(spark: SparkSession, shop: Shop) -> None:
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


def test_one_process_follows_into_a_folder(spark: SparkSession, shop: Shop) -> None:
    follower = CorrelationStream(spark, options(shop), ignore)
    with pytest.raises(LakeError, match="another process follows"):
        CorrelationStream(spark, options(shop), ignore)
    follower.close()


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
