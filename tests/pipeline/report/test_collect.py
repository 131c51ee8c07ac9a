"""The content of reports: it is that of the lake, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from pipeline.lakes import HERE, Shop
from pipeline.object_store import s3_store
from pipeline.shop import ROBBED, TILL

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")
pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline import PipelineError
from qmf.pipeline.cli import main
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.report.alerts import alert_rows
from qmf.pipeline.report.collect import ReportOptions, collect, usual_ranges
from qmf.pipeline.report.model import Report
from qmf.pipeline.report.page import html
from qmf.pipeline.report.source import end_of_recording
from qmf.pipeline.report.time_range import NS, TimeRange, parse_time_range
from qmf.schema import TYPES, Access, Argument, ClassSchema, EventSchema, Property, Severity, Statistic

pytestmark = pytest.mark.slow

TILLS = ClassVersion.from_schema(TILL)
EVIL = "<script>"
BROKER = "org.apache.qpid.broker"
QUEUE = ClassSchema(
    package=BROKER,
    name="Queue",
    properties=(Property(name="name", type=TYPES["sstr"], access=Access.RC, index=True),),
    statistics=(
        Statistic(name="msgTotalEnqueues", type=TYPES["count64"], unit="message"),
        Statistic(name="msgDepth", type=TYPES["count64"], unit="message", assign="x"),
        Statistic(name="percent", type=TYPES["float"], unit="percent"),
    ),
)
CONNECTION = ClassSchema(
    package=BROKER,
    name="Connection",
    properties=(
        Property(name="address", type=TYPES["sstr"], access=Access.RC, index=True),
        Property(name="remoteProperties", type=TYPES["map"]),
    ),
    statistics=(Statistic(name="msgsFromClient", type=TYPES["count64"], unit="message"),),
)
SUBSCRIBE = EventSchema(
    package=BROKER,
    name="subscribe",
    severity=Severity.INFORM,
    arguments=tuple(Argument(name=name, type=TYPES["sstr"]) for name in ("rhost", "user", "qName", "dest")),
)
OWN_LINK = "qmf-in-0123-abcd"


def sample(
    shop: Shop,
    schema: ClassSchema,
    at: float,
    object: str,
    values: dict[str, Any],
    *,
    delete: float = 0,
    agent: str = "a",
) -> None:
    """A row of an object that waits for a commit."""
    version = ClassVersion.from_schema(schema)
    shop.add_schema(version)
    own = (object, 1, 1000 * NS, int(delete * NS), True, True)
    cells = tuple(values.get(column.name) for column in version.columns)
    shop.add(RowKind.OBJECTS, at, (*own, *cells), table=version, agent=agent)


def fill(shop: Shop) -> None:
    """Ten minutes: the sales of one till grow, those of the other don't; one is closed, the agent says goodbye."""
    shop.agent(1000, "added")
    for n in range(20):
        at = 1000.0 + 30 * n
        for name, sales in ((EVIL, n * n * 10), ("steady", n * 10)):
            values: dict[str, Any] = {"name": name, "limit": 10 if n < 10 else 20, "sales": sales}
            sample(shop, TILL, at, name, values, delete=1570 if (n, name) == (19, "steady") else 0)
        shop.beat(at, commit=n % 5 == 4)
    shop.events((1100, {"till": EVIL, "amount": 7}), (1200, {"till": "steady", "amount": 8}))
    # A repeated event is one event.
    shop.events((1200, {"till": "steady", "amount": 8}))
    shop.agent(1600, "removed", reason="goodbye")
    shop.beat(1700, agent="other")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """The lake of `fill`, which no test changes."""
    shop = Shop(tmp_path_factory.mktemp("filled") / "lake")
    fill(shop)
    return shop


def reported(shop: Shop, *words: str | None, **more: Any) -> Report:
    first, last, length = (*words, None, None, None)[:3]
    about = parse_time_range(first, last, length, end_of_recording(HERE, shop.root))
    return collect(HERE, ReportOptions(lake=shop.root, title="Shop", **more), about, lambda _line: None)


