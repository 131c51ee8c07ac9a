"""When a recorder was connected."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.audit.parts import CONNECTED, DISCONNECTED
from qmf.pipeline.report.presence import recorded_times


def test_runs_that_overlap_or_follow_each_other_are_one_time() -> None:
    runs = {"r1": (100, 150), "r2": (140, 260), "r3": (300, 330)}
    assert recorded_times(runs, []) == [(100, 260), (300, 330)]


def test_a_lost_connection_is_a_gap_unless_another_recorder_has_one() -> None:
    breaks = [("r1", DISCONNECTED, 120), ("r1", CONNECTED, 180)]
    assert recorded_times({"r1": (100, 200)}, breaks) == [(100, 120), (180, 200)]
    assert recorded_times({"r1": (100, 200), "r2": (110, 190)}, breaks) == [(100, 200)]


def test_a_run_that_ends_without_a_connection() -> None:
    assert recorded_times({"r1": (100, 200)}, [("r1", DISCONNECTED, 150)]) == [(100, 150)]
