"""`qmf-pipeline correlate`, and `rules check`, `rules test` and `rules try`."""

from __future__ import annotations

import argparse
import platform
import threading
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from qmf._text_files import read_text
from qmf.pipeline.commands.base import (
    Subcommand,
    add_broker,
    add_days,
    add_options,
    add_stream,
    broker_target,
    check_lake,
    duration,
    print_line,
    print_or_stop,
)
from qmf.pipeline.commands.running import job_runner, runs_on_spark, stop_on_signals
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.location import CHECKPOINT, local_path
from qmf.views.times import parse_duration

if TYPE_CHECKING:
    from qmf.pipeline.correlate.alerts import AlertRow
    from qmf.pipeline.correlate.batch_input import CorrelateOptions
    from qmf.pipeline.correlate.evaluation import EvaluationCounts
    from qmf.pipeline.correlate.reporter import CorrelationReporter
    from qmf.pipeline.correlate.rule_file import RuleWatch
    from qmf.pipeline.correlate.rule_stream import RuleStream
    from qmf.pipeline.lake.lake_versions import LakeVersions
    from qmf.pipeline.notifying.notifier import JobNotifier
    from qmf.pipeline.runners.runner import Runner


def _open_notifier(
    stack: ExitStack, options: argparse.Namespace, correlate_options: CorrelateOptions, stop: threading.Event
) -> JobNotifier | None:
    """The notifier of a job, closed with the stack; None where nobody is to be notified."""
    from qmf.pipeline.notifying.config import bus_config
    from qmf.pipeline.notifying.config_file import ConfigSource
    from qmf.pipeline.notifying.notifier import JobNotifier
    from qmf.pipeline.notifying.overview import NOTIFY_FOLDER

    source = ConfigSource(notify=options.notify, rules=Path(options.rules), publish=options.publish)
    config = source.read()
    if config is None:
        return None
    folder = Path(options.state) if options.state else local_path(correlate_options.out) / NOTIFY_FOLDER
    bus = _bus(stack, options, correlate_options, stop) if config.uses_bus else None
    notifier = JobNotifier(
        folder,
        source,
        config,
        correlate_options.rules,
        print_or_stop(stop.set),  # its threads must outlive a failure to print
        bus=bus,
        max_age=parse_duration(options.max_age),
    )
    stack.callback(notifier.close)
    stack.callback(stop.set)  # what waits for the broker then ends
    if config != bus_config():  # which has a line of its own
        print_line(f"Notifying {', '.join(sorted(config.integrations)) or 'nobody'}")
    return notifier


def _bus(
    stack: ExitStack, options: argparse.Namespace, correlate_options: CorrelateOptions, stop: threading.Event
) -> CorrelationReporter:
    from qmf.pipeline.correlate.reporter import CorrelationReporter

    target = broker_target(options)
    reporter = CorrelationReporter(
        target.make_bus(),
        correlate_options.rules,
        correlate_options.out,
        stop,
        lake=options.lake,
        late=correlate_options.late,
        domain=target.domain,
        instance=options.instance or platform.node() or "localhost",
    )
    stack.callback(reporter.close)
    print_line(f"Raising alerts at {target} as {reporter.name}")
    return reporter


#: Seconds between looks for new rows: a look costs a few milliseconds, and alerts wait for it.
_POLL_INTERVAL = 0.05

#: Seconds between micro-batches of Spark at least, though nothing is new: time goes on where nothing is recorded.
_TICK = 5.0


