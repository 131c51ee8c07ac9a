"""The operator's choices."""

from __future__ import annotations

import re

import pytest

from qmf.hostagent.settings import ProcessSelection, Settings, Show


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all", ProcessSelection(Show.ALL, 0)),
        ("none", ProcessSelection(Show.NONE, 0)),
        ("top:1", ProcessSelection(Show.TOP, 1)),
        ("top:200", ProcessSelection(Show.TOP, 200)),
    ],
)
def test_selections_are_read_and_written(text: str, expected: ProcessSelection) -> None:
    assert ProcessSelection.parse(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize("text", ["", "top", "top:", "top:0", "top:-1", "top:x", "top:²", "all:3", "None", "20"])
def test_other_selections_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"must be all, none or top:N with N above 0, not {text!r}")):
        ProcessSelection.parse(text)


@pytest.mark.parametrize("interval", [0.0, -1.0, 1e9, float("nan"), float("inf")])
def test_intervals_out_of_bounds_are_refused(interval: float) -> None:
    with pytest.raises(ValueError, match=r"must be 0\.01 to 86400 seconds"):
        Settings(interval=interval)


@pytest.mark.parametrize("threshold", [0, 101, -5])
def test_thresholds_out_of_bounds_are_refused(threshold: int) -> None:
    with pytest.raises(ValueError, match=f"must be 1 to 100 percent, not {threshold}"):
        Settings(threshold=threshold)


@pytest.mark.parametrize(
    ("selection", "watch", "expected"),
    [
        (None, (), "top:20"),
        (None, (re.compile("nginx"),), "none"),
        (ProcessSelection.parse("all"), (re.compile("nginx"),), "all"),
    ],
)
def test_patterns_replace_the_default_selection(
    selection: ProcessSelection | None, watch: tuple[re.Pattern[str], ...], expected: str
) -> None:
    assert str(Settings(selection=selection, watch=watch).shown) == expected
