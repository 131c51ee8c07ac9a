"""`qmf-printevents`: the events of one or several brokers, a line each, for logs and for pipes.

A line is what the old tool printed::

    Thu Jan 29 19:53:19 2009 INFO  org.apache.qpid.broker:bind broker=amqp://mq1:5672 qName=orders key=orders

Brokers that go away are waited for. News of connections go to stderr, so stdout holds nothing but events.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from qmf_shell.command_line import ProgramParser, count, failed_to_open, run_program
from qmf_shell.exit_codes import INTERRUPTED, OK, UNREACHABLE, USAGE

if TYPE_CHECKING:
    from qmf_shell.objects.event_filter import EventFilter
    from qmf_shell.session.backend import EventRecord, HeartbeatRecord

#: Where to look when no broker is named, as the old tool did.
DEFAULT = "localhost"
#: Events that wait for a reader that is slow; more are dropped, and counted.
WAITING = 10_000
#: Five letters each, as the old tool had them.
_SEVERITIES = ("EMER ", "ALERT", "CRIT ", "ERROR", "WARN ", "NOTIC", "INFO ", "DEBUG")
_COLOURS = ("41;97", "41;97", "1;31", "31", "33", "36", "32", "2")

_EPILOG = """\
examples:
  qmf-printevents                                    events of the broker on this machine
  qmf-printevents amqp://mq1:5672 mq2                of two brokers
  qmf-printevents -s warn --json mq1                 warnings and worse, as JSON
  qmf-printevents -w 'user ~ "^ops" and severity >= notice' mq1
  qmf-printevents --heartbeats -n 10 mq1             ten lines, signs of life among them

exit codes: 0 fine, 2 no connection, 64 wrong usage."""


def build_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = ProgramParser(
        prog="qmf-printevents",
        description="Print the events of brokers and agents as they come, one line each.",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("brokers", nargs="*", metavar="BROKER", help=f"brokers, e.g. amqp://host:5672 (default: {DEFAULT})")
    add("-c", "--class", dest="classes", metavar="CLASS", action="append", default=[], help="only events of this class")
    add("-s", "--severity", metavar="SEVERITY", help="only events at least so severe: emerg, alert, ... debug, or 0-7")
    add("-a", "--agent", metavar="TEXT", default="", help="only from agents with this in their name")
    add("-w", "--where", metavar="CONDITION", help="only events that this is true of, as in the shell's events")
    add("-n", "--count", metavar="COUNT", type=count, help="leave after so many lines")
    add(
        "--heartbeats",
        action="store_true",
        help="print heartbeats of agents, too, as far as -a and -s let them; -c and -w are of events alone",
    )
    add("--json", action="store_true", help="one JSON object per line")
    add("--local-time", action="store_true", help="times of this machine's zone instead of UTC")
    add("--wait", action="store_true", help="wait for brokers of which none is there yet, instead of giving up")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program.

    Args:
        argv: options; None means those of the process.

    Returns:
        exit code, see `qmf_shell.exit_codes`.
    """
    parser = build_parser()
    try:
        options = parser.parse_args(argv)
        wanted = _filter(parser, options)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else USAGE
    return run_program(options, lambda: _run(options, wanted))


def _filter(parser: argparse.ArgumentParser, options: argparse.Namespace) -> EventFilter:
    from qmf.errors import QmfError
    from qmf_shell.objects.event_filter import EventFilter, class_filter, parse_severity
    from qmf_shell.parsing.conditions import ConditionError, parse_condition
    from qmf_shell.parsing.words import split_line

    try:
        condition = None
        if options.where is not None:
            words = split_line(options.where)
            condition, used = parse_condition(words)
            if used < len(words):
                raise ConditionError(f"{words[used].text!r} does not belong to the condition before it")
        return EventFilter(
            classes=class_filter(options.classes),
            severity=7 if options.severity is None else parse_severity(options.severity),
            agent=options.agent,
            condition=condition,
        )
    except QmfError as error:
        parser.error(str(error))


def _run(options: argparse.Namespace, wanted: EventFilter) -> int:
    from qmf.errors import QmfError
    from qmf_shell.session.console_backend import BackendCallbacks, ConsoleBackend

    news: queue.Queue[EventRecord | HeartbeatRecord] = queue.Queue(WAITING)
    dropped = _Dropped()

    def put(item: EventRecord | HeartbeatRecord) -> None:
        try:
            news.put_nowait(item)
        except queue.Full:
            dropped.count += 1

    def connected(url: str, there: bool, reason: str) -> None:
        _tell("brokerConnected" if there else "brokerDisconnected", url, reason)

    watcher = BackendCallbacks(
        event=lambda event: put(event) if wanted.passes(event) else None,
        heartbeat=lambda beat: put(beat) if options.heartbeats and wanted.passes_heartbeat(beat.agent) else None,
        connected=connected,
    )
    writer = _Writer(options)
    urls = list(dict.fromkeys(options.brokers)) or [DEFAULT]
    with contextlib.ExitStack() as stack:
        lives = [
            ConsoleBackend(url, timeout=options.timeout, watcher=watcher, objects=False, persist=True, settle=0)
            for url in urls
        ]
        try:
            for live in lives:
                stack.enter_context(live)
        except QmfError as error:
            sys.stderr.write(f"error: {error}\n")
            return failed_to_open(error)
        lost = [live.status for live in lives if not live.status.connected]
        for status in lost:
            _tell("brokerDisconnected", status.url, status.reason)
        if len(lost) == len(lives) and not options.wait:
            sys.stderr.write(f"error: no connection to {', '.join(status.url for status in lost)}\n")
            return UNREACHABLE
        return _print(news, writer, dropped, options.count)


