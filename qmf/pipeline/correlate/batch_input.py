"""What rules read and evaluate, as a value that other processes can have, and its steps, which know no runner.

A batch is a map on files (`BatchInput.times`, `file_signals`), a key (`SIGNAL_KEY`), and a reduce on the signals of
each key in the order of time (`BatchInput.evaluator`). A stream has the same map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import attrs

from qmf.pipeline.correlate.evaluation import EvaluationPass, Evaluator
from qmf.pipeline.correlate.event_time import ended_runs, merged_runs, outages
from qmf.pipeline.correlate.lake_rows import TIME_PATHS, Arrivals, LakeRows, counted_rows
from qmf.pipeline.correlate.plan import ReadPlan, complete_rules, read_plan
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.signal_reader import SignalReader, SignalRow
from qmf.pipeline.correlate.signals import SIGNAL_COLUMNS
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.runs import LeftOut
from qmf.pipeline.lake.table_files import FilesByTable

#: The text of an expression that could not be computed, in a row of its own with the number of the rule.
FAILURE = "failure"

#: By what signals are brought together, and by what those of a subject are sorted.
SIGNAL_KEY, SIGNAL_ORDER = ("rule", "key"), ("at", "ts", "run", "seq", "role")

_EARLIEST = -(1 << 62)


@attrs.frozen(kw_only=True)
class CorrelateOptions:
    """What to correlate.

    Attributes:
        lake: path, or URL of an object store.
        out: folder of the tables; for a stream a folder of this machine.
        rules: to evaluate.
        first, last: days of a batch, ``2030-01-31``, both included; None for no limit.
        late: ns that rows may be late, see `event_time`.
        storage: settings of the object store.
        wrong: the errors of rules that are in the file and were left out, for reports.
    """

    lake: str
    out: str
    rules: tuple[Rule, ...]
    first: str | None = None
    last: str | None = None
    late: int = 0
    storage: Mapping[str, str] = attrs.field(factory=dict)
    wrong: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class BatchInput:
    """What a batch reads and evaluates. Its methods raise `LakeError` for a file that cannot be read on this machine.

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
        """What the rows of files tell besides their values."""
        with closing(LakeRows(DeltaLake(self.lake, self.storage), self.late)) as rows:
            return rows.arrivals(self.rows(files))

    def reader(self, connection: Any = None) -> SignalReader:
        """A reader of signals from `rows`, as of `SignalReader`; to be closed."""
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
    """What a batch is about, and the files to read; `print_line` gets each class of a rule that the lake doesn't have.

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
    """The only pass of a batch: over all rows, or the time before `until`."""
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


def file_signals(
    given: BatchInput, connection: Any, files: FilesByTable, followed: Iterable[tuple[str, Any]] = ()
) -> Iterator[Any]:
    """The signals of files, and what failed; `followed` are rows of `SignalReader.followed_changes`, by class."""
    pa = import_pyarrow()
    with closing(given.reader(connection)) as reader:
        for name, rows in followed:
            reader.restore_followed({name: rows})
        for batch in reader.signal_batches(given.rows(files)):
            yield batch.append_column(FAILURE, pa.nulls(batch.num_rows, pa.string()))
        nothing = (None,) * (len(SIGNAL_COLUMNS) - 1)
        yield from signal_table([(number, *nothing, text) for number, text in reader.failures.items()]).to_batches()


def signal_schema(*, failures: bool = True) -> Any:
    """The columns of signals as an Arrow schema, with `FAILURE` where there are rows of failures among them."""
    pa = import_pyarrow()
    types = {"INTEGER": pa.int32(), "VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64()}
    columns = (*SIGNAL_COLUMNS, (FAILURE, "VARCHAR")) if failures else SIGNAL_COLUMNS
    return pa.schema([(name, types[type]) for name, type in columns])


def signal_table(rows: Iterable[SignalRow], *, failures: bool = True) -> Any:
    """Signals as an Arrow table, as of `signal_schema`."""
    schema = signal_schema(failures=failures)
    return import_pyarrow().Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
