"""A stream of roll-ups whose windows are made by the tasks of a runner, and not from memory; see `RollupStream`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from qmf.pipeline.lake.location import absolute
from qmf.pipeline.lake.row_files import WrittenRows
from qmf.pipeline.rollup.job import ReplacedRows, commit_rows, written_rows
from qmf.pipeline.rollup.stream import RollupStream
from qmf.pipeline.rollup.stream_windows import END_NS, WindowRange
from qmf.pipeline.rollup.tables import RollupOptions, rollup_schema
from qmf.pipeline.rollup.tasks import WindowTask
from qmf.pipeline.runners.runner import Runner


class TaskRollupStream(RollupStream):
    """Follows one lake. Belongs to one thread; close it at the end."""

    def __init__(self, runner: Runner, options: RollupOptions) -> None:
        """As of `RollupStream`; `runner` is where tasks run."""
        super().__init__(options, in_memory=False)
        self._runner = runner
        self._made = WrittenRows()
        self._first_day = ""
        self.table.conform(rollup_schema())

    def _roll_up(self, ranges: Sequence[WindowRange]) -> list[int]:
        tasks = []
        is_first = self.table.version() is None
        options = attrs.evolve(self._options, lake=absolute(self._options.lake), out=absolute(self._options.out))
        for windows in ranges:
            days = {date: windows.source.days[date] for date in windows.days}
            few = attrs.evolve(windows, source=attrs.evolve(windows.source, days=days))
            tasks.append(WindowTask(options, few, is_first))
        first = min(windows.start for windows in ranges)
        self._first_day = "" if first == -END_NS else self._options.zone.day(first)
        self._made = written_rows(self._runner, tasks, self.table)
        counts = self._made.counts
        return [counts.get((windows.source.package, windows.source.name, windows.size), 0) for windows in ranges]

    def _store(self, where: str | None, numbers: Mapping[str, int]) -> None:
        replacement = None
        if where is not None:
            first = self._first_day
            replacement = ReplacedRows.of(self.table, where, self._options.sizes, lambda found: found >= first)
            self._made += written_rows(self._runner, replacement.kept, self.table)
        commit_rows(self.table, self._made, replacement, numbers)
