"""The job as a batch: all rules over a whole lake, the alerts into a table.

A batch replaces the table of the batch before; running it again gives the same rows, with the same ids. It knows
nothing from before its first day: an alert that was open then is found when its rule is fulfilled again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

import attrs

from qmf.pipeline.correlate.alert_table import AlertTable
from qmf.pipeline.correlate.alerts import AlertRow, in_order
from qmf.pipeline.correlate.evaluation import EvaluationCounts, EvaluationPass, Evaluator, counted
from qmf.pipeline.correlate.event_time import outages
from qmf.pipeline.correlate.lake_rows import TIME_PATHS, Arrivals, LakeRows
from qmf.pipeline.correlate.options import CorrelateOptions
from qmf.pipeline.correlate.plan import completed, read_plan
from qmf.pipeline.correlate.signal_reader import SignalReader
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.delta_lake import DeltaLake

_EARLIEST = -(1 << 62)


@attrs.frozen
class BatchResult:
    """The result of a batch.

    Attributes:
        alerts: rows of the table, by time.
        counts: of the signals.
        failures: a line for each rule that was left out as it doesn't fit its class, and for each expression that
            could not be computed for some rows. The other rules, and other rows, were evaluated.
    """

    alerts: Sequence[AlertRow]
    counts: EvaluationCounts
    failures: tuple[str, ...] = ()


def correlate_batch(
    options: CorrelateOptions, print_line: Callable[[str], None], *, until: int | None = None
) -> BatchResult:
    """Evaluate the rules over a lake, and write the table.

    Args:
        options: of the job.
        print_line: called for each class of a rule that the lake doesn't have.
        until: evaluate the time before this only, ns since 1970; None for all.

    Raises:
        LakeError: no lake.
    """
    result = evaluate_lake(options, print_line, until=until)
    AlertTable(options.out, "batch").replace(result.alerts)
    return result


def evaluate_lake(
    options: CorrelateOptions, print_line: Callable[[str], None], *, until: int | None = None
) -> BatchResult:
    """Evaluate the rules over a lake, and write nothing; otherwise as `correlate_batch`."""
    lake = DeltaLake(options.lake, options.storage)
    known = lake.classes()
    if not known and not lake.versions(TIME_PATHS):
        raise LakeError(f"{options.lake}: no lake, or nothing in it yet")
    plan = read_plan(options.rules, known)
    for text in plan.missing:
        print_line(text)
    with closing(LakeRows(lake, options.late)) as rows:
        paths = SignalReader.paths(plan)
        found = rows.all_rows([*dict.fromkeys([*paths, *TIME_PATHS])], options.first, options.last)
        arrivals = rows.arrivals(found)
        rules = completed(options.rules, plan)
        with closing(SignalReader(plan, options.late, rows.schemas(paths), strict=False)) as reader:
            reader.follow(found)
            evaluator = Evaluator(rules, [rule.hash for rule in options.rules])
            evaluator.left_out = reader.left_out
            counts = [EvaluationCounts()]
            over = attrs.evolve(_whole_pass(arrivals, until), dated=options.late > 0)
            alerts = in_order(evaluator.batch(counted(reader.signals(found), over, counts), over))
            failures = (*options.wrong, *reader.errors, *reader.failures.values())
    return BatchResult(alerts, counts[0], failures)


def _whole_pass(arrivals: Arrivals, until: int | None) -> EvaluationPass:
    last = max((last for _, last in arrivals.runs.values()), default=-1)
    end = last + 1 if until is None else min(until, last + 1)
    return EvaluationPass(
        begin=_EARLIEST,
        end=end,
        start=min((first for first, _ in arrivals.runs.values()), default=end),
        goodbyes=[item for item in arrivals.goodbyes if item[0] < end],
        outages=outages(arrivals.runs, arrivals.changes),
    )