class _Dropped:
    """How many events nobody read in time."""

    count = 0


def _print(
    news: queue.Queue[EventRecord | HeartbeatRecord], writer: _Writer, dropped: _Dropped, count: int | None
) -> int:
    printed = 0
    try:
        while count is None or printed < count:
            item = news.get()
            sys.stdout.write(writer.line(item) + "\n")
            sys.stdout.flush()
            printed += 1
            if dropped.count:
                lost, dropped.count = dropped.count, 0
                sys.stderr.write(f"warning: {lost} events were dropped: the reader is too slow\n")
    except KeyboardInterrupt:
        # The normal end, unless somebody wanted to have so many lines.
        return OK if count is None else INTERRUPTED
    return OK


def _tell(what: str, url: str, reason: str) -> None:
    why = f' reason="{reason}"' if reason else ""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{time.asctime(time.gmtime())} NOTIC qmf-printevents:{what} broker={url}{why}\n")
        sys.stderr.flush()


class _Writer:
    """Events as lines."""

    def __init__(self, options: argparse.Namespace) -> None:
        from qmf_shell.render.screen import OutputStyle, choose_output_style

        self._json = options.json
        self._local = options.local_time
        style = choose_output_style(sys.stdout, os.environ, no_color=options.no_color)
        self._colour = style is OutputStyle.COLOUR and not options.json

    def line(self, item: EventRecord | HeartbeatRecord) -> str:
        """One line, without its end."""
        from qmf_shell.objects.event_filter import HEARTBEAT
        from qmf_shell.session.backend import HeartbeatRecord

        if isinstance(item, HeartbeatRecord):
            arguments: dict[str, object] = {"agent": item.agent, "interval": item.interval}
            return self._text(item.timestamp, HEARTBEAT, "qmf:heartbeat", item.broker, arguments, "")
        kinds = {argument.name: argument.type.name for argument in item.schema.arguments} if item.schema else {}
        times = {name for name, kind in kinds.items() if kind == "absTime"}
        return self._text(item.timestamp, item.severity, item.name, item.broker, item.values, item.agent, times)

    def _text(
        self,
        timestamp: int,
        severity: int,
        name: str,
        broker: str,
        arguments: Mapping[str, object],
        agent: str,
        times: set[str] | None = None,
    ) -> str:
        from qmf_shell.text import clean

        if self._json:
            return _json_line(timestamp, severity, name, broker, arguments, agent)
        words = [self._date(timestamp), self._severity(severity), name, f"broker={broker}"]
        for key, value in arguments.items():
            if times and key in times and isinstance(value, int):
                value = self._date(value)
            words.append(f"{key}={_quoted(_shown(value))}")
        return " ".join([words[0], words[1], *map(clean, words[2:])])

    def _date(self, nanoseconds: int) -> str:
        seconds = nanoseconds // 1_000_000_000
        try:
            return time.asctime(time.localtime(seconds) if self._local else time.gmtime(seconds))
        except (OverflowError, ValueError, OSError):
            return f"{nanoseconds} ns"

    def _severity(self, number: int) -> str:
        if not 0 <= number < len(_SEVERITIES):
            return f"INV-{number}"
        word = _SEVERITIES[number]
        return f"\x1b[{_COLOURS[number]}m{word}\x1b[0m" if self._colour else word


def _json_line(
    timestamp: int, severity: int, name: str, broker: str, arguments: Mapping[str, object], agent: str
) -> str:
    from qmf.schema import Severity
    from qmf_shell.render.json_lines import cell_value, plain_tree
    from qmf_shell.results.result import Instant
    from qmf_shell.session.backend import ObjectKey

    values = {key: value.name if isinstance(value, ObjectKey) else value for key, value in arguments.items()}
    line = {
        "time": cell_value(Instant(timestamp)),
        "severity": Severity(severity).word if 0 <= severity <= 7 else severity,
        "event": name,
        "broker": broker,
        "agent": agent or values.get("agent"),
        "arguments": plain_tree(values),
    }
    return json.dumps(line, default=str, allow_nan=False)


def _shown(value: object) -> str:
    """A value as the old tool wrote it: T and F for booleans."""
    from qmf_shell.session.backend import ObjectKey

    if isinstance(value, bool):
        return "T" if value else "F"
    return value.name if isinstance(value, ObjectKey) else str(value)


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text or not text else text


if __name__ == "__main__":
    sys.exit(main())
