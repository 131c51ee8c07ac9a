"""`qmf-printevents`: prints the events of one or several brokers, one line each, for logs and pipes.

A line is as the old tool printed it::

    Thu Jan 29 19:53:19 2009 INFO  org.apache.qpid.broker:bind broker=amqp://mq1:5672 qName=orders key=orders

Connections that are lost are retried. Notices about connections go to stderr, so stdout has only events.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmf._option_values import count
from qmf.connecting import UrlAction, add_connection_options
from qmf_shell.command_line import ProgramParser, failed_to_open, run_program
from qmf_shell.exit_codes import INTERRUPTED, OK, UNREACHABLE, USAGE, code_of

if TYPE_CHECKING:
    from qmf.views.event_filter import EventFilter
    from qmf.views.events import EventView
    from qmf_shell.render.event_lines import EventLineFormatter
    from qmf_shell.session.backend import HeartbeatRecord

#: The default broker, as in the old tool.
DEFAULT_BROKER = "localhost"
#: Events that wait for a slow reader of the output; further ones are dropped and counted.
WAITING = 10_000

_EPILOG = """\
examples:
  qmf-printevents                                    events of the broker on this machine
  qmf-printevents amqp://mq1:5672 mq2                of two brokers
  qmf-printevents -s warn --json mq1                 warnings and worse, as JSON
  qmf-printevents -w 'user ~ "^ops" and severity >= notice' mq1
  qmf-printevents --heartbeats -n 10 mq1             ten lines, including heartbeats

exit codes: 0 success, 2 no connection, 64 wrong usage."""


def build_parser(*, abbreviations: bool = False) -> argparse.ArgumentParser:
    """The options; those of Apache's names may be abbreviated."""
    parser = ProgramParser(
        prog="qmf-printevents",
        description="Print the events of brokers and agents as they come, one line each.",
        epilog=_EPILOG,
        abbreviations=abbreviations,
    )
    add = parser.add_argument
    add(
        "broker",
        nargs="*",
        metavar="BROKER",
        action=UrlAction,
        help=f"brokers, e.g. amqp://host:5672 (default: {DEFAULT_BROKER})",
    )
    add(
        "-b",
        "--broker",
        metavar="URL",
        action=UrlAction,
        append=True,
        help="the same, as in the other programs; may be repeated",
    )
    add_connection_options(parser.add_argument_group("connecting"))
    add("-c", "--class", dest="classes", metavar="CLASS", action="append", default=[], help="only events of this class")
    add(
        "-s",
        "--severity",
        metavar="SEVERITY",
        help="only events of at least this severity: emerg, alert, ... debug, or 0-7",
    )
    add("-a", "--agent", metavar="TEXT", default="", help="only from agents whose name contains this")
    add("-w", "--where", metavar="CONDITION", help="only events for which this is true, as in the shell's events")
    add("-n", "--count", metavar="COUNT", type=count, help="exit after so many events and heartbeats")
    add(
        "--heartbeats",
        action="store_true",
        help="print heartbeats of agents, too; -a and -s apply to them, -c and -w only to events",
    )
    add(
        "--all",
        action="store_true",
        help="include events about what agents and consoles create on the broker for themselves",
    )
    add("--json", action="store_true", help="one JSON object per line")
    add("--local-time", action="store_true", help="times in this machine's time zone instead of UTC")
    add("--wait", action="store_true", help="if no broker can be reached, wait instead of giving up")
    return parser


def main(argv: Sequence[str] | None = None, *, abbreviations: bool = False) -> int:
    """Run the program.

    Args:
        argv: options; None means those of the process.
        abbreviations: options may be abbreviated.

    Returns:
        exit code, see `qmf_shell.exit_codes`.
    """
    parser = build_parser(abbreviations=abbreviations)
    try:
        options = parser.parse_args(argv)
        wanted = _filter(parser, options)
    except SystemExit as end:
        return code_of(end)
    return run_program(options, lambda: _run(options, wanted))


def _filter(parser: argparse.ArgumentParser, options: argparse.Namespace) -> EventFilter:
    from qmf.errors import QmfError
    from qmf.views.conditions import parse_condition
    from qmf.views.event_filter import EventFilter
    from qmf.views.events import parse_severity

    try:
        return EventFilter(
            classes=options.classes,
            severity=7 if options.severity is None else parse_severity(options.severity),
            agent=options.agent,
            condition=parse_condition(options.where or ""),
        )
    except QmfError as error:
        parser.error(str(error))


