"""`qmf-pipeline correlate`."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from qmf.pipeline.commands.base import (
    Subcommand,
    add_days,
    add_stream,
    print_line,
    spark_session,
)
from qmf.pipeline.commands.notify_options import add_notify, open_notifier
from qmf.pipeline.correlate import load_rules
from qmf.pipeline.correlate.message_templates import iso
from qmf.pipeline.correlate.options import CorrelateOptions
from qmf.pipeline.durations import parse_duration
from qmf.pipeline.shutdown import stop_on_signals

if TYPE_CHECKING:
    from qmf.pipeline.correlate.alerts import AlertRow
    from qmf.pipeline.correlate.stream import CorrelationStream
    from qmf.pipeline.notifying.job import JobNotifier

#: Default of `--late`.
_LATE = "30 seconds"

#: Seconds between checks for new commits, at least.
_TICK = 0.05


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rules", required=True, metavar="FILE", help="rules, in TOML")
    parser.add_argument("--out", metavar="DIR", help="folder of the tables; default: LAKE/_tables/correlate")
    add_days(parser)
    add_stream(parser)
    parser.set_defaults(late=_LATE)
    add_notify(parser)


def _run(options: argparse.Namespace) -> None:
    rules = load_rules(options.rules)
    out = options.out or f"{options.lake.rstrip('/')}/_tables/correlate"
    correlate_options = CorrelateOptions(
        lake=options.lake,
        out=out,
        rules=rules,
        file=options.rules,
        first=options.first,
        last=options.last,
        late=parse_duration(options.late),
    )
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        spark = stack.enter_context(spark_session(options))
        reporter = open_notifier(stack, options, correlate_options, stop)
        if not options.stream:
            from qmf.pipeline.correlate.batch import correlate_batch

            result = correlate_batch(spark, correlate_options, print_line)
            _print_alerts(result.alerts)
            print_line(f"Wrote {len(result.alerts)} rows to {out}/batch; {result.counts}")
            if reporter is not None:
                reporter.report_batch(result.alerts)
                reporter.drain(stop)
            return
        from qmf.pipeline.correlate.stream import CorrelationStream

        stream = CorrelationStream(spark, correlate_options, print_line)
        stack.callback(stream.close)
        print_line(f"Following {options.lake} with {len(rules)} rules")
        _follow(stream, reporter, stop, parse_duration(options.every) / 10**9, once=options.once)


def _follow(
    stream: CorrelationStream,
    reporter: JobNotifier | None,
    stop: threading.Event,
    every: float,
    *,
    once: bool,
) -> None:
    totals = None
    alerts = steps = 0
    seconds = 0.0
    if reporter is not None:
        reporter.catch_up(stream.table)
    while not stop.is_set():
        step = stream.step()
        if step is not None:
            _print_alerts(step.alerts)
            steps, alerts, seconds = steps + 1, alerts + len(step.alerts), seconds + step.seconds
            totals = step.counts if totals is None else totals + step.counts
            if reporter is not None:
                reporter.report_step(step)
        elif not stream.is_behind():
            if reporter is not None:
                reporter.report_present()
            if once:
                if reporter is not None:
                    reporter.drain(stop)
                break
            stop.wait(max(every, _TICK))
    busy = f"; {totals}" if totals is not None else ""
    print_line(f"{steps} steps in {seconds:.1f} s, {alerts} rows written{busy}")


def _print_alerts(alerts: Sequence[AlertRow]) -> None:
    for alert in alerts:
        change, text = ("raised ", alert.message) if alert.raised else ("cleared", alert.reason)
        print_line(f"{iso(alert.at_ns)} {change} {alert.rule}: {text} ({alert.subject})")


COMMAND = Subcommand("correlate", "Evaluate rules, and raise alerts", _options, _run, spark=True)