def _options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Evaluate rules, and raise alerts, in this process, or on Spark by --master or --conf."
    text = """
        --rules FILE  rules, in TOML; see qmf-pipeline rules
        --out DIR  folder of the tables; default: LAKE/_tables/correlate
    """
    add_options(parser, text, rules={"required": True})
    add_days(parser)
    add_stream(parser, every="1 seconds", late="0 seconds")
    text = """
        --notify FILE  routes and receivers of notifications, in TOML; default: those in the file of the rules
        --state DIR  folder of the notifications' state; default: OUT/_notify
        --raise  publish every alert on the bus, as an agent
        --instance NAME  last part of the agent's name; default: the machine's name
        --max-age TIME  nobody is notified of alerts that ended longer ago than this
    """
    age = {"type": duration, "default": "1 hour"}
    add_options(parser, text, notify={"type": Path}, max_age=age, **{"raise": {"dest": "publish"}})
    add_broker(parser, "for --raise, and receivers that are the bus: ")


def _job_options(options: argparse.Namespace, rules_file: str, out: str) -> CorrelateOptions:
    from qmf.pipeline.correlate.batch_input import CorrelateOptions
    from qmf.pipeline.correlate.rule_file import load_valid_rules

    rules, wrong = load_valid_rules(rules_file)
    return CorrelateOptions(
        lake=options.lake,
        out=out,
        rules=rules,
        first=options.first,
        last=options.last,
        late=parse_duration(options.late),
        storage=dict(options.storage),
        wrong=wrong,
    )


def _run(options: argparse.Namespace) -> None:
    out = options.out or f"{options.lake.rstrip('/')}/_tables/correlate"
    correlate_options = _job_options(options, options.rules, out)
    with ExitStack() as stack:
        runner = stack.enter_context(job_runner(options))
        stop = stack.enter_context(stop_on_signals())
        notifier = _open_notifier(stack, options, correlate_options, stop)
        if options.stream:
            from qmf.pipeline.correlate.rule_file import RuleWatch, read_again_on_hangup
            from qmf.pipeline.correlate.stream import CorrelationStream
            from qmf.pipeline.correlate.task_stream import TaskCorrelationStream

            watch = RuleWatch(options.rules, print_line)
            stack.enter_context(read_again_on_hangup(watch))
            if runs_on_spark(options):
                stream: RuleStream = TaskCorrelationStream(runner, correlate_options, print_line)
            else:
                stream = CorrelationStream(correlate_options, print_line)
            follower = _Follower(stack.enter_context(stream), notifier, watch, stop)
            print_line(f"Following {options.lake} with {len(correlate_options.rules)} rules")
            follower.follow(runner, parse_duration(options.every) / 10**9, once=options.once)
        else:
            _batch(runner, correlate_options, notifier, stop)


def _batch(runner: Runner, options: CorrelateOptions, notifier: JobNotifier | None, stop: threading.Event) -> None:
    from qmf.pipeline.correlate.batch import correlate_batch

    result = correlate_batch(runner, options, print_line)
    _print_alerts(result.table.in_order())
    print_line(f"Wrote {result.rows} rows to {options.out}/batch; {result.counts}")
    if notifier is not None:
        notifier.report_batch(result.table.in_order())
        notifier.finish(stop)
    _check_failures(result.failures)


def _check_failures(failures: Sequence[str]) -> None:
    """Raise the failures of rules, if there are any."""
    if failures:
        raise PipelineError("\n".join(["rules failed; the others were evaluated", *failures]))


