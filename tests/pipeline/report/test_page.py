"""The page: complete, self-contained, deterministic, with all data escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import attrs
import pytest
from lxml import etree

pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline import PipelineError
from qmf.pipeline.cli import main
from qmf.pipeline.report.model import (
    Anomaly,
    AvailabilityInterval,
    CallRow,
    ChangedSeries,
    Chart,
    ClassObjectsRow,
    ComparedNumber,
    ComparedSeries,
    EndedObjectRow,
    PropertyChangeRow,
    RangeComparison,
    Report,
    ReportedAgent,
    ReportedAlert,
    Series,
)
from qmf.pipeline.report.page import html
from qmf.pipeline.report.texts import percent_text, seconds_text, unit_text, value_text
from qmf.pipeline.report.time_range import NS, TimeRange, parse_compared, parse_time_range

BEGIN = 1_900_000_000
SPAN = TimeRange(BEGIN * NS, (BEGIN + 3600) * NS)
EVIL = "<script>alert('$x$ & \"y\"')</script>"


def at(seconds: float) -> int:
    return int((BEGIN + seconds) * NS)


def full(text: str) -> Report:
    """A report with one of everything, all texts the same."""
    series = Series(
        name=text,
        agent=text,
        object=text,
        member=text,
        unit=text,
        is_rate=True,
        points=tuple((BEGIN + n * 30, float(n % 7)) for n in range(120) if n not in (50, 51)),
        label=text,
    )
    return Report(
        title=text,
        lake=text,
        time_range=SPAN,
        made_ns=at(4000),
        asked=TimeRange(at(-100), at(3700)),
        known_until_ns=at(3500),
        unrecorded=((at(1500), at(1560)),),
        samples=1234,
        objects=5,
        events=((BEGIN, 1, 3), (BEGIN, 6, 4), (BEGIN + 60, 4, 1), (BEGIN + 60, 5, 1)),
        event_classes=((text, 4, 9),),
        event_classes_left=2,
        anomalies=(Anomaly(series=series, start=BEGIN + 60, end=BEGIN + 150, value=6, usual=1, spread=0.5, days=7),),
        anomaly_days=7,
        comparison=RangeComparison(
            other=TimeRange(at(-3600), at(0)),
            numbers=(
                ComparedNumber(name=text, before=1, after=3),
                ComparedNumber(name=text, before=None, after=99.5, unit="%"),
            ),
            series=(
                ComparedSeries(series=series, before=1.0, after=2.0),
                ComparedSeries(series=series, before=None, after=2.0),
            ),
            left=4,
        ),
        alerts=(
            ReportedAlert(
                alert_id="1", rule=text, severity=2, subject=text, message=text, began_ns=at(10), raised_ns=at(20)
            ),
            ReportedAlert(
                alert_id="2",
                rule=text,
                severity=4,
                subject=text,
                message=text,
                began_ns=at(-10),
                raised_ns=at(20),
                cleared_ns=at(30),
            ),
        ),
        presence=(
            AvailabilityInterval(agent=text, state="up", epoch=1, cause="added", start_ns=at(0), end_ns=at(100)),
            AvailabilityInterval(agent=text, state="down", epoch=None, cause=text, start_ns=at(100), end_ns=at(200)),
            AvailabilityInterval(agent=text, state="up", epoch=2, cause="restarted", start_ns=at(200), end_ns=at(300)),
            AvailabilityInterval(
                agent=text, state="unknown", epoch=None, cause="not recorded", start_ns=at(300), end_ns=at(3600)
            ),
        ),
        agents=(
            ReportedAgent(agent=text, up=200, down=100, unknown=3300, restarts=1, state="up", known_until_ns=at(9)),
        ),
        movers=(ChangedSeries(series=series, before=1.0, after=4.0, score=3.0),),
        charts=(Chart(title=text, unit=text, series=(series, attrs.evolve(series, points=series.points[:1])), more=2),),
        classes=(ClassObjectsRow(name=text, objects=5, created=2, ended=((text, 1),)),),
        lifetimes=((BEGIN, 2, 0), (BEGIN + 60, 0, 1)),
        ended=(EndedObjectRow(name=text, agent=text, object=text, lived=None, ended_ns=at(70), ended_by=text),),
        ended_left=3,
        calls=(
            CallRow(
                time_ns=at(1),
                user=text,
                origin=text,
                agent=text,
                operation=text,
                target=text,
                result="failed",
                text=text,
            ),
        ),
        changes=(
            PropertyChangeRow(
                time_ns=at(2), name=text, agent=text, object=text, property=text, previous=None, value=text
            ),
        ),
        gaps=((text, 7),),
    )


class Reader(HTMLParser):
    """The tags of a page, and what they load."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.wanted: list[str] = []
        self.names: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.text += " " * (tag == "br")
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "action") or name.startswith("on"):
                self.wanted.append(value or "")
            if name == "id":
                self.names.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_endtag(self, tag: str) -> None:
        self.text += " "


