"""The job `rollup` as a stream in this process: the same rows as a batch, whatever the clocks, the order, or kills."""

from __future__ import annotations

import random
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest
from pipeline.kills import kill_family
from pipeline.lakes import HERE, SECOND, Shop
from pipeline.quick import WAIT_LIMIT
from pipeline.shop import TILL
from support.processes import command, running
from support.waiting import wait_until

from qmf.pipeline.cli import main
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.waiting import WAITING, Note, followed_tables
from qmf.pipeline.rollup.tables import RollupOptions, rollup_table

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")
pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.stream import RollupStream, StreamCounts

pytestmark = pytest.mark.slow

Row = dict[str, Any]

OTHER = attrs.evolve(ClassVersion.from_schema(TILL), name="other", hash="00000000-0000-0000-0000-000000000077")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


@pytest.fixture
def options(shop: Shop) -> RollupOptions:
    return RollupOptions(lake=shop.root, out=f"{shop.root}/_tables/rollup", sizes=("1m",), late="60s")


def ignore(_text: str) -> None:
    """Ignore a line of output."""


def stream(options: RollupOptions, *, last: bool = False) -> StreamCounts:
    """A stream of its own that reads all that is in the lake."""
    with closing(RollupStream(options)) as made:
        made.step(last=last)
        return made.counts


def table(options: RollupOptions, by: str) -> list[Row]:
    """All rows, in order."""
    found = rollup_table(options, by)
    if found.version() is None:
        return []
    rows: list[Row] = found.delta().to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: (row["size"], row["class"], row["window_start"], row["object"], row["member"]))


def short(rows: list[Row]) -> list[tuple[Any, ...]]:
    """Start of the window in seconds, object, growth, restarts, samples, of the member `sales`."""
    return [
        (int(row["window_start"].timestamp()), row["object"], int(row["delta_exact"]), row["resets"], row["samples"])
        for row in rows
        if row["member"] == "sales"
    ]


def batch(options: RollupOptions) -> list[Row]:
    roll_up_lake(HERE, options, ignore)
    return table(options, "batch")


def test_a_stream_waits_for_late_data_and_counts_what_is_too_late(shop: Shop, options: RollupOptions) -> None:
    shop.put((1, 10), (70, 20))
    assert stream(options).rows == 0
    assert rollup_table(options, "stream").version() is None  # nothing to write, no commit
    shop.put((30, 14))  # late, but within a minute of the latest
    shop.put((200, 30))
    assert stream(options).late == 0
    expected = [(0, "one", 4, 0, 2), (60, "one", 6, 0, 1)]
    assert short(table(options, "stream")) == expected
    shop.put((50, 16), (400, 40))
    assert stream(options).late == 1
    expected.append((180, "one", 10, 0, 1))
    assert short(table(options, "stream")) == expected
    assert stream(options).rows == 0
    assert short(batch(options))[0] == (0, "one", 6, 0, 3)


def test_a_clock_far_ahead_does_not_make_other_rows_late(shop: Shop, options: RollupOptions) -> None:
    shop.put((10, 1), (20, 2))
    shop.put((10**9, 5), object="ahead", agent="b", received=20)
    assert stream(options).ahead == 1
    shop.put((30, 3), (300, 4))
    assert stream(options).late == 0
    assert short(table(options, "stream")) == [(0, "one", 2, 0, 3)]


def test_restarts_and_resets_are_those_of_a_batch(shop: Shop, options: RollupOptions) -> None:
    shop.put((1, 100), (2, 110))
    shop.put((3, 115), (64, 120), epoch=2)
    shop.put((65, 3), (66, 8), epoch=2)
    shop.put((1000, 0), epoch=2)
    stream(options)
    expected = [(0, "one", 10 + 115, 1, 3), (60, "one", 5 + 3 + 5, 1, 3)]
    assert short(table(options, "stream")) == expected == short(batch(options))[:2]


def test_the_last_windows_are_written_at_the_end_and_replaced_later(shop: Shop, options: RollupOptions) -> None:
    two = attrs.evolve(options, sizes=("1m", "1h"))
    shop.put((1, 10), (70, 20), (130, 30))
    stream(two, last=True)
    assert table(two, "stream") == batch(two)
    shop.put((135, 40), (190, 50))
    shop.put((131, 1), table=OTHER)
    assert stream(two, last=True).late == 0
    assert table(two, "stream") == batch(two)
    shop.put((7300, 60))
    assert stream(two).late == 0
    rows = batch(two)
    complete = [row for row in rows if row["last_ns"] < 7300 * 10**9]
    assert table(two, "stream") == complete


def test_classes_that_appear_later_join(shop: Shop, options: RollupOptions) -> None:
    with closing(RollupStream(options)) as made:
        assert made.step() == 0  # no lake yet, or nothing in it
        shop.put((1, 10), (200, 20))
        assert made.step() == 1
        shop.put((5, 1), (250, 2), table=OTHER)
        assert made.step() == 1
        assert made.step() == 0
        assert made.counts.commits == 2
    assert [(row["class"], row["samples"]) for row in table(options, "stream")] == [("other", 1), ("till", 1)]


def test_only_the_chosen_classes(shop: Shop, options: RollupOptions) -> None:
    shop.put((1, 10), (200, 20))
    shop.put((1, 10), (200, 20), table=OTHER)
    assert stream(attrs.evolve(options, classes=("TILL",))).rows == 1
    assert stream(attrs.evolve(options, classes=("org.example.shop:other",))).rows == 1
    assert stream(options).rows == 0