def _run(options: argparse.Namespace, wanted: EventFilter) -> int:
    from qmf.connecting import read_connections
    from qmf.errors import CallerError, QmfError
    from qmf_shell.session.console_backend import BackendCallbacks, ConsoleBackend

    pending = _PendingItems()

    def on_event(event: EventView) -> None:
        if wanted.passes(event) and (options.all or not event.is_own):
            pending.put(event)

    def on_heartbeat(heartbeat: HeartbeatRecord) -> None:
        if options.heartbeats and wanted.passes_heartbeat(heartbeat.agent):
            pending.put(heartbeat)

    def on_connection(url: str, connected: bool, reason: str) -> None:
        _log("brokerConnected" if connected else "brokerDisconnected", url, reason)

    callbacks = BackendCallbacks(
        on_event=on_event,
        on_heartbeat=on_heartbeat,
        on_connection=on_connection,
    )
    formatter = _formatter(options)
    try:
        targets = read_connections(options, prog="qmf-printevents", default=DEFAULT_BROKER).targets
    except CallerError as error:
        sys.stderr.write(f"error: {error}\n")
        return USAGE
    with contextlib.ExitStack() as stack:
        backends = [
            ConsoleBackend(target, timeout=options.timeout, callbacks=callbacks, objects=False, persist=True, settle=0)
            for target in targets
        ]
        try:
            for backend in backends:
                stack.enter_context(backend)
        except QmfError as error:
            sys.stderr.write(f"error: {error}\n")
            return failed_to_open(error)
        lost = [backend.status for backend in backends if not backend.status.connected]
        for status in lost:
            _log("brokerDisconnected", status.url, status.reason)
        if len(lost) == len(backends) and not options.wait:
            sys.stderr.write(f"error: no connection to {', '.join(status.url for status in lost)}\n")
            return UNREACHABLE
        return _print(pending, formatter, options.count)


class _PendingItems:
    """Events and heartbeats that are not printed yet."""

    def __init__(self) -> None:
        self._items: queue.Queue[EventView | HeartbeatRecord] = queue.Queue(WAITING)
        self._dropped = 0

    def put(self, item: EventView | HeartbeatRecord) -> None:
        """Append an item; it is dropped if too many are waiting."""
        try:
            self._items.put_nowait(item)
        except queue.Full:
            from qmf.views.events import LostEvents

            self._dropped += item.count if isinstance(item, LostEvents) else 1

    def get(self) -> EventView | HeartbeatRecord:
        """The next item; waits for it."""
        return self._items.get()

    def take_dropped(self) -> int:
        """How many items were dropped since the last call."""
        dropped, self._dropped = self._dropped, 0
        return dropped


def _print(pending: _PendingItems, formatter: EventLineFormatter, count: int | None) -> int:
    from qmf.views.events import LostEvents

    printed = 0
    try:
        while count is None or printed < count:
            item = pending.get()
            sys.stdout.write(formatter.line(item) + "\n")
            sys.stdout.flush()
            printed += not isinstance(item, LostEvents)
            dropped = pending.take_dropped()
            if dropped:
                sys.stderr.write(f"warning: {dropped} events were dropped: the reader is too slow\n")
    except KeyboardInterrupt:
        # The normal end, unless a number of lines was wanted.
        return OK if count is None else INTERRUPTED
    return OK


def _log(event: str, url: str, reason: str) -> None:
    details = f' reason="{reason}"' if reason else ""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{time.asctime(time.gmtime())} NOTIC qmf-printevents:{event} broker={url}{details}\n")
        sys.stderr.flush()


def _formatter(options: argparse.Namespace) -> EventLineFormatter:
    from qmf_shell.render.event_lines import EventLineFormatter
    from qmf_shell.render.styles import OutputStyle, choose_output_style

    style = choose_output_style(sys.stdout, os.environ, no_color=options.no_color)
    return EventLineFormatter(
        json=options.json, local_time=options.local_time, colour=style is OutputStyle.COLOUR and not options.json
    )


if __name__ == "__main__":
    sys.exit(main())