def test_data_is_escaped_everywhere() -> None:
    page = html(full(EVIL))
    found = Reader(page)
    assert "script" not in found.tags
    assert "alert('$x$" in found.text
    # Everything is in the page itself.
    assert all(wanted.startswith("#") for wanted in found.wanted)
    assert {wanted[1:] for wanted in found.wanted} <= set(found.names)
    assert len(found.names) == len(set(found.names))
    assert "http" not in re.sub(r'xmlns(:xlink)?="[^"]*"|http-equiv|href="#[^"]*"', "", page)
    assert "var(--c1)" in page
    assert "#fe" not in page
    assert "default-src 'none'" in page


def test_drawings_are_valid_xml_and_the_page_is_the_same_each_time() -> None:
    page = html(full("a"))
    assert html(full("a")) == page
    drawings = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    plots = [drawing for drawing in drawings if 'role="img"' in drawing]
    # Alerts, availability, an anomaly, a mover, a chart, lifetimes, events.
    assert len(plots) == 7
    for drawing in plots:
        root = etree.fromstring(drawing)
        assert root.get("aria-label")
        assert root.get("viewBox")
    swatches = [drawing for drawing in drawings if drawing not in plots]
    assert len(swatches) == 2
    assert all("aria-hidden" in drawing for drawing in swatches)
    # Lines differ without their colours.
    assert len({re.search(r"stroke-dasharray: [^\"]*", drawing)[0] for drawing in swatches}) == 2  # type: ignore[index]
    titles = re.findall(r"<title>(.*?)</title>", page)
    assert "a: up, run 2 (restarted), 1m 40s" in titles


@pytest.mark.parametrize("alerts", [None, ()])
def test_an_empty_page_has_a_note(alerts: tuple[ReportedAlert, ...] | None) -> None:
    page = html(Report(title="t", lake="l", time_range=SPAN, made_ns=at(0), alerts=alerts))
    assert "Nothing was recorded in this time." in page
    assert ("nothing was correlated" in page) is (alerts is None)
    assert "<svg" not in page
    assert "2030-03-17 17:46:40 to 2030-03-17 18:46:40" in page
    assert "UTC" in page


def test_plots_have_one_width_and_the_same_time_axis() -> None:
    page = html(full("a"))
    plots = re.findall(r'<div class="plot">(<svg.*?</svg>)', page, re.DOTALL)
    boxes = [(etree.fromstring(plot).get("viewBox") or "").split() for plot in plots]
    assert len(boxes) == 5
    assert len({box[2] for box in boxes}) == 1
    # Nothing but marks of the axes and names of rows is written in a plot: titles and legends are beside it.
    assert "legend" not in "".join(plots)


def test_states_say_until_when_they_are_known() -> None:
    text = " ".join(Reader(html(full("a"))).text.split())
    assert "up known until 2030-03-17 17:46:49" in text
    assert "open known until 2030-03-17 18:45:00" in text
    assert "nothing was recorded from 2030-03-17 18:11:40 to 2030-03-17 18:12:40" in text


def test_two_times_are_compared() -> None:
    text = " ".join(Reader(html(full("a"))).text.split())
    assert "Before: 2030-03-17 16:46:40 to 2030-03-17 17:46:40 UTC" in text
    assert "1 3 +2" in text
    assert "unknown 99.500 % –" in text
    assert "+50.0 %" in text
    assert "– 2/s new" in text


