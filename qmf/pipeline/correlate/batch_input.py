"""What a batch reads and evaluates, as a value that other processes can have, and its steps, which know no runner.

A batch is a map on files (`BatchInput.times`, `BatchInput.reader`), a key (rule and subject), and a reduce on the
signals of each key in the order of time (`BatchInput.evaluator`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

import attrs

from qmf.pipeline.correlate.evaluation import EvaluationPass, Evaluator
from qmf.pipeline.correlate.event_time import ended_runs, merged_runs, outages
from qmf.pipeline.correlate.lake_rows import TIME_PATHS, Arrivals, LakeRows, counted_rows
from qmf.pipeline.correlate.options import CorrelateOptions
from qmf.pipeline.correlate.plan import ReadPlan, complete_rules, read_plan
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.signal_reader import SignalReader
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.runs import LeftOut
from qmf.pipeline.lake.table_files import FilesByTable

_EARLIEST = -(1 << 62)


@attrs.frozen(kw_only=True)
class BatchInput:
    """What a batch reads and evaluates.

    Attributes:
        lake: absolute path or URL.
        storage: options of its object store.
        late: ns that rows may be late, see `event_time`.
        plan: what the rules read.
        rules: by their numbers, with what the schemas say about them.
        hashes: of the rules as the user wrote them.
        schemas: the Arrow schema of each table that is read.
        uncounted: rows that do not count, since another recorder has them too.
    """

    lake: str
    storage: Mapping[str, str]
    late: int
    plan: ReadPlan
    rules: tuple[Rule, ...]
    hashes: tuple[str, ...]
    schemas: Mapping[str, Any]
    uncounted: tuple[LeftOut, ...]

    def times(self, files: FilesByTable) -> Arrivals:
        """What the rows of files tell besides their values.

        Raises:
            LakeError: a file is not on this machine, or cannot be read.
        """
        with closing(LakeRows(DeltaLake(self.lake, self.storage), self.late)) as rows:
            return rows.arrivals(self.rows(files))

    def reader(self, connection: Any = None) -> SignalReader:
        """A reader of signals from `rows`; to be closed.

        Args:
            connection: to DuckDB, for this reader only; None for a new one.
        """
        return SignalReader(self.plan, self.late, self.schemas, strict=False, connection=connection)

    def rows(self, files: FilesByTable) -> dict[str, Any]:
        """Files as a dataset for each table."""
        lake = DeltaLake(self.lake, self.storage)
        found = {path: lake.table(path).dataset(own, self.schemas[path]) for path, own in files.items() if own}
        return counted_rows(found, self.uncounted)

    def evaluator(self, left_out: frozenset[int]) -> Evaluator:
        """An evaluator of the signals; `left_out` are the numbers of rules that read nothing."""
        evaluator = Evaluator(self.rules, self.hashes)
        evaluator.left_out = left_out
        return evaluator


def batch_input(options: CorrelateOptions, print_line: Callable[[str], None]) -> tuple[BatchInput, FilesByTable]:
    """What a batch is about, and the files to read.

    Args:
        options: of the job.
        print_line: called for each class of a rule that the lake doesn't have.

    Raises:
        LakeError: no lake.
    """
    lake = DeltaLake(options.lake, options.storage)
    known = lake.classes()
    if not known and not lake.versions(TIME_PATHS):
        raise LakeError(f"{options.lake}: no lake, or nothing in it yet")
    plan = read_plan(options.rules, known)
    for text in plan.missing:
        print_line(text)
    paths = list(dict.fromkeys([*SignalReader.paths(plan), *TIME_PATHS]))
    with closing(LakeRows(lake, options.late)) as rows:
        files = rows.files(paths, options.first, options.last)
        found = BatchInput(
            lake=lake.url,
            storage=lake.options,
            late=options.late,
            plan=plan,
            rules=complete_rules(options.rules, plan),
            hashes=tuple(rule.hash for rule in options.rules),
            schemas=rows.schemas(paths),
            uncounted=rows.uncounted_rows(),
        )
    return found, files


def merged_arrivals(several: Sequence[Arrivals]) -> Arrivals:
    """What all rows tell, from what parts of them tell."""
    return Arrivals(
        merged_runs(*(item.runs for item in several)),
        [change for item in several for change in item.changes],
        sorted(goodbye for item in several for goodbye in item.goodbyes),
    )


def whole_pass(arrivals: Arrivals, late: int, until: int | None = None) -> EvaluationPass:
    """The only pass of a batch.

    Args:
        arrivals: of all rows.
        late: ns that rows may be late, see `event_time`.
        until: evaluate the time before this only, ns since 1970; None for all.
    """
    last = max((last for _, last in arrivals.runs.values()), default=-1)
    end = last + 1 if until is None else min(until, last + 1)
    return EvaluationPass(
        begin=_EARLIEST,
        end=end,
        start=min((first for first, _ in arrivals.runs.values()), default=end),
        goodbyes=[item for item in arrivals.goodbyes if item[0] < end],
        outages=outages(arrivals.runs, arrivals.changes),
        ended=ended_runs(arrivals.runs),
        dated=late > 0,
    )
