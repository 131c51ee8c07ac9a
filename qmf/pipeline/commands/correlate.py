"""`qmf-pipeline correlate`."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from qmf.pipeline.commands.base import Subcommand, add_days, add_stream, print_line
from qmf.pipeline.commands.notify_options import add_notify, open_notifier
from qmf.pipeline.commands.running import job_runner, runs_on_spark
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.lake.table_paths import CHECKPOINT
from qmf.pipeline.shutdown import stop_on_signals
from qmf.views.times import parse_duration

if TYPE_CHECKING:
    from qmf.pipeline.correlate.alerts import AlertRow
    from qmf.pipeline.correlate.batch_input import CorrelateOptions
    from qmf.pipeline.correlate.evaluation import EvaluationCounts
    from qmf.pipeline.correlate.rule_file import RuleWatch
    from qmf.pipeline.correlate.rule_stream import RuleStream
    from qmf.pipeline.lake.lake_versions import LakeVersions
    from qmf.pipeline.notifying.job import JobNotifier
    from qmf.pipeline.runners.runner import Runner

#: Seconds between looks for new rows: a look costs a few milliseconds, and alerts wait for it.
_POLL_INTERVAL = 0.05

#: Seconds between micro-batches of Spark at least, though nothing is new: time goes on where nothing is recorded.
_TICK = 5.0


def _options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Evaluate rules, and raise alerts, in this process, or on Spark by --master or --conf."
    parser.add_argument("--rules", required=True, metavar="FILE", help="rules, in TOML; see qmf-pipeline rules")
    parser.add_argument("--out", metavar="DIR", help="folder of the tables; default: LAKE/_tables/correlate")
    add_days(parser)
    add_stream(parser)
    parser.set_defaults(late="0 seconds", every="1 seconds")
    add_notify(parser)


def _run(options: argparse.Namespace) -> None:
    from qmf.pipeline.correlate.batch_input import CorrelateOptions
    from qmf.pipeline.correlate.rule_file import load_valid_rules

    rules, wrong = load_valid_rules(options.rules)
    out = options.out or f"{options.lake.rstrip('/')}/_tables/correlate"
    correlate_options = CorrelateOptions(
        lake=options.lake,
        out=out,
        rules=rules,
        first=options.first,
        last=options.last,
        late=parse_duration(options.late),
        storage=dict(options.storage),
        wrong=wrong,
    )
    with ExitStack() as stack:
        runner = stack.enter_context(job_runner(options))
        stop = stack.enter_context(stop_on_signals())
        notifier = open_notifier(stack, options, correlate_options, stop)
        if options.stream:
            stream = _open_stream(stack, runner if runs_on_spark(options) else None, correlate_options)
            follower = _Follower(stream, notifier, _watch(stack, options), stop)
            print_line(f"Following {options.lake} with {len(rules)} rules")
            follower.follow(runner, parse_duration(options.every) / 10**9, once=options.once)
        else:
            _batch(runner, correlate_options, notifier, stop)


def _batch(runner: Runner, options: CorrelateOptions, notifier: JobNotifier | None, stop: threading.Event) -> None:
    from qmf.pipeline.correlate.batch import correlate_batch

    result = correlate_batch(runner, options, print_line)
    print_alerts(result.table.in_order())
    print_line(f"Wrote {result.rows} rows to {options.out}/batch; {result.counts}")
    if notifier is not None:
        notifier.report_batch(list(result.table.in_order()))
        notifier.drain(stop)
    _check_failures(result.failures)


def _check_failures(failures: Sequence[str]) -> None:
    if failures:
        raise PipelineError("\n".join(["rules failed; the others were evaluated", *failures]))


def _watch(stack: ExitStack, options: argparse.Namespace) -> RuleWatch:
    from qmf.pipeline.correlate.rule_file import RuleWatch, read_again_on_hangup

    watch = RuleWatch(options.rules, print_line)
    stack.enter_context(read_again_on_hangup(watch))
    return watch


def _open_stream(stack: ExitStack, runner: Runner | None, options: CorrelateOptions) -> RuleStream:
    """The stream; `runner` makes its steps, None for this process."""
    from qmf.pipeline.correlate.stream import CorrelationStream
    from qmf.pipeline.correlate.task_stream import TaskCorrelationStream

    if runner is None:
        return stack.enter_context(CorrelationStream(options, print_line))
    return stack.enter_context(TaskCorrelationStream(runner, options, print_line))


class _Follower:
    """Makes the steps of a stream, prints and reports what they find."""

    def __init__(
        self,
        stream: RuleStream,
        notifier: JobNotifier | None,
        watch: RuleWatch,
        stop: threading.Event,
    ) -> None:
        self._stream, self._notifier, self._watch, self._stop = stream, notifier, watch, stop
        self._totals: EvaluationCounts | None = None
        self._alerts = self._steps = 0
        self._seconds = 0.0

    def follow(self, runner: Runner, every: float, *, once: bool) -> None:
        """Make steps until a signal, or until all is read that is there now."""
        from qmf.pipeline.runners.runner import Pace

        if self._notifier is not None:
            self._notifier.catch_up(self._stream.table)
        pace = Pace(every=every, poll=min(every, _POLL_INTERVAL), tick=max(every, _TICK), once=once)
        checkpoint = f"{self._stream.table.table.url}/{CHECKPOINT}"
        runner.follow(self._stream.lake, checkpoint, self._step, pace, self._stop)
        if once and self._notifier is not None and not self._stop.is_set():
            self._notifier.drain(self._stop)
        busy = f"; {self._totals}" if self._totals is not None else ""
        print_line(f"{self._steps} steps in {self._seconds:.1f} s, {self._alerts} rows written{busy}")

    def _step(self, until: LakeVersions | None) -> bool:
        _reload(self._stream, self._notifier, self._watch)
        step = self._stream.step(until)
        if step is None:
            if self._notifier is not None:
                self._notifier.report_present()
            return False
        print_alerts(step.alerts)
        self._steps, self._alerts = self._steps + 1, self._alerts + len(step.alerts)
        self._seconds += step.seconds
        self._totals = step.counts if self._totals is None else self._totals + step.counts
        if self._notifier is not None:
            self._notifier.report_step(step, self._stream.pending())
        return True


def _reload(stream: RuleStream, notifier: JobNotifier | None, watch: RuleWatch) -> None:
    """Take over the rules of the file, if it was changed."""
    from qmf.pipeline.correlate.rule_table import RuleError

    rules = watch.changed_rules()
    if rules is None:
        return
    try:
        stream.replace_rules(rules)
    except RuleError as error:
        watch.refuse(error)
        return
    if notifier is not None:
        notifier.replace_rules(rules)


def print_alerts(alerts: Iterable[AlertRow]) -> None:
    """Print a line for each change of an alert."""
    from qmf.pipeline.correlate.message_templates import iso

    for alert in alerts:
        text = alert.reason if alert.cleared else alert.message
        print_line(f"{iso(alert.at_ns)} {alert.change:<7} {alert.rule}: {text} ({alert.subject})")


COMMAND = Subcommand("correlate", "Evaluate rules, and raise alerts", _options, _run, spark=True)
