"""`qmf-pipeline correlate`."""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from qmf.pipeline.commands.base import Subcommand, add_days, add_stream, print_line
from qmf.pipeline.commands.notify_options import add_notify, open_notifier
from qmf.pipeline.commands.running import job_runner, runs_on_spark
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.shutdown import stop_on_signals
from qmf.views.times import parse_duration

if TYPE_CHECKING:
    from qmf.pipeline.correlate.alerts import AlertRow
    from qmf.pipeline.correlate.options import CorrelateOptions
    from qmf.pipeline.correlate.rule_watch import RuleWatch
    from qmf.pipeline.correlate.stream import CorrelationStream
    from qmf.pipeline.notifying.job import JobNotifier
    from qmf.pipeline.runners.runner import Runner

#: Seconds between looks for new rows: a look costs a few milliseconds, and alerts wait for it.
_POLL_INTERVAL = 0.05


def _options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Evaluate rules, and raise alerts, in this process, or on Spark by --master or --conf."
    parser.add_argument("--rules", required=True, metavar="FILE", help="rules, in TOML; see qmf-pipeline rules")
    parser.add_argument("--out", metavar="DIR", help="folder of the tables; default: LAKE/_tables/correlate")
    add_days(parser)
    add_stream(parser)
    parser.set_defaults(late="0 seconds", every="1 seconds")
    add_notify(parser)


def _run(options: argparse.Namespace) -> None:
    from qmf.pipeline.correlate.options import CorrelateOptions
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
            if runs_on_spark(options):
                raise PipelineError("correlate: --stream runs in the process of the command: leave out --master")
            _stream(stack, options, correlate_options, notifier, stop)
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


def _stream(
    stack: ExitStack,
    options: argparse.Namespace,
    correlate_options: CorrelateOptions,
    notifier: JobNotifier | None,
    stop: threading.Event,
) -> None:
    from qmf.pipeline.correlate.rule_watch import RuleWatch, read_again_on_hangup
    from qmf.pipeline.correlate.stream import CorrelationStream

    watch = RuleWatch(options.rules, print_line)
    stack.enter_context(read_again_on_hangup(watch))
    stream = CorrelationStream(correlate_options, print_line)
    stack.callback(stream.close)
    print_line(f"Following {options.lake} with {len(correlate_options.rules)} rules")
    every = parse_duration(options.every) / 10**9
    _follow(stream, notifier, watch, stop, every, once=options.once)


def _follow(
    stream: CorrelationStream,
    notifier: JobNotifier | None,
    watch: RuleWatch,
    stop: threading.Event,
    every: float,
    *,
    once: bool,
) -> None:
    totals = None
    alerts = steps = 0
    seconds = 0.0
    if notifier is not None:
        notifier.catch_up(stream.table)
    while not stop.is_set():
        started = time.monotonic()
        _reload(stream, notifier, watch)
        step = stream.step()
        if step is not None:
            print_alerts(step.alerts)
            steps, alerts, seconds = steps + 1, alerts + len(step.alerts), seconds + step.seconds
            totals = step.counts if totals is None else totals + step.counts
            if notifier is not None:
                notifier.report_step(step, stream.pending())
            if not once:
                stop.wait(max(0.0, every - (time.monotonic() - started)))
            continue
        if notifier is not None:
            notifier.report_present()
        if once:
            if notifier is not None:
                notifier.drain(stop)
            break
        stop.wait(min(every, _POLL_INTERVAL))
    busy = f"; {totals}" if totals is not None else ""
    print_line(f"{steps} steps in {seconds:.1f} s, {alerts} rows written{busy}")


def _reload(stream: CorrelationStream, notifier: JobNotifier | None, watch: RuleWatch) -> None:
    """Take over the rules of the file, if it was changed."""
    from qmf.pipeline.correlate.rule_table import RuleError

    rules = watch.changed()
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
