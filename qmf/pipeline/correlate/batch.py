"""The job as a batch: all rules over a whole lake, the alerts into a table.

A batch replaces the table of the batch before; running it again gives the same rows, with the same ids. It knows
nothing from before its first day: an alert that was open then is found when its rule is fulfilled again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing

import attrs

from qmf.pipeline.correlate.alert_table import AlertTable
from qmf.pipeline.correlate.alerts import AlertRow, in_order
from qmf.pipeline.correlate.batch_input import batch_input, whole_pass
from qmf.pipeline.correlate.evaluation import EvaluationCounts, counted
from qmf.pipeline.correlate.options import CorrelateOptions


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
    given, files = batch_input(options, print_line)
    over = whole_pass(given.times(files), options.late, until)
    with closing(given.reader()) as reader:
        counts = [EvaluationCounts()]
        portions = counted(reader.signals(given.rows(files)), over, counts)
        alerts = in_order(given.evaluator(reader.left_out).batch(portions, over))
        failures = all_failures(options, reader.errors, reader.failures)
    return BatchResult(alerts, counts[0], failures)


def all_failures(options: CorrelateOptions, errors: Iterable[str], failures: Mapping[int, str]) -> tuple[str, ...]:
    """The failures of a batch.

    Args:
        options: of the job.
        errors: about rules that don't fit their class.
        failures: expressions that could not be computed for some rows, by the number of the rule.
    """
    return (*options.wrong, *errors, *(text for _number, text in sorted(failures.items())))