def test_a_report_of_a_lake(filled: Shop) -> None:
    assert end_of_recording(HERE, filled.root) == 1700 * NS
    report = reported(filled, None, None, "15m")
    assert (report.samples, report.objects, report.alerts) == (40, 2, None)
    assert sum(count for _, _, count in report.events) == 2
    assert report.event_classes == (("tillRobbed", 1, 2),)
    agents = [(line.agent, round(line.up), round(line.down), line.restarts) for line in report.agents]
    assert agents == [("a", 600, 100, 0), ("other", 0, 0, 0)]
    assert [(line.state, line.known_until_ns // NS) for line in report.agents] == [("down", 1700), ("up", 1700)]
    # The page begins with the recording, not when somebody asked.
    assert (report.time_range.first_ns, report.time_range.last_ns) == (1000 * NS, 1700 * NS + 1)
    assert report.asked is not None
    assert report.asked.first_ns < report.time_range.first_ns
    first = report.movers[0]
    assert (first.series.object, first.series.member) == (EVIL, "sales")
    assert first.after > 2 * first.before > 0
    (chart,) = report.charts
    assert (chart.title, [series.label for series in chart.series]) == ("till sales", [EVIL, "steady"])
    # What it grew by from sample to sample, in each window between, and nothing after its end.
    assert {round(value, 3) for _, value in chart.series[1].points} == {round(10 / 30, 3)}
    assert max(t for t, _ in chart.series[1].points) == 1570
    assert [(line.name, line.objects, line.ended) for line in report.classes] == [
        ("till", 2, (("agent ended", 1), ("destroyed", 1)))
    ]
    assert [(row.object, row.ended_by) for row in report.ended] == [(EVIL, "agent ended"), ("steady", "destroyed")]
    assert [(row.property, row.previous, row.value) for row in report.changes] == [("limit", "10", "20")] * 2
    page = html(report)
    assert EVIL not in page
    assert "&lt;script&gt;" in page


def test_gauges_are_plotted_with_their_values_and_counters_with_their_rates(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    for agent in ("qmf:host:x", "qmf:host:y"):
        shop.agent(1000, "added", agent=agent)
        for n in range(30):
            values = {"msgTotalEnqueues": n * 100, "msgDepth": 5 + n % 3, "percent": 40.0 + (agent == "qmf:host:y")}
            # The last ones publish nothing, since nothing changes.
            if n < 20:
                sample(shop, QUEUE, 1000 + 10 * n, f"{BROKER}:queue:orders", values, agent=agent)
            shop.beat(1000 + 10.0 * n, agent=agent, commit=n % 10 == 9)
    report = reported(shop)
    charts = {chart.title: chart for chart in report.charts}
    assert list(charts) == ["queue msgDepth", "queue percent", "queue msgTotalEnqueues"]
    assert [chart.is_rate for chart in charts.values()] == [False, False, True]
    percent = charts["queue percent"]
    # The same object of two agents: the agents tell them apart.
    assert [series.label for series in percent.series] == ["y", "x"]
    assert {round(value, 6) for _, value in percent.series[1].points} == {40}
    # A gauge holds until its agent is known for the last time.
    assert [t for t, _ in percent.series[1].points] == list(range(1000, 1290, 10))
    # Only counts that can fall are no rates.
    assert {round(value) for _, value in charts["queue msgDepth"].series[0].points} <= {5, 6, 7}
    rates = charts["queue msgTotalEnqueues"].series[0].points
    assert [value for t, value in rates if t <= 1190] == [pytest.approx(10)] * 20
    assert [value for t, value in rates if t > 1190] == [0] * 9


def test_what_says_nothing_is_not_plotted(tmp_path: Path) -> None:
    schema = ClassSchema(
        package=BROKER,
        name="Broker",
        statistics=(
            # A duration, though it has no unit.
            Statistic(name="uptime", type=TYPES["deltaTime"]),
            Statistic(name="delay", type=TYPES["deltaTime"]),
            Statistic(name="received", type=TYPES["count64"]),
            Statistic(name="routed", type=TYPES["count64"]),
        ),
    )
    shop = Shop(tmp_path / "lake")
    shop.agent(1000, "added")
    for n in range(30):
        at = 1000 + 10 * n
        values = {"uptime": n * 10**10, "delay": 10**9 + n % 3 * 10**6, "received": n * 7, "routed": n * 7}
        sample(shop, schema, at, "one", values)
        # It lived for one window only, so it is not the largest of all.
        if n == 3:
            sample(shop, schema, at, "short", {"delay": 10**10})
        shop.beat(at, commit=False)
    shop.commit()
    charts = reported(shop).charts
    # What was received and what was routed is one plot; how long something has run is none.
    assert [(chart.title, chart.unit) for chart in charts] == [
        ("broker delay", "nanosecond"),
        ("broker received", None),
    ]
    assert [series.object for series in charts[0].series] == ["one", "short"]


def test_a_lake_in_an_object_store(tmp_path: Path) -> None:
    pytest.importorskip("moto", reason="moto is not installed")
    with s3_store() as store:
        shop = Shop(f"{store.url}/lake", options=store.options)
        fill(shop)
        words = [word for key, value in store.options.items() for word in ("--storage", f"{key}={value}")]
        page = tmp_path / "page.html"
        assert main(["report", "--lake", shop.root, "--for", "15m", "--output", str(page), *words]) == 0
    assert "till sales" in page.read_text(encoding="utf-8")


def test_own_objects_and_events_are_left_out_by_default(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    shop.agent(1000, "added")
    own = json.dumps({"qmf.management": True}, separators=(",", ":"))
    for n in range(5):
        at = 1000 + 10 * n
        for name in ("orders", OWN_LINK, f"x_{OWN_LINK}"):
            sample(shop, QUEUE, at, f"{BROKER}:queue:{name}", {"name": name, "msgTotalEnqueues": n})
        for name, properties in (("c1", own), ("c2", "{}")):
            values = {"address": name, "remoteProperties": properties, "msgsFromClient": n}
            sample(shop, CONNECTION, at, f"{BROKER}:connection:{name}", values)
        shop.beat(at)
    for queue in (OWN_LINK, "orders"):
        shop.events((1010, {"qName": queue, "dest": "d", "user": "u"}), table=ClassVersion.from_schema(SUBSCRIBE))

    def names(report: Report) -> set[str]:
        return {series.object.rpartition(":")[2] for chart in report.charts for series in chart.series}

    report = reported(shop)
    assert names(report) == {"orders", "c2"}
    assert report.objects == 2
    assert [(call.operation, call.target) for call in report.calls] == [("subscribe", "orders")]
    everything = reported(shop, own=True)
    assert names(everything) == {"orders", OWN_LINK, f"x_{OWN_LINK}", "c1", "c2"}
    assert everything.objects == 5
    assert len(everything.calls) == 2


def test_two_ranges_are_compared(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    shop.agent(1000, "added")
    for n in range(120):
        at = 1000 + 10 * n
        sample(shop, QUEUE, at, f"{BROKER}:queue:q", {"percent": 20.0 if n < 60 else 50.0, "msgTotalEnqueues": n * 20})
        shop.beat(at, commit=n % 20 == 19)
    shop.events((1100, {"till": "t", "amount": 7}))
    report = reported(shop, "1970-01-01T00:26:40", "1970-01-01T00:36:40", compare=TimeRange(1000 * NS, 1600 * NS))
    assert report.comparison is not None
    numbers = {number.name: (number.before, number.after) for number in report.comparison.numbers}
    wanted = {"samples": (60, 60), "events": (1, 0), "availability": (100, 100), "alerts": (None, None)}
    assert {name: numbers[name] for name in wanted} == wanted
    (series,) = [item for item in report.comparison.series if item.series.member == "percent"]
    assert (round(series.before or 0), round(series.after or 0), round(series.change or 0, 3)) == (20, 50, 0.6)
    assert "Compared with another time" in html(report)


def test_what_was_not_recorded_is_cut_off_or_marked(tmp_path: Path) -> None:
    early = Shop(tmp_path / "lake", run="00000000000000000001_1")
    early.agent(5000, "added")
    for n in range(60):
        sample(early, QUEUE, 5000 + 10 * n, "q", {"percent": n % 5 + 1.0})
        early.beat(5000 + 10 * n, commit=n % 20 == 19)
    late = Shop(tmp_path / "lake", run="00000000000000000002_1")
    late.agent(7000, "added")
    for n in range(60):
        sample(late, QUEUE, 7000 + 10 * n, "q", {"percent": n % 5 + 1.0})
        late.beat(7000 + 10 * n, commit=n % 20 == 19)
    report = reported(late, "1970-01-01", "1970-01-01")
    assert (report.time_range.first_ns, report.time_range.last_ns // NS) == (5000 * NS, 7591)
    assert [(first // NS, last // NS) for first, last in report.unrecorded] == [(5590, 7000)]
    points = report.charts[0].series[0].points
    assert not [t for t, _ in points if 5600 < t < 6990]
    assert "nothing was recorded from 1970-01-01 01:33:10 to 1970-01-01 01:56:40" in html(report)


def test_anomalies_are_those_of_the_hour_of_the_day(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    day, begin = 86_400, 20 * 86_400 + 12 * 3600
    shop.agent(begin - 7 * day, "added")
    for back in range(7, -1, -1):
        for n in range(120):
            at = begin - back * day + 30 * n
            value = 90.0 if back == 0 and 60 <= n < 70 else 30.0 + n % 3
            sample(shop, QUEUE, at, "q", {"percent": value})
        shop.beat(begin - back * day, begin - back * day + 3600)
    report = reported(shop, None, None, "1h")
    assert report.anomaly_days == 8
    (found,) = report.anomalies or ()
    assert (found.series.member, found.days) == ("percent", 8)
    assert abs(found.start - begin - 1800) <= 60
    assert abs(found.end - begin - 2100) <= 60
    assert (round(found.value), round(found.usual)) == (90, 31)
    alone = reported(shop, None, None, "1h", usual_days=0)
    assert alone.anomaly_days == 0
    assert "too few days" in html(alone)


def test_the_days_that_say_what_is_usual() -> None:
    hour, day = 3600 * NS, 86_400 * NS
    inside = TimeRange(10 * day + hour + 5, 10 * day + 2 * hour - 7)
    assert usual_ranges(inside, 2) == (
        TimeRange(8 * day + hour, 8 * day + 2 * hour),
        TimeRange(9 * day + hour, 9 * day + 2 * hour),
    )
    assert usual_ranges(TimeRange(10 * day, 13 * day), 7) == (TimeRange(6 * day, 10 * day),)
    assert usual_ranges(TimeRange(10 * day, 20 * day), 7) == ()
    assert usual_ranges(inside, 0) == ()


def test_alerts_are_those_open_in_the_time_range() -> None:
    def row(name: str, change: str, began: int, at: int) -> dict[str, Any]:
        return {
            **{"alert_id": name, "change": change, "rule": "rule", "severity": 3, "subject": "s", "message": change},
            **{"reason": "over" if change == "cleared" else "", "began_ns": began * NS, "at_ns": at * NS},
        }

    rows = [
        *(row("before", "raised", 10, 20), row("before", "cleared", 10, 90)),
        *(row("through", "raised", 10, 20), row("through", "changed", 10, 30), row("through", "cleared", 10, 300)),
        *(row("open", "raised", 150, 160), row("open", "raised", 150, 160)),
        row("after", "raised", 250, 260),
    ]
    found = alert_rows(rows, TimeRange(100 * NS, 200 * NS))
    assert [(item.alert_id, item.raised_ns, item.cleared_ns, item.reason, item.message) for item in found] == [
        ("open", 160 * NS, None, "", "raised"),
        ("through", 20 * NS, 300 * NS, "over", "changed"),
    ]


def test_classes_of_one_name_in_two_packages_are_distinct(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    shop.put((1000, 1), (1030, 2))
    shop.put((1000, 1), table=ClassVersion.from_schema(attrs.evolve(TILL, package="org.example.market")))
    shop.beat(1000, 1030)
    report = reported(shop)
    assert (report.samples, report.objects) == (3, 2)


def test_events_without_a_schema_are_counted(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    shop.beat(1000, 1100)
    shop.add(RowKind.UNTYPED, 1050, (True, "p", "odd", "", 3, '{"a": 1}'))
    shop.events((1060, {"till": "t"}), table=ClassVersion.from_schema(ROBBED))
    assert reported(shop).event_classes == (("odd", 3, 1), ("tillRobbed", 1, 1))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "not a lake: it has no table of schemas"),
        (("--from", "soon"), "'soon' is not a time such as 2030-01-31 or 2030-01-31T12:00"),
        (("--compare", "later"), "'later' is not a range such as"),
    ],
)
def test_a_folder_that_is_no_lake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert main(["report", "--lake", str(tmp_path), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("qmf-pipeline: ")
    assert said in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--class", "nothing"), "the lake has no class 'nothing'"),
        (("--from", "2040-01-01", "--to", "2040-01-02"), "it has 1970-01-01 00:16:40 to 1970-01-01 00:28:20 UTC"),
        (("--for", "15m", "--compare", "2040-01-01..2040-01-02"), "nothing was recorded from 2040-01-01 00:00:00"),
        (("--from", "1970-01-01T00:20", "--to", "1970-01-01T00:18"), "the time range is empty"),
        (("--for", "15m", "--output", "/dev/null/page"), "/dev/null/page: Not a directory"),
    ],
)
def test_a_mistake_is_one_line(
    filled: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert main(["report", "--lake", filled.root, "--output", str(tmp_path / "page.html"), *words]) == 2
    *place, line = capsys.readouterr().err.splitlines()
    # Options are checked before.
    assert place in ([], ["qmf-pipeline: report runs in this process"])
    assert line.startswith("qmf-pipeline: ")
    assert said in line
    assert not (tmp_path / "page.html").exists()


def test_an_empty_lake_has_no_report(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    with pytest.raises(PipelineError, match="no lake, or nothing in it yet"):
        reported(shop)


def test_the_command_writes_the_page(filled: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["report", "--lake", filled.root, "--for", "15m", "--output", str(page)]) == 0
    printed = capsys.readouterr()
    assert printed.err == "qmf-pipeline: report runs in this process\n"
    assert printed.out.splitlines()[-1] == f"Wrote {page}, {page.stat().st_size:,} bytes"
    assert main(["report", "--lake", filled.root, "--for", "15m", "--output", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!DOCTYPE html>")


def test_an_agent_is_known_as_long_as_its_interval_of_heartbeats_is_open(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    for agent in "ab":
        shop.agent(1000, "added", agent=agent)
        shop.add(RowKind.HEARTBEATS, 1000, (10.0, 1000 * NS, 1, 0, 1615 * NS), agent=agent)
    shop.add(RowKind.HEARTBEATS, 1040, (10.0, 1010 * NS, 4, 20 * NS, None), agent="b", received=1060)
    for at in range(1010, 1100, 10):
        shop.add(RowKind.HEARTBEATS, at, (None, (at - 10) * NS, 2, 0, None), agent=None)
    shop.commit()
    shop.agent(1070, "removed", reason="silent", agent="b")
    shop.add_schema(ClassVersion.from_schema(QUEUE))
    shop.commit()
    found = reported(shop)
    assert {row.agent: (row.state, row.known_until_ns // NS) for row in found.agents} == {
        "a": ("up", 1090),
        "b": ("down", 1090),
    }
    ends = {(item.agent, item.state): (item.start_ns // NS, item.end_ns // NS) for item in found.presence}
    assert ends["b", "up"] == (1000, 1040)
