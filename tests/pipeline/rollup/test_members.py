"""Sizes of windows."""

from __future__ import annotations

import pytest

from qmf.pipeline import PipelineError
from qmf.pipeline.rollup.members import window_seconds


@pytest.mark.parametrize(("size", "length"), [("10s", 10), ("15m", 900), ("1h", 3600), ("1d", 86400)])
def test_sizes(size: str, length: int) -> None:
    assert window_seconds(size) == length


@pytest.mark.parametrize("size", ["", "7", "7m", "0s", "2d", "-1h", "1w"])
def test_sizes_that_would_cross_midnight_are_refused(size: str) -> None:
    with pytest.raises(PipelineError, match="part of a day"):
        window_seconds(size)