@pytest.mark.parametrize(
    ("value", "unit", "is_rate", "text"),
    [
        (0, None, False, "0"),
        (0.12345, None, False, "0.12"),
        (12345, None, False, "12.3 k"),
        (-5e6, "octet", True, "-5 MB/s"),
        (7.1e9, "octet", False, "7.1 GB"),
        (12.345, "percent", False, "12.3 %"),
        (2.5e6, "nanosecond", False, "2.5ms"),
        (None, None, False, "–"),
    ],
)
def test_values(value: float | None, unit: str | None, is_rate: bool, text: str) -> None:
    assert value_text(value, unit, is_rate=is_rate) == text


def test_units_of_headings() -> None:
    assert [
        unit_text(unit, is_rate=rate) for unit, rate in (("octet", True), ("message", True), ("message", False))
    ] == [
        "",
        "messages/s",
        "messages",
    ]


def test_lengths_and_shares() -> None:
    assert [seconds_text(length) for length in (0.005, 1, 90, 7200, 172800)] == [
        "5ms",
        "1s",
        "1m 30s",
        "2h",
        "2d",
    ]
    assert [percent_text(part) for part in (1, 0.9999999, 0.5, None)] == ["100 %", "99.999 %", "50.0 %", "unknown"]


DAY = 86400
NEWEST = 20 * DAY * NS


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ((None, None, None), 19 * DAY + 1e-9, 20 * DAY + 1e-9),
        (("1970-01-05", "1970-01-06", None), 4 * DAY, 6 * DAY),
        (("1970-01-05T12:00", "1970-01-05T13:30", None), 4.5 * DAY, 4.5 * DAY + 5400),
        (("1970-01-05", None, "2d"), 4 * DAY, 6 * DAY),
        (("1970-01-05", None, None), 4 * DAY, 20 * DAY + 1e-9),
        ((None, "1970-01-05T02:00+02:00", "90m"), 4 * DAY - 5400, 4 * DAY),
        ((None, "1970-01-05", "1h30m"), 5 * DAY - 5400, 5 * DAY),
    ],
)
def test_time_ranges(words: tuple[str | None, str | None, str | None], first: float, last: float) -> None:
    found = parse_time_range(*words, NEWEST)
    assert (found.first_ns, found.last_ns) == (round(first * 1e9), round(last * 1e9))
    assert 60 <= found.seconds / found.step <= 240


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("soon", None, None), "'soon' is not a time"),
        ((None, None, "3y"), "a length must be a time such as"),
        ((None, None, "0s"), "a length must be a time such as"),
        (("1970-01-06", "1970-01-05", None), "the time range is empty"),
        (("1970-01-06", "1970-01-07", "1d"), "give two of"),
    ],
)
def test_invalid_time_ranges(words: tuple[str | None, str | None, str | None], complaint: str) -> None:
    with pytest.raises(PipelineError, match=re.escape(complaint)):
        parse_time_range(*words, NEWEST)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("previous", 2 * DAY, 5 * DAY),
        ("1d", 4 * DAY, 7 * DAY),
        ("7d", -2 * DAY, DAY),
        ("1970-01-02..1970-01-02", DAY, 2 * DAY),
        ("1970-01-02T12:00..1970-01-03T00:00", 1.5 * DAY, 2 * DAY),
    ],
)
def test_compared_ranges(text: str, first: float, last: float) -> None:
    found = parse_compared(text, TimeRange(5 * DAY * NS, 8 * DAY * NS))
    assert (found.first_ns, found.last_ns) == (first * NS, last * NS)


@pytest.mark.parametrize("text", ["later", "0s", "-1d", "1970-01-03..1970-01-01", "..", "a..b"])
def test_invalid_compared_ranges(text: str) -> None:
    with pytest.raises(PipelineError, match=r"is not a (range|time) such as|the time range is empty"):
        parse_compared(text, TimeRange(5 * DAY * NS, 8 * DAY * NS))


def test_the_command_reports_a_wrong_time_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--lake", str(tmp_path), "--from", "soon"]) == 2
    assert capsys.readouterr().err == "qmf-pipeline: 'soon' is not a time such as 2030-01-31 or 2030-01-31T12:00\n"
