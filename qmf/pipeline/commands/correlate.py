"""`qmf-pipeline correlate`."""

from __future__ import annotations

import argparse
import platform
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from qmf.pipeline.commands.base import DEFAULT_URL, Command, add_days, add_stream, duration, print_line, spark_session
from qmf.pipeline.correlate import Rule, load_rules
from qmf.pipeline.correlate.message_templates import iso
from qmf.pipeline.durations import parse_duration
from qmf.pipeline.shutdown import stop_on_signals

if TYPE_CHECKING:
    from qmf.pipeline.correlate.alerts import Alert
    from qmf.pipeline.correlate.reporter import CorrelationReporter
    from qmf.pipeline.correlate.stream import CorrelationStream

#: Time that rows may be late, unless the user says otherwise.
_LATE = "30 seconds"

#: Seconds between looks at the lake at least.
_TICK = 0.05


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rules", required=True, metavar="FILE", help="rules, in TOML")
    parser.add_argument("--out", metavar="DIR", help="where the tables go; default: LAKE/_tables/correlate")
    add_days(parser)
    add_stream(parser)
    parser.set_defaults(late=_LATE)
    parser.add_argument("--raise", dest="tell", action="store_true", help="raise the alerts on the bus, as an agent")
    parser.add_argument("-b", "--broker", default=DEFAULT_URL, metavar="URL", help="for --raise; default: %(default)s")
    parser.add_argument("--domain", default="default", help="QMF domain, for --raise; default: %(default)s")
    parser.add_argument("--instance", metavar="NAME", help="last part of the agent's name; default: the machine's")
    parser.add_argument(
        "--max-age",
        type=duration,
        default="1 hour",
        metavar="TIME",
        help="--raise leaves out what ended longer ago than this",
    )


def _run(options: argparse.Namespace) -> None:
    rules = load_rules(options.rules)
    late, max_age, every = (parse_duration(text) for text in (options.late, options.max_age, options.every))
    out = options.out or f"{options.lake.rstrip('/')}/_tables/correlate"
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        spark = stack.enter_context(spark_session(options))
        from qmf.pipeline.correlate.batch import CorrelateOptions, correlate_batch

        raising = _raising(stack, options, rules, out, late, max_age, stop) if options.tell else None
        chosen = CorrelateOptions(
            lake=options.lake,
            out=out,
            rules=rules,
            file=options.rules,
            first=options.first,
            last=options.last,
            late=late,
        )
        if not options.stream:
            found = correlate_batch(spark, chosen, print_line)
            _tell_user(found.alerts)
            print_line(f"Wrote {len(found.alerts)} rows to {out}/batch; {found.counts}")
            if raising is not None:
                raising.batch(found.alerts)
            return
        from qmf.pipeline.correlate.stream import CorrelationStream

        follower = CorrelationStream(spark, chosen, print_line)
        stack.callback(follower.close)
        print_line(f"Following {options.lake} with {len(rules)} rules")
        _follow(follower, raising, stop, every / 10**9, once=options.once)


def _follow(
    follower: CorrelationStream, raising: CorrelationReporter | None, stop: threading.Event, every: float, *, once: bool
) -> None:
    totals = None
    alerts = steps = 0
    seconds = 0.0
    if raising is not None:
        raising.catch_up(follower.table)
    while not stop.is_set():
        step = follower.step()
        if step is not None:
            _tell_user(step.alerts)
            steps, alerts, seconds = steps + 1, alerts + len(step.alerts), seconds + step.seconds
            totals = step.counts if totals is None else totals + step.counts
            if raising is not None:
                raising.step(step)
        elif not follower.behind():
            if raising is not None:
                raising.present()
            if once:
                break
            stop.wait(max(every, _TICK))
    busy = f"; {totals}" if totals is not None else ""
    print_line(f"{steps} steps in {seconds:.1f} s, {alerts} rows written{busy}")


def _raising(
    stack: ExitStack,
    options: argparse.Namespace,
    rules: tuple[Rule, ...],
    out: str,
    late: int,
    max_age: int,
    stop: threading.Event,
) -> CorrelationReporter:
    from qmf.pipeline.correlate.reporter import CorrelationReporter

    raising = CorrelationReporter(
        options.broker,
        rules,
        out,
        stop,
        lake=options.lake,
        late=late,
        max_age=max_age,
        domain=options.domain,
        instance=options.instance or platform.node() or "localhost",
    )
    stack.callback(raising.close)
    print_line(f"Raising alerts at {options.broker} as {raising.name}")
    return raising


def _tell_user(alerts: Sequence[Alert]) -> None:
    for alert in alerts:
        what, text = ("raised ", alert.message) if alert.raised else ("cleared", alert.reason)
        print_line(f"{iso(alert.at_ns)} {what} {alert.rule}: {text} ({alert.subject})")


COMMAND = Command("correlate", "Look for the patterns of rules, and raise alerts", _options, _run, spark=True)
