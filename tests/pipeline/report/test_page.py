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
    AgentRow,
    AlertRow,
    AvailabilityInterval,
    CallRow,
    ChangedSeries,
    Chart,
    ClassObjectsRow,
    EndedObjectRow,
    PropertyChangeRow,
    Report,
    Series,
)
from qmf.pipeline.report.page import html, number
from qmf.pipeline.report.plots import abbreviated, format_seconds
from qmf.pipeline.report.time_range import NS, TimeRange, parse_time_range

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
    )
    return Report(
        title=text,
        lake=text,
        time_range=SPAN,
        made_ns=at(4000),
        samples=1234,
        objects=5,
        events=((BEGIN, 1, 3), (BEGIN, 6, 4), (BEGIN + 60, 4, 1), (BEGIN + 60, 5, 1)),
        alerts=(
            AlertRow(
                alert_id="1", rule=text, severity=2, subject=text, message=text, began_ns=at(10), raised_ns=at(20)
            ),
            AlertRow(
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
        agents=(AgentRow(agent=text, up=200, down=100, unknown=3300, restarts=1),),
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
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "action") or name.startswith("on"):
                self.wanted.append(value or "")
            if name == "id":
                self.names.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text += data


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
    assert len(drawings) == 6
    for drawing in drawings:
        root = etree.fromstring(drawing)
        assert root.get("role") == "img"
        assert root.get("viewBox")
    titles = re.findall(r"<title>(.*?)</title>", page)
    assert "a: up, run 2 (restarted), 1.7 min" in titles


@pytest.mark.parametrize("alerts", [None, ()])
def test_an_empty_page_has_a_note(alerts: tuple[AlertRow, ...] | None) -> None:
    page = html(Report(title="t", lake="l", time_range=SPAN, made_ns=at(0), alerts=alerts))
    assert "Nothing was recorded in this time." in page
    assert ("nothing was correlated" in page) is (alerts is None)
    assert "<svg" not in page
    assert "2030-03-17 17:46:40 to 2030-03-17 18:46:40" in page
    assert "UTC" in page


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.12345, "0.123"), (1234, "1.23k"), (-5e6, "-5M"), (7.1e9, "7.1G"), (2e13, "20T")]
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_long_texts_lose_their_middle() -> None:
    assert abbreviated("short", 5) == "short"
    assert abbreviated("0123456789", 5) == "01…89"
    assert abbreviated("a\x1b\nb", 9) == "a  b"
    assert [format_seconds(length) for length in (0.005, 1, 90, 7200, 172800)] == [
        "5 ms",
        "1.0 s",
        "1.5 min",
        "2.0 h",
        "2.0 d",
    ]


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
        (("yesterday", None, None), "'yesterday' is not a time"),
        ((None, None, "3w"), "a length must be a time such as"),
        ((None, None, "0s"), "a length must be a time such as"),
        (("1970-01-06", "1970-01-05", None), "the time range is empty"),
        (("1970-01-06", "1970-01-07", "1d"), "give two of"),
    ],
)
def test_invalid_time_ranges(words: tuple[str | None, str | None, str | None], complaint: str) -> None:
    with pytest.raises(PipelineError, match=re.escape(complaint)):
        parse_time_range(*words, NEWEST)


def test_the_command_reports_a_wrong_time_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--lake", str(tmp_path), "--from", "soon"]) == 2
    assert capsys.readouterr().err == "qmf-pipeline: 'soon' is not a time such as 2030-01-31 or 2030-01-31T12:00\n"
