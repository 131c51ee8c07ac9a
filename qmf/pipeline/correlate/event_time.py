"""Event time: when things happened, how far the time of a lake has advanced, and when no recorder was running. Pure.

The time that an agent gives counts as long as it can be right: nothing happens after it was recorded, and nothing
arrives more than `late` after it happened. Every other row counts at the time of its arrival. So a clock that is wrong,
or that is set forward or back, costs precision and no alerts; and since this depends on the row alone, all readers of a
lake agree.

Everything before the horizon is complete. The horizon is the newest arrival less `late`. A row that enters the lake
with an older time (its recorder was killed before the commit, and added the file when it was started again) is dropped
and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from qmf.pipeline.correlate.detectors.base import NEVER
from qmf.pipeline.lake.runs import SILENCE_NS

#: First and last arrival of the rows of each recorder's run.
Runs = Mapping[str, tuple[int, int]]

#: The reasons of gaps that are about the recorder's connection, and whether it is connected afterwards.
CONNECTION_REASONS = {"disconnected": False, "connected again": True}


@attrs.frozen
class ConnectionChange:
    """A recorder's run lost its connection, or is connected `again`, at a time by its clock."""

    run: str
    at: int
    again: bool


def merged_runs(*several: Runs) -> dict[str, tuple[int, int]]:
    """First and last arrival of each run, of several such mappings."""
    merged: dict[str, tuple[int, int]] = {}
    for runs in several:
        for run, (first, last) in runs.items():
            known = merged.get(run, (first, last))
            merged[run] = (min(first, known[0]), max(last, known[1]))
    return merged


def outages(runs: Runs, changes: Iterable[ConnectionChange] = ()) -> list[tuple[int, int]]:
    """Intervals in which no recorder was recording, from the first arrival on; one that has not ended has no limit."""
    changes_by_run: dict[str, list[ConnectionChange]] = {}
    for change in changes:
        changes_by_run.setdefault(change.run, []).append(change)
    recorded = sorted(
        interval
        for run, (first, last) in runs.items()
        for interval in _connected_intervals(first, last, changes_by_run.get(run, ()))
    )
    found: list[tuple[int, int]] = []
    end: int | None = None
    for begin, until in recorded:
        if end is not None and begin > end:
            found.append((end, begin))
        end = until if end is None else max(end, until)
    if end is not None and end < max(last for _, last in runs.values()):
        found.append((end, NEVER))
    return found


def ended_runs(runs: Runs) -> dict[str, int]:
    """Until when rows of runs that ended count that are about the time after them: those without rows for a minute.

    A run is believed for that minute, so that a stream, which doesn't know its end before, agrees with a batch.
    """
    newest = max((last for _, last in runs.values()), default=0)
    return {run: last + SILENCE_NS for run, (_, last) in runs.items() if newest - last > SILENCE_NS}


def _connected_intervals(first: int, last: int, changes: Iterable[ConnectionChange]) -> list[tuple[int, int]]:
    """The intervals in which one run was connected."""
    found: list[tuple[int, int]] = []
    begin: int | None = first
    for change in sorted(changes, key=lambda item: (item.at, item.again)):
        if change.again:
            begin = change.at if begin is None else begin
        elif begin is not None:
            found.append((begin, change.at))
            begin = None
    if begin is not None:
        found.append((begin, last))
    return found