def test_whatever_comes_when_and_whenever_it_is_started_again_the_rows_are_those_of_a_batch(
    shop: Shop, options: RollupOptions
) -> None:
    chance = random.Random(random.randrange(10**6))  # pytest-randomly prints the seed
    options = attrs.evolve(options, sizes=("10s", "15m"), late="30s")
    at = 0.0
    begun: dict[tuple[str, ClassVersion | None], float] = {}
    made = RollupStream(options)
    try:
        for _ in range(8):
            for _ in range(chance.randint(1, 3)):
                name, kind = chance.choice([("one", None), ("two", None), ("one", OTHER)])
                at += chance.choice([1, 10, 40, 200])
                # Samples of one object come in the order of their times: others would be those of a clock set back.
                start = max(at - 25, begun.get((name, kind), 0.0))
                times = sorted({round(chance.uniform(start, at), 3) for _ in range(chance.randint(1, 4))})
                begun[name, kind] = at
                samples = ((time, chance.randrange(99)) for time in times)
                shop.put(*samples, object=name, table=kind, queue=chance.randrange(9), queueLow=1, queueHigh=9)
            if chance.random() < 0.3:
                made.close()
                made = RollupStream(options)
            made.step(last=chance.random() < 0.1)
            if chance.random() < 0.3:
                made.close()
                made = RollupStream(options)
        made.close()
        made = RollupStream(options)
        made.step(last=True)
        assert made.counts.late == 0
    finally:
        made.close()
    streamed, expected = table(options, "stream"), batch(options)
    assert len(streamed) == len(expected)
    for ours, theirs in zip(streamed, expected, strict=True):
        for name, value in theirs.items():
            assert ours[name] == (pytest.approx(value) if isinstance(value, float) else value), (name, ours, theirs)


def test_killed_the_command_goes_on_without_loss_or_repetition(shop: Shop, options: RollupOptions) -> None:
    check_kills(shop, options, [])


@pytest.mark.slow
@pytest.mark.soak
def test_killed_on_a_cluster_by_relative_paths_the_command_goes_on(
    shop: Shop, options: RollupOptions, local_cluster: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the executors have other working directories
    check_kills(shop, attrs.evolve(options, lake=Path(options.lake).name), local_cluster)


def check_kills(shop: Shop, options: RollupOptions, place: list[str]) -> None:
    """Kill the command at random points, between which files of the lake are combined; compare with a batch."""
    chance = random.Random(random.randrange(1000))  # pytest-randomly prints the seed
    options = attrs.evolve(options, sizes=("10s",), late="0s")
    words = ("rollup", "--stream", "--late", "0s", "--every", "10ms", "--lake", options.lake, "--size", "10s")
    total, at = 0, 0
    for _kill in range(2):
        with running(command("qmf-pipeline"), *words, *place) as process:
            for _ in range(chance.randint(3, 6)):
                samples = []
                for _ in range(20):
                    at, total = at + 1, total + chance.randrange(100)
                    samples.append((at, total))
                shop.put(*samples)
                reached = (at - 20) // 10 * 10
                wait_until(lambda: _last(options) >= reached, "rows of an earlier window", WAIT_LIMIT)  # noqa: B023
            kill_family(process)
        for path in shop.lake.paths():
            shop.lake.table(path).delta().optimize.compact()
    shop.put((at + 1000, total))
    stream(options)
    streamed, expected = table(options, "stream"), batch(options)
    assert short(streamed) == short(expected)[:-1]
    assert sum(row["samples"] for row in streamed if row["member"] == "sales") == at


def _last(options: RollupOptions) -> int:
    """The end of the last window in the table of the stream, in seconds."""
    rows = table(options, "stream")
    return max((int(row["window_end"].timestamp()) for row in rows), default=0)


def test_the_command(shop: Shop, options: RollupOptions, capsys: pytest.CaptureFixture[str]) -> None:
    shop.put((1, 10), (70, 20))
    assert main(["rollup", "--lake", shop.root, "--stream", "--once", "--late", "1m"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"Following {shop.root}", "Wrote 2 rows"]
    assert lines[2].startswith("rollup by 1m: 2 samples read, 2 rows written in 1 commit,")
    assert short(table(options, "stream")) == [(0, "one", 0, 0, 1), (60, "one", 10, 0, 1)]


def test_windows_wait_for_rows_that_a_recorder_holds_back(shop: Shop, options: RollupOptions) -> None:
    quiet, path = attrs.evolve(OTHER, name="quiet"), "objects/org.example.shop/quiet"
    note = Note(DeltaLake(shop.root), WAITING, "recorder")
    shop.put((1, 10), table=quiet)
    shop.put((1, 10), (70, 20), (400, 30))
    note.write({"time_ns": time.time_ns(), "tables": {path: 61 * SECOND}})
    with closing(RollupStream(options)) as made:
        made.step()
        assert [row[0] for row in short(table(options, "stream"))] == []
        made.step()
        assert followed_tables(shop.lake, time.time_ns()) >= {path}
        note.write({"time_ns": time.time_ns(), "tables": {}})
        shop.put((61, 12), (90, 15), table=quiet)
        made.step()
        assert made.counts.late == 0
    rows = table(options, "stream")
    assert [(row["class"], row["samples"]) for row in rows if row["member"] == "sales"] == [
        ("quiet", 1),
        ("quiet", 2),
        ("till", 1),
        ("till", 1),
    ]
