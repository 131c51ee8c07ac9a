"""Correlation as a stream whose steps are made by tasks: it finds what the stream in the process and a batch find."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from pipeline.correlation import UnsteadyShop, act, batch, ignore, options
from pipeline.lakes import SECOND, Shop

from qmf.pipeline.correlate import RuleError, batch_input, parse_rules
from qmf.pipeline.correlate.alert_table import AlertTable
from qmf.pipeline.correlate.alerts import AlertRow, in_order
from qmf.pipeline.correlate.batch_input import CorrelateOptions
from qmf.pipeline.correlate.signal_reader import SignalReader
from qmf.pipeline.correlate.stream import CorrelationStream
from qmf.pipeline.correlate.stream_state import DetectorTable, StreamState
from qmf.pipeline.correlate.task_stream import TaskCorrelationStream
from qmf.pipeline.errors import LakeError
from qmf.pipeline.runners.process import ProcessRunner
from qmf.pipeline.runners.runner import Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = ProcessRunner(task_rows=50)


def steps(of: CorrelateOptions, runner: Runner = TASKS) -> tuple[list[AlertRow], int, int]:
    """The alerts of all steps that are due, the number of rows that came too late, and the horizon."""
    found: list[AlertRow] = []
    too_late = 0
    # A new stream, as after a kill.
    stream = TaskCorrelationStream(runner, of, ignore, buckets=3)
    while (step := stream.step()) is not None:
        found += step.alerts
        too_late += step.counts.too_late
    stream.close()
    return found, too_late, stream.progress.begin


def in_process(of: CorrelateOptions) -> list[AlertRow]:
    found: list[AlertRow] = []
    stream = CorrelationStream(of, ignore)
    while (step := stream.step()) is not None:
        found += step.alerts
    stream.close()
    return in_order(found)


def compare(root: Path, seed: int, runner: Runner = TASKS, rounds: int = 5) -> None:
    """Compare both streams, each started several times while a lake grows at random, and a batch."""
    chance = random.Random(seed)
    shop = UnsteadyShop(root, chance)
    here = options(shop)
    there = attrs.evolve(here, out=f"{here.out}-there")
    at = 1000.0
    found: list[AlertRow] = []
    for _ in range(rounds):
        for _ in range(chance.randrange(20, 60)):
            at += chance.choice([1, 1, 2, 5, 20])
            act(shop, at)
        if chance.random() < 0.5:
            shop.flush()
        if chance.random() < 0.3:
            shop.flush()
            for path in shop.lake.paths():
                shop.lake.table(path).delta().optimize.compact()
        expected = in_process(here)
        more, too_late, end = steps(there, runner)
        found += more
        assert too_late == 0
        assert in_order(more) == expected
    assert len(found) > 3
    assert list(AlertTable(there.out, "stream").in_order()) == in_order(found)
    assert in_order(found) == batch(here, until=end / SECOND).alerts


@pytest.mark.slow
def test_steps_by_tasks_find_what_steps_in_the_process_find(tmp_path: Path) -> None:
    compare(tmp_path / "lake", random.randrange(10_000), rounds=3)  # pytest-randomly prints the seed


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(40))
def test_many_random_steps(tmp_path: Path, seed: int) -> None:
    compare(tmp_path / "lake", seed)


@pytest.mark.slow
@pytest.mark.soak
def test_steps_on_spark_find_what_steps_in_the_process_find(spark: SparkSession, tmp_path: Path) -> None:
    from qmf.pipeline.runners.spark import SparkRunner

    compare(tmp_path / "lake", 5, SparkRunner(spark, 40), rounds=2)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


QUEUE = '[{}]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = {}\n'


class Killed(Exception):
    """Stands for a kill of the process."""


@pytest.mark.parametrize("moment", ["before the commit", "before the alerts", "before files are removed"])
def test_a_step_that_was_killed_is_done_again_or_not_at_all(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    of = options(shop, QUEUE.format("busy", 5), late=0)
    shop.put((0, 0), (10, 0), queue=6, name="one")

    def kill(*_: object) -> None:
        raise Killed

    stream = TaskCorrelationStream(TASKS, of, ignore, buckets=2)
    with monkeypatch.context() as patch:
        match moment:
            case "before the commit":
                patch.setattr(DetectorTable, "commit", kill)
            case "before the alerts":
                patch.setattr(AlertTable, "commit", kill)
            case _:
                patch.setattr(DetectorTable, "remove", kill)
        with pytest.raises(Killed):
            stream.step()
    stream.close()
    for path in shop.lake.paths():
        shop.lake.table(path).delta().optimize.compact()
    shop.put((20, 0), queue=0, name="one")
    found, _, _ = steps(of)
    assert [item.change for item in found] == ["raised", "cleared"][moment != "before the commit" :]
    table = AlertTable(of.out, "stream")
    assert [(item.change, item.at_ns // SECOND) for item in table.in_order()] == [("raised", 0), ("cleared", 20)]


def test_buckets_are_written_as_a_whole_from_time_to_time(shop: Shop) -> None:
    of = options(shop, QUEUE.format("busy", 5) + 'for = "1h"\n', late=0)
    stream = TaskCorrelationStream(TASKS, of, ignore, buckets=2)
    for at in range(12):
        shop.put((at, at), queue=6 + at % 2, name="one", object=f"till-{at % 3}")
        assert stream.step() is not None
        assert len(stream.pending()) == min(at + 1, 3)
    stream.close()
    table = DetectorTable(of.out)
    assert all(len(paths) < 9 for paths in table.files().values())
    # Files that are not needed any more are gone: 30 were written.
    assert len(list(Path(table.table.url).glob("bucket=*/*.parquet"))) == sum(map(len, table.files().values())) < 20
    shop.put((4000, 0), queue=0, object="till-9")
    found, _, _ = steps(of)
    assert sorted(item.subject for item in found) == ["a, till-0", "a, till-1", "a, till-2"]


def test_rules_are_replaced_without_a_restart(shop: Shop) -> None:
    stream = TaskCorrelationStream(
        TASKS, options(shop, QUEUE.format("one", 5) + QUEUE.format("two", 5), late=0), ignore
    )
    shop.put((0, 0), (100, 0), queue=6, name="one")
    first = stream.step()
    assert first is not None
    assert len(first.alerts) == 2
    stream.replace_rules(parse_rules(QUEUE.format("two", 5) + QUEUE.format("one", 3) + QUEUE.format("three", 3)))
    second = stream.step()
    assert second is not None
    assert [(item.rule, item.change, item.reason) for item in second.alerts] == [
        ("one", "cleared", "the rule was changed or removed")
    ]
    assert stream.step() is None
    with pytest.raises(RuleError, match="the class has no 'quue'"):
        stream.replace_rules(parse_rules(QUEUE.format("two", 5).replace("queue", "quue")))
    shop.put((200, 0), queue=4, name="one")
    third = stream.step()
    stream.close()
    assert third is not None
    assert sorted((item.rule, item.change) for item in third.alerts) == [
        ("one", "raised"), ("three", "raised"), ("two", "cleared")
    ]  # fmt: skip


def test_what_is_expected_and_never_came_is_missing(shop: Shop) -> None:
    text = '[named]\nkind = "absence"\nof = "heartbeats"\nexpect = ["a", "b", "missing"]\nfor = "30s"\n'
    of = options(shop, text, late=0)
    shop.beat(0, 20, 40)
    shop.beat(20, 41, agent="b")
    found, _, _ = steps(of)
    shop.agent(60, "removed", reason="goodbye", agent="b")
    shop.beat(70, agent="missing")
    shop.beat(71)
    more, _, _ = steps(of)
    assert [(item.subject, item.change, item.at_ns // SECOND) for item in found] == [("missing", "raised", 30)]
    assert ("missing", "cleared", 70) in [(item.subject, item.change, item.at_ns // SECOND) for item in more]
    assert in_order(found + more) == in_process(attrs.evolve(of, out=f"{of.out}-here"))


def test_one_process_at_a_time_follows_into_a_folder(shop: Shop) -> None:
    of = options(shop, QUEUE.format("busy", 5), late=0)
    with pytest.raises(LakeError, match="another process follows"), closing(TaskCorrelationStream(TASKS, of, ignore)):
        TaskCorrelationStream(TASKS, of, ignore)


def change_places(root: Path, seed: int, rounds: int = 8) -> None:
    """Streams in the process and by tasks, in any order, follow into one folder, while a lake grows at random."""
    chance = random.Random(seed)
    in_process = [number % 2 == 0 for number in range(rounds)]
    chance.shuffle(in_process)
    shop = UnsteadyShop(root, chance)
    of = options(shop)
    at = 1000.0
    found: list[AlertRow] = []
    for here in in_process:
        for _ in range(chance.randrange(10, 40)):
            at += chance.choice([1, 1, 2, 5, 20])
            act(shop, at)
        stream = CorrelationStream(of, ignore) if here else TaskCorrelationStream(TASKS, of, ignore)
        with closing(stream):
            while (step := stream.step()) is not None:
                found += step.alerts
                assert step.counts.too_late == 0
    assert len(found) > 3
    assert in_order(found) == batch(of, until=stream.progress.begin / SECOND).alerts
    assert list(AlertTable(of.out, "stream").in_order()) == in_order(found)


@pytest.mark.slow
def test_a_stream_continues_with_the_state_of_another_place(tmp_path: Path) -> None:
    change_places(tmp_path / "lake", random.randrange(10_000), rounds=5)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(40))
def test_many_changes_of_place(tmp_path: Path, seed: int) -> None:
    change_places(tmp_path / "lake", seed)


def test_signals_that_wait_are_taken_over_in_both_directions(shop: Shop) -> None:
    of = options(shop, QUEUE.format("busy", 5), late=10 * SECOND)
    shop.put((100, 0), queue=1)
    shop.put((105, 0), queue=6)
    places: list[Callable[[], CorrelationStream | TaskCorrelationStream]] = [
        lambda: CorrelationStream(of, ignore),
        lambda: TaskCorrelationStream(TASKS, of, ignore, buckets=2),
        lambda: CorrelationStream(of, ignore),
        lambda: CorrelationStream(of, ignore),
        lambda: TaskCorrelationStream(TASKS, of, ignore, buckets=3),
    ]
    for make in places[:-1]:
        with closing(make()) as stream:
            while (step := stream.step()) is not None:
                assert step.alerts == []
    shop.put((140, 0), object="other", queue=1)
    with closing(places[-1]()) as stream:
        step = stream.step()
    assert step is not None
    assert [(item.change, item.at_ns // SECOND) for item in step.alerts] == [("raised", 105)]


@pytest.mark.parametrize("killed", ["before", "after"])
def test_a_kill_while_a_state_is_taken_over_loses_and_repeats_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    of = options(shop, QUEUE.format("busy", 5), late=0)
    shop.put((100, 0), queue=6)
    assert len(in_process(of)) == 1
    whole = StreamState.clear

    def clear(self: StreamState) -> None:
        if killed == "after":
            whole(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StreamState, "clear", clear)
        with pytest.raises(KeyboardInterrupt):
            TaskCorrelationStream(TASKS, of, ignore)
    shop.put((110, 0), queue=1)
    found, _, _ = steps(of)
    assert [item.change for item in found] == ["cleared"]
    assert [item.change for item in AlertTable(of.out, "stream").in_order()] == ["raised", "cleared"]


FOLLOWING = """
[r]
kind = "threshold"
class = "till"
value = "queue - nextRef.queue"
follow = {nextRef = "org.example.shop:till"}
above = 3
message = "{name} has {value} more than {nextRef.name}"
"""


def test_followed_objects_are_read_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_input, "_FEW", 2)
    read: list[int] = []

    def follow(self: SignalReader, rows: Mapping[str, Any]) -> None:
        read.append(sum(own.count_rows() for own in rows.values()))
        follow_rows(self, rows)

    follow_rows = SignalReader.follow
    of = options(shop, FOLLOWING, late=0)
    here = attrs.evolve(of, out=f"{of.out}-here")
    found: list[AlertRow] = []
    for at in range(0, 80, 20):
        shop.put((at, 0), object="two", queue=1 + at % 40, name="second")
        shop.put((at + 10, 0), object="one", queue=6, name="first", nextRef="two")
        with monkeypatch.context() as patch:
            patch.setattr(SignalReader, "follow", follow)
            more, _, _ = steps(of)
        assert in_order(more) == in_process(here)
        found += more
    assert [item.change for item in in_order(found)] == ["raised", "cleared"] * 2
    assert found[0].message == "first has 5.0 more than second"
    # Otherwise all eight rows would be read by the last step.
    assert max(read) < 8
    assert len(list((Path(of.out) / "_state" / "followed").iterdir())) == 1
