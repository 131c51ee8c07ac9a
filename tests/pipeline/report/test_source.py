"""Reports take from the tables of other jobs what these have, compute the rest, and are the same as without them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline.lakes import HERE, Shop

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")
pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.stream import AuditStream
from qmf.pipeline.audit.tables import AuditOptions
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.maintenance import optimize_table
from qmf.pipeline.report.collect import ReportOptions, collect
from qmf.pipeline.report.model import Report
from qmf.pipeline.report.source import AuditedRows, StoredRollups, end_of_recording
from qmf.pipeline.report.time_range import parse_time_range
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.source import class_sources
from qmf.pipeline.rollup.tables import RollupOptions
from qmf.pipeline.runners.runner import Runner

pytestmark = pytest.mark.slow

#: Windows of a report of fifty minutes are 30 s.
START = 86_400


def ten_minutes(shop: Shop, start: int) -> None:
    """Two tills sell, one gets another limit; there is an event, which arrives twice, and heartbeats."""
    for n in range(20):
        at = start + 30 * n
        for name, sales in (("one", n * n), ("two", n)):
            shop.put((at, start + sales), object=name, name=name, limit=10 + n // 10, properties=True, commit=False)
    shop.beat(*range(start, start + 600, 30))
    shop.events((start + 100, {"till": "one", "amount": 7}), (start + 100, {"till": "one", "amount": 7}))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path / "lake")
    made.agent(START, "added")
    ten_minutes(made, START)
    return made


def do_nothing(_line: str) -> None:
    pass


def reported(shop: Shop, runner: Runner = HERE) -> tuple[Report, list[str]]:
    """A report, and what was printed; with the tables inside the lake. One without is the same."""
    about = parse_time_range(None, None, "50m", end_of_recording(runner, shop.root))
    lines: list[str] = []
    found = collect(runner, ReportOptions(lake=shop.root), about, lines.append)
    nowhere = str(Path(shop.root, "nowhere"))
    plain = collect(HERE, ReportOptions(lake=shop.root, audit=nowhere, rollups=nowhere), about, do_nothing)
    assert found == plain
    return found, lines


def roll_up(shop: Shop, *, first: str | None = None, continued: bool = False) -> None:
    out = f"{shop.root}/_tables/rollup"
    options = RollupOptions(lake=shop.root, out=out, sizes=("10s", "1h"), first=first, continued=continued)
    roll_up_lake(HERE, options, do_nothing)


def audit(shop: Shop, job: str = "audit", *, events: bool = True) -> AuditOptions:
    options = AuditOptions(lake=shop.root, out=f"{shop.root}/_tables/{job}/batch", events=events)
    audit_lake(HERE, options, do_nothing)
    return options


def test_a_report_takes_what_other_jobs_have_and_computes_the_rest(shop: Shop) -> None:
    audit(shop)
    roll_up(shop)
    found, lines = reported(shop)
    assert "as far as they are not in" in lines[0]
    assert lines[1] == "Samples rolled up; 1 of 1 days of classes were rolled up already"
    assert (found.samples, found.objects, len(found.charts), len(found.changes)) == (40, 2, 1, 2)
    assert [(name, count) for name, _, count in found.event_classes] == [("tillRobbed", 1)]
    # The events themselves are not read again.
    (table,) = (item.table for item in shop.lake.classes() if item.version.event)
    for file in shop.lake.table(table).snapshot().files:
        Path(file.url).unlink()
    about = parse_time_range(None, None, "50m", end_of_recording(HERE, shop.root))
    assert collect(HERE, ReportOptions(lake=shop.root), about, do_nothing).event_classes == found.event_classes


def test_what_came_later_is_computed(shop: Shop) -> None:
    audit(shop)
    roll_up(shop)
    ten_minutes(shop, START + 600)
    shop.put((START + 90, START + 9), object="three", name="three", properties=True)  # late
    shop.agent(START + 1250, "removed", reason="goodbye")
    found, lines = reported(shop)
    assert lines[1] == "Samples rolled up"
    assert (found.samples, found.objects) == (81, 3)
    assert sum(count for _, _, count in found.events) == 2
    assert {row.ended_by for row in found.ended} == {"agent ended"}


def test_days_that_are_rolled_up_are_taken_and_others_computed(shop: Shop) -> None:
    roll_up(shop)
    ten_minutes(shop, START + 86_400)
    lake = DeltaLake(shop.root)
    (source,) = class_sources(lake)
    for size, taken in (("10s", "10s"), ("1m", "10s"), ("6h", "1h")):
        rolled = StoredRollups.find(lake, None, size, continued=False)
        assert rolled is not None
        assert (rolled.size, set(rolled.days_of(source))) == (taken, {"1970-01-02"})
    assert StoredRollups.find(lake, None, "5s", continued=False) is None


def test_roll_ups_of_other_counters_and_of_some_days_are_no_full_ones(shop: Shop) -> None:
    def days(*, continued: bool) -> set[str]:
        lake = DeltaLake(shop.root)
        rolled = StoredRollups.find(lake, None, "1h", continued=continued)
        (source,) = class_sources(lake)
        return set() if rolled is None else set(rolled.days_of(source))

    roll_up(shop, first="1970-01-02")
    assert not days(continued=False)
    roll_up(shop)
    assert (days(continued=False), days(continued=True)) == ({"1970-01-02"}, set())
    roll_up(shop, first="1970-01-02", continued=True)
    assert not days(continued=False) | days(continued=True)
    roll_up(shop, continued=True)
    assert (days(continued=False), days(continued=True)) == (set(), {"1970-01-02"})


def test_the_audit_that_has_read_most_is_taken(shop: Shop) -> None:
    first = audit(shop, "history", events=False)
    assert first.table("events").version() is None
    lake = DeltaLake(shop.root)
    chosen = AuditedRows.find(lake, None)
    assert chosen is not None
    assert chosen.options.out == first.out
    reported(shop)  # events are those of the lake
    audit(shop)
    stream = AuditOptions(lake=shop.root, out=f"{shop.root}/_tables/audit/stream")
    ten_minutes(shop, START + 600)
    AuditStream(HERE, stream).step()
    chosen = AuditedRows.find(DeltaLake(shop.root), None)
    assert chosen is not None
    assert chosen.options.out == stream.out
    reported(shop)


def test_an_audit_is_left_alone_when_new_files_were_combined_with_those_that_it_has_read(shop: Shop) -> None:
    options = audit(shop)
    ten_minutes(shop, START + 600)
    lake = DeltaLake(shop.root)
    optimize_table(lake.table("heartbeats"))
    assert AuditedRows.find(DeltaLake(shop.root), options.out) is None
    reported(shop)
