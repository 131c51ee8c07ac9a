"""The content of reports: it is that of the lake, which may be empty."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from pipeline.lakes import Shop
from pipeline.local import local_frame
from pipeline.shop import TILL

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")
pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'qmf[pipeline]'")

from pyspark.sql import types as T  # noqa: E402

from qmf.pipeline import PipelineError  # noqa: E402
from qmf.pipeline.report import tables  # noqa: E402
from qmf.pipeline.report.collect import ReportOptions, collect, newest  # noqa: E402
from qmf.pipeline.report.page import html  # noqa: E402
from qmf.pipeline.report.time_range import NS, TimeRange, parse_time_range  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

TILLS = ClassVersion.from_schema(TILL)
EVIL = "<script>"


def fill(shop: Shop) -> None:
    """Ten minutes: the sales of one till grow, those of the other don't; one is closed, the agent says goodbye."""
    shop.add_schema(TILLS)
    shop.agent(1000, "added")
    for n in range(20):
        at = 1000.0 + 30 * n
        for name, sales in ((EVIL, n * n * 10), ("steady", n * 10)):
            values: dict[str, Any] = {"name": name, "limit": 10 if n < 10 else 20, "sales": sales}
            own = (name, 1, 1000 * 10**9, 1570 * 10**9 if (n, name) == (19, "steady") else 0, True, True)
            cells = tuple(values.get(column.name) for column in TILLS.columns)
            shop.add(RowKind.OBJECTS, at, (*own, *cells), table=TILLS)
        shop.beat(at)
    shop.events((1100, {"till": EVIL, "amount": 7}), (1200, {"till": "steady", "amount": 8}))
    shop.agent(1600, "removed", reason="goodbye")
    shop.beat(1700, agent="other")


def options(shop: Shop, **more: Any) -> ReportOptions:
    return ReportOptions(lake=shop.root, alerts=f"{shop.root}/_tables/correlate", title="Shop", made_ns=0, **more)


def test_a_report_of_a_lake(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    fill(shop)
    assert newest(spark, shop.root) == 1700 * NS
    about = parse_time_range(None, None, "15m", newest(spark, shop.root))
    lines: list[str] = []
    report = collect(spark, options(shop), about, lines.append)
    assert (report.samples, report.objects, report.alerts) == (40, 2, None)
    assert sum(count for _, _, count in report.events) == 2
    agents = [(line.agent, round(line.up), round(line.down), line.restarts) for line in report.agents]
    assert agents == [("a", 600, 100, 0), ("other", 0, 0, 0)]
    first = report.movers[0]
    assert (first.series.object, first.series.member) == (EVIL, "sales")
    assert first.after > 2 * first.before > 0
    (chart,) = report.charts
    assert (chart.title, [series.object for series in chart.series]) == ("till sales", [EVIL, "steady"])
    # What it grew by from sample to sample, though each window has but one.
    assert {round(value, 3) for _, value in chart.series[1].points} == {round(10 / 30, 3)}
    assert [(line.name, line.objects, line.ended) for line in report.classes] == [
        ("till", 2, (("agent ended", 1), ("destroyed", 1)))
    ]
    assert [(row.property, row.previous, row.value) for row in report.changes] == [("limit", "10", "20")] * 2
    page = html(report)
    assert EVIL not in page
    assert "&lt;script&gt;" in page
    assert lines

    nothing = collect(spark, options(shop), parse_time_range("2040-01-01", "2040-01-02", None, 0), lines.append)
    assert nothing.is_empty
    assert "Nothing was recorded in this time." in html(nothing)


def test_alerts_are_those_open_in_the_time_range(spark: SparkSession) -> None:
    fields = {
        **dict.fromkeys(("alert_id", "change", "rule", "subject", "message", "reason"), T.StringType()),
        "severity": T.ShortType(),
        **dict.fromkeys(("began_ns", "at_ns"), T.LongType()),
    }
    schema = T.StructType([T.StructField(name, kind) for name, kind in fields.items()])

    def row(name: str, change: str, began: int, at: int, severity: int = 3) -> tuple[Any, ...]:
        return (name, change, "rule", "s", "m", "over" if change == "cleared" else "", severity, began * NS, at * NS)

    batch = local_frame(
        spark,
        [
            row("before", "raised", 10, 20), row("before", "cleared", 10, 90),
            row("through", "raised", 10, 20), row("through", "cleared", 10, 300),
            row("open", "raised", 150, 160),
            row("after", "raised", 250, 260),
        ],
        schema,
    )  # fmt: skip
    stream = local_frame(spark, [row("open", "raised", 150, 160)], schema)
    found = tables.alerts([batch, stream], TimeRange(100 * NS, 200 * NS))
    assert found is not None
    assert [(item.alert_id, item.raised_ns, item.cleared_ns, item.reason) for item in found] == [
        ("open", 160 * NS, None, ""),
        ("through", 20 * NS, 300 * NS, "over"),
    ]
    assert tables.alerts([], TimeRange(0, 1)) is None


def test_no_lake(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="no lake, or nothing in it yet"):
        newest(spark, str(tmp_path / "nothing"))


def test_classes_of_one_name_in_two_packages_are_distinct(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    shop.put((1000, 1), (1030, 2))
    shop.put((1000, 1), table=ClassVersion.from_schema(attrs.evolve(TILL, package="org.example.market")))
    about = parse_time_range("1970-01-01T00:16", None, "15m", 0)
    report = collect(spark, options(shop), about, lambda _: None)
    assert (report.samples, report.objects) == (3, 2)
