"""Plots as characters."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from qmf_shell.render.plot import draw_plot
from qmf_shell.results.result import Plot, PlotSeries
from rich.cells import cell_len
from shell.fakes import NOON

from qmf.views.cells import Instant
from qmf.views.formatting import Formatter


def picture(series: list[PlotSeries], width: int = 40, height: int = 12, *, braille: bool = True) -> list[str]:
    plot = Plot(tuple(series), "101 filesystem /", Instant(NOON))
    return [
        "".join(piece.text for piece in row) for row in draw_plot(plot, Formatter(), width, height, braille=braille)
    ]


def test_a_rising_line_rises() -> None:
    text_lines = picture([PlotSeries("depth", tuple((float(n), float(n)) for n in range(100)), 99)], braille=False)
    assert text_lines[0] == "101 filesystem /"
    columns = [line.find("*") for line in text_lines[1:10]]
    assert columns == sorted(columns, reverse=True)
    assert text_lines[1].split()[0] == "100"
    assert text_lines[9].split()[0] == "0"
    assert text_lines[10].split() == ["-1m", "39s", "now"]
    assert text_lines[11] == "** depth  99"


@pytest.mark.parametrize(
    ("width", "texts"),
    [(80, ["2024-05-01", "11:59:00", "2024-05-01", "12:00:00"]), (30, ["11:59:00", "12:00:00"]), (18, [])],
)
def test_a_period_has_its_times_below(width: int, texts: list[str]) -> None:
    ends = Instant(NOON - 60 * 10**9), Instant(NOON)
    plot = Plot((PlotSeries("depth", ((NOON / 1e9 - 30, 5.0),), 5),), "depth", ends[1], None, *ends)
    lines = ["".join(piece.text for piece in row) for row in draw_plot(plot, Formatter(UTC), width, 8)]
    assert lines[-2].split() == texts
    assert all(cell_len(line) <= max(width, 18) for line in lines)


@pytest.mark.parametrize("width", [20, 40, 100])
@pytest.mark.parametrize("height", [4, 12, 30])
def test_plots_fit(width: int, height: int) -> None:
    series = [PlotSeries(f"s{k}", tuple((float(n), float(n * k)) for n in range(50)), k) for k in range(3)]
    text_lines = picture(series, width, height)
    assert len(text_lines) <= max(height, 9)
    assert all(cell_len(line) <= width for line in text_lines), text_lines


@example([0.0, 5e-324], False)
@given(
    st.lists(
        st.one_of(st.none(), st.floats(width=32), st.floats(-1, 1), st.integers(0, 2**64).map(float)), max_size=30
    ),
    st.booleans(),
)
def test_any_values_can_be_drawn(values: list[float | None], braille: bool) -> None:
    text_lines = picture([PlotSeries("x", tuple((float(n), value) for n, value in enumerate(values)))], braille=braille)
    assert len(text_lines) == 12
    if not braille:
        assert all(line.isascii() for line in text_lines)


def lines_of(series: list[PlotSeries], *, braille: bool = True, height: int = 24) -> list[str]:
    return picture(series, 60, height, braille=braille)


def line(name: str, values: range, unit: str | None = None) -> PlotSeries:
    return PlotSeries(name, tuple((float(at), float(value)) for at, value in enumerate(values)), values[-1], unit)


def test_lines_are_told_apart_without_colours() -> None:
    text = lines_of([line("up", range(60)), line("down", range(60, 0, -1)), line("flat", range(0, 600, 10))])
    for sign, name in zip("●▲■", ("up", "down", "flat"), strict=True):
        assert any(row.startswith(f"{sign}─ {name}") for row in text)
        assert sum(row.count(sign) for row in text[1:-4]) >= 3
    (alone,) = (row for row in lines_of([line("up", range(60))]) if "up" in row)
    assert alone.startswith("── up")


def test_each_unit_has_an_axis() -> None:
    text = lines_of([line("free", range(10**6, 10**7, 10**5), "octet"), line("depth", range(90), "message")])
    marks = [row.split("┤")[0].strip() for row in text if "┤" in row]
    assert marks[0] == "10 MB"
    assert marks[-1] == "0"
    assert "100" in marks
    assert text.index(next(row for row in text if row.strip() == "messages")) > marks.index("10 MB")
    assert len(text) <= 24
    both = lines_of([line("used", range(90), "message"), line("depth", range(90), "message")])
    assert not [row for row in both if row.strip() == "messages"]


def test_units_without_braille() -> None:
    text = lines_of([line("a", range(5000), "octet"), line("b", range(90), "percent")], braille=False)
    assert all(row.isascii() for row in text)
    assert [row.split("|")[0].strip() for row in text if "6 kB" in row or "100 %" in row] == ["6 kB", "100 %"]


def test_marks_differ() -> None:
    for unit, symbol in ((None, ""), ("octet", " B"), ("percent", " %")):
        text = picture([PlotSeries("x", tuple((float(n), 26.34 + n / 1000) for n in range(60)), 26.4, unit)])
        marks = [row.split("┤")[0].strip() for row in text if "┤" in row]
        assert len(set(marks)) == len(marks)
        assert f"26.4{symbol}" in marks


def test_large_numbers_take_little_room() -> None:
    text = picture([PlotSeries("x", ((0.0, 0.0), (1.0, 3e38)), 3e38)])
    assert max(len(row.split("┤")[0]) for row in text if "┤" in row) < 12
