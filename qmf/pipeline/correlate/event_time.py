"""When things happened, how far time has come, and when nobody was recording. Pure.

Agents' clocks are believed as long as they can be right: nothing happened after it was recorded, and nothing came more
than `late` after it happened. Whatever says otherwise counts as of its arrival. So a clock that is wrong, or that is
put forward or back, costs precision and not alerts; and since this depends on the row alone, all readers of a lake
agree.

Everything before the horizon is over: the youngest arrival less `late`. A row that comes into the lake with an older
time (its recorder was killed before the commit, and entered the file when it was started again) is left out, and
counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from qmf.pipeline.correlate.detectors import NEVER


@attrs.frozen
class ConnectionChange:
    """A recorder lost its connection, or has it again.

    Attributes:
        run: of the recorder.
        at: when, by its clock.
        again: it has it again.
    """

    run: str
    at: int
    again: bool


def merged_runs(*several: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """First and last arrival of each run, from several of such."""
    merged: dict[str, tuple[int, int]] = {}
    for runs in several:
        for run, (first, last) in runs.items():
            known = merged.get(run, (first, last))
            merged[run] = (min(first, known[0]), max(last, known[1]))
    return merged


def outages(runs: Mapping[str, tuple[int, int]], pauses: Iterable[ConnectionChange] = ()) -> list[tuple[int, int]]:
    """Times in which no recorder recorded, from the first arrival on; one that has not ended lasts for ever.

    Args:
        runs: first and last arrival of each run.
        pauses: of the runs' connections.
    """
    recorded: list[tuple[int, int]] = []
    by_run: dict[str, list[ConnectionChange]] = {}
    for pause in pauses:
        by_run.setdefault(pause.run, []).append(pause)
    for run, (first, last) in runs.items():
        begin: int | None = first
        for pause in sorted(by_run.get(run, ()), key=lambda item: (item.at, item.again)):
            if pause.again:
                begin = pause.at if begin is None else begin
            elif begin is not None:
                recorded.append((begin, pause.at))
                begin = None
        if begin is not None:
            recorded.append((begin, last))
    found: list[tuple[int, int]] = []
    end: int | None = None
    for begin, until in sorted(recorded):
        if end is not None and begin > end:
            found.append((end, begin))
        end = until if end is None else max(end, until)
    if end is not None and end < max(last for _, last in runs.values()):
        found.append((end, NEVER))
    return found
