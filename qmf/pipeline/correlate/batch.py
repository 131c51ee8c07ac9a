"""The job as a batch: all rules over a whole lake, the alerts into a table, wherever it runs.

A map makes signals of files; they are brought together by rule and subject and sorted by time; a reduce makes the
alerts of each subject. A batch replaces the table of the batch before; running it again gives the same rows, with the
same ids. It knows nothing from before its first day: an alert that was open then is found when its rule is fulfilled
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import attrs

from qmf.pipeline.correlate.alert_table import COLUMNS, AlertTable, alert_tables, arrow_table, fill_columns
from qmf.pipeline.correlate.alerts import AlertRow, in_order
from qmf.pipeline.correlate.batch_input import (
    FAILURE,
    SIGNAL_KEY,
    SIGNAL_ORDER,
    BatchInput,
    CorrelateOptions,
    FollowedRows,
    batch_input,
    merged_arrivals,
    signal_schema,
    signal_table,
    signals_of_files,
    whole_pass,
)
from qmf.pipeline.correlate.evaluation import AT, EvaluationCounts, EvaluationPass
from qmf.pipeline.correlate.signal_reader import SignalReader, SignalRow, signal_rows
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.runners.runner import Rows, Runner

#: The columns of a reduce besides those of the table: numbers of signals, and failures, in rows of their own.
_NUMBERS = ("signals", "misdated")

#: What a row is: an alert, or something else about the evaluation.
_ROW, _ALERT, _OTHER = "row", "alert", "other"


@attrs.frozen
class BatchResult:
    """The result of a batch."""

    table: AlertTable  #: of the alerts
    rows: int  #: of the table
    counts: EvaluationCounts  #: of the signals
    #: a line for each rule that was left out as it doesn't fit its class, and for each expression that could not be
    #: computed for some rows. The other rules, and other rows, were evaluated
    failures: tuple[str, ...] = ()


@attrs.frozen
class LakeAlerts:
    """What the rules find in a lake: the alerts in order, and counts and failures as of `BatchResult`."""

    alerts: Sequence[AlertRow]
    counts: EvaluationCounts
    failures: tuple[str, ...]


def correlate_batch(
    runner: Runner, options: CorrelateOptions, print_line: Callable[[str], None], *, until: int | None = None
) -> BatchResult:
    """Evaluate the rules over a lake, and write the table.

    Args:
        runner, options: where to run, and what.
        print_line: called for each class of a rule that the lake doesn't have.
        until: evaluate the time before this only, ns since 1970; None for all.

    Raises:
        LakeError: no lake, or the table cannot be written.
    """
    table = AlertTable(options.out, "batch")
    with _open_evaluation(runner, options, print_line, until) as (alerts, others):
        rows = table.replace(alerts)
        return BatchResult(table, rows, *others())


def evaluate_lake(
    runner: Runner, options: CorrelateOptions, print_line: Callable[[str], None], *, until: int | None = None
) -> LakeAlerts:
    """Evaluate the rules over a lake, and write nothing; otherwise as `correlate_batch`."""
    with _open_evaluation(runner, options, print_line, until) as (alerts, others):
        rows = alerts.select(COLUMNS).table().to_pylist()
        return LakeAlerts(in_order(AlertRow(**row) for row in rows), *others())


@contextmanager
def _open_evaluation(
    runner: Runner, options: CorrelateOptions, print_line: Callable[[str], None], until: int | None
) -> Iterator[tuple[Rows, Callable[[], tuple[EvaluationCounts, tuple[str, ...]]]]]:
    """The rows of the table, wherever they are, and what finds counts and failures."""
    given, files = batch_input(options, print_line)
    with closing(SignalReader(given.plan, given.late, given.schemas, strict=False)) as reader:
        errors, left_out = reader.errors, reader.left_out
    tasks = runner.portions(files)
    # A few rows for each run of a recorder and each goodbye of an agent: what places all rows in time.
    over = whole_pass(merged_arrivals(runner.each(tasks, given.times)), given.late, until)
    own = {path: files[path] for path in given.plan.followed_paths if path in files}
    followed = [FollowedRows(portion) for portion in runner.portions(own)]
    signals = signals_of_files(runner, given, tasks, followed, signal_schema())
    expected = [(*row, None) for row in given.evaluator(left_out).expected_signals(over)]
    if expected:
        signals = signals.union(runner.from_arrow(signal_table(expected)))
    work = partial(_alerts, given, left_out, over)
    with signals.reduce(SIGNAL_KEY, work, _alert_schema(), order=SIGNAL_ORDER).persist() as found:
        yield (
            found.where(_ROW, [_ALERT]).select(arrow_table([], None).schema.names),
            partial(_others, found, (*options.wrong, *errors)),
        )


def _others(found: Rows, errors: Sequence[str]) -> tuple[EvaluationCounts, tuple[str, ...]]:
    rows = found.where(_ROW, [_OTHER]).select([*_NUMBERS, "number", FAILURE]).table().to_pylist()
    failed = {row["number"]: row[FAILURE] for row in rows if row[FAILURE] is not None}
    counts = EvaluationCounts(*(sum(row[name] or 0 for row in rows) for name in _NUMBERS))
    return counts, (*errors, *(text for _number, text in sorted(failed.items())))


# -- the map, and the reduce


def _alerts(
    given: BatchInput, left_out: frozenset[int], over: EvaluationPass, _connection: Any, batches: Iterator[Any]
) -> Iterator[Any]:
    """The alerts of signals, and the numbers and failures of these."""
    pa = import_pyarrow()
    failed: dict[int, str] = {}

    def portions() -> Iterator[list[SignalRow]]:
        for batch in batches:
            rows = signal_rows(batch)
            failed.update((row[0], row[-1]) for row in rows if row[AT] is None)
            yield [row[:-1] for row in rows if row[AT] is not None]

    evaluator, schema = given.evaluator(left_out), _alert_schema()
    for table in alert_tables(evaluator.batch(portions(), over)):
        yield from fill_columns(table, schema, _ROW, _ALERT).to_batches()
    others: list[dict[str, Any]] = [{"signals": evaluator.rows, "misdated": evaluator.misdated}]
    others += [{"number": number, FAILURE: text} for number, text in failed.items()]
    yield from pa.Table.from_pylist([{_ROW: _OTHER, **row} for row in others], schema).to_batches()


def _alert_schema() -> Any:
    pa = import_pyarrow()
    numbers = [(name, pa.int64()) for name in (*_NUMBERS, "number")]
    return pa.schema([*arrow_table([], None).schema, *numbers, (FAILURE, pa.string()), (_ROW, pa.string())])
