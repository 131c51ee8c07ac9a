"""What rows of the lake say about recorders."""

from __future__ import annotations

from qmf.pipeline.correlate.lake_rows import ConnectionChange, outages


def test_outages_are_the_times_without_a_recorder() -> None:
    runs = {"one": (10, 20), "two": (15, 30), "three": (40, 50), "four": (70, 90)}
    assert outages(runs) == [(30, 40), (50, 70)]
    pauses = [
        ConnectionChange("four", 75, False),
        ConnectionChange("four", 80, True),
        ConnectionChange("one", 12, False),
    ]
    assert outages(runs, pauses) == [(12, 15), (30, 40), (50, 70), (75, 80)]
    assert outages({"one": (0, 9)}, [ConnectionChange("one", 5, False)]) == [(5, (1 << 63) - 1)]
    assert outages({}) == []