class _Follower:
    """Makes the steps of a stream, prints and reports what they find."""

    def __init__(
        self, stream: RuleStream, notifier: JobNotifier | None, watch: RuleWatch, stop: threading.Event
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
            self._notifier.finish(self._stop)
        busy = f"; {self._totals}" if self._totals is not None else ""
        print_line(f"{self._steps} steps in {self._seconds:.1f} s, {self._alerts} rows written{busy}")

    def _step(self, until: LakeVersions | None) -> bool:
        self._take_changed_rules()
        step = self._stream.step(until)
        if step is None:
            if self._notifier is not None:
                self._notifier.release()
            return False
        _print_alerts(step.alerts)
        self._steps, self._alerts = self._steps + 1, self._alerts + len(step.alerts)
        self._seconds += step.seconds
        self._totals = step.counts if self._totals is None else self._totals + step.counts
        if self._notifier is not None:
            self._notifier.report_step(step, self._stream.pending())
        return True

    def _take_changed_rules(self) -> None:
        from qmf.pipeline.correlate.rules import RuleError

        rules = self._watch.changed_rules()
        if rules is None:
            return
        try:
            self._stream.replace_rules(rules)
        except RuleError as error:
            self._watch.refuse(error)
            return
        if self._notifier is not None:
            self._notifier.replace_rules(rules)


def _print_alerts(alerts: Iterable[AlertRow]) -> None:
    """Print a line for each change of an alert."""
    from qmf.pipeline.correlate.message_templates import iso

    for alert in alerts:
        text = alert.reason if alert.cleared else alert.message
        print_line(f"{iso(alert.at_ns)} {alert.change:<7} {alert.rule}: {text} ({alert.subject})")


CORRELATE = Subcommand("correlate", "Evaluate rules, and raise alerts", _options, _run, spark=True)


def _check_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="rules, in TOML")
    text = """
        --lake DIR  a lake whose classes the rules must fit
        --schema FILE  a schema in XML, whose classes count as well; may be repeated
    """
    add_options(parser, text, schema={"action": "append", "type": Path, "default": []})


def _test_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="tests, in TOML")


def _try_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="rules, in TOML")
    add_days(parser)
    late = {"type": duration, "default": "0 seconds"}
    add_options(parser, "--late TIME  how long rows may be late, as of correlate", late=late)


def _check(options: argparse.Namespace) -> None:
    from qmf.pipeline.correlate.rule_checks import check_rules
    from qmf.pipeline.correlate.rules import RuleError
    from qmf.pipeline.notifying.config_file import config_errors

    errors: list[str] = []
    lake = None
    if options.lake is not None:
        check_lake(options.lake)
        lake = DeltaLake(options.lake)
    for file in options.files:
        try:
            others = [
                error.at(file) for error in config_errors(read_text(file, PipelineError), folder=Path(file).parent)
            ]
            rules, missing = check_rules(file, lake, options.schema, others)
        except RuleError as error:
            errors += str(error).splitlines()
            continue
        for text in missing:
            print_line(f"{file}: {text}")
        print_line(f"{file}: {len(rules)} rules, no error")
    if errors:
        raise PipelineError("\n".join([f"{len(errors)} error{'s' if len(errors) > 1 else ''}", *errors]))


def _test(options: argparse.Namespace) -> None:
    from qmf.pipeline.correlate.rule_tests import load_rule_tests, run_rule_tests

    failed = total = 0
    for file in options.files:
        for test, wrong in run_rule_tests(load_rule_tests(file)):
            total += 1
            failed += bool(wrong)
            print_line(f"{'FAILED' if wrong else 'ok'}  {test.name}")
            for text in wrong:
                print_line(f"  {text}")
    if failed:
        raise PipelineError(f"{failed} of {total} tests failed")


def _try(options: argparse.Namespace) -> None:
    from qmf.pipeline.correlate.batch import evaluate_lake
    from qmf.pipeline.runners.process import ProcessRunner

    check_lake(options.lake)
    result = evaluate_lake(ProcessRunner(), _job_options(options, options.file, ""), print_line)
    _print_alerts(result.alerts)
    raised = sum(alert.raised for alert in result.alerts)
    open_ = raised - sum(alert.cleared for alert in result.alerts)
    print_line(f"{raised} alerts, {open_} of them open at the end; {result.counts}")
    _check_failures(result.failures)


RULES = Subcommand(
    "rules",
    "Check, test and try rules",
    actions=(
        Subcommand("check", "Find all errors in files of rules", _check_options, _check, lake=False),
        Subcommand(
            "test", "Run tests of rules: given rows, and the alerts at some times", _test_options, _test, lake=False
        ),
        Subcommand("try", "Show what rules would have raised over a lake", _try_options, _try),
    ),
)
