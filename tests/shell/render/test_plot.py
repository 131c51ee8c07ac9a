"""Plots as characters."""

from __future__ import annotations

from datetime import UTC

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from qmf_shell.render.formatting import Formatter
from qmf_shell.render.plot import draw_plot
from qmf_shell.results.cells import Instant
from qmf_shell.results.result import Plot, PlotSeries
from rich.cells import cell_len
from shell.fakes import NOON


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
