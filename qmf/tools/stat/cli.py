"""`qpid-stat`: statistics of a broker as tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from qmf._option_values import count
from qmf.tools.connecting import (
    FAILED,
    OK,
    ToolParser,
    access_of,
    add_connection_options,
    check_connection_options,
    open_broker,
    run_tool,
)
from qmf.tools.stat import views
from qmf.tools.tables import table

_FLAGS = {
    "g": ("general", "Show General Broker Stats"),
    "c": ("connections", "Show Connections"),
    "e": ("exchanges", "Show Exchanges"),
    "q": ("queues", "Show Queues, or one with all its statistics"),
    "u": ("subscriptions", "Show Subscriptions"),
    "m": ("memory", "Show Broker Memory Stats"),
}
#: Rows of a sorted view, by default.
_LIMIT = 50

_USAGE = """qpid-stat -g [options]
       qpid-stat -c [options]
       qpid-stat -e [options]
       qpid-stat -q [options] [queue-name]
       qpid-stat -u [options]
       qpid-stat -m [options]
       qpid-stat --acl [options]
       qpid-stat --mqtt [options]"""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = ToolParser(
        prog="qpid-stat",
        usage=_USAGE,
        description="Show statistics of a broker.",
        epilog="exit codes: 0 success, 1 failure, 2 wrong usage. qmf-stat shows more, also repeatedly and as JSON.",
    )
    parser.add_argument("queue", nargs="?", metavar="queue-name", help="with -q: only this queue")
    add_connection_options(parser, "-b", "--broker", "-a", "--broker-addr")
    shown = parser.add_argument_group("Command Options")
    for letter, (name, text) in _FLAGS.items():
        shown.add_argument(f"-{letter}", f"--{name}", dest="view", action="store_const", const=name, help=text)
    shown.add_argument("--acl", dest="view", action="store_const", const="acl", help="Show Access Control List Stats")
    shown.add_argument("--mqtt", dest="view", action="store_const", const="mqtt", help="Show MQTT Sessions")
    display = parser.add_argument_group("Display Options")
    add = display.add_argument
    add("-S", "--sort-by", metavar="<colname>", help="sort by this column, the largest first")
    add("-I", "--increasing", action="store_true", help="the smallest first")
    add("-L", "--limit", type=count, metavar="<n>", help=f"show at most so many rows ({_LIMIT} with -S, otherwise all)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; `argv`: arguments without the program's name; None means those of the process.

    Returns:
        0 for success; 1 if the broker cannot be reached or has no such data; 130 after Ctrl-C. Wrong usage ends the
        program with 2.
    """
    parser = build_parser()
    options = parser.parse_intermixed_args(argv)
    check_connection_options(parser, options)
    if options.view is None:
        parser.error("one of these options is needed: -g, -c, -e, -q, -u, -m, --acl, --mqtt")
    if options.queue is not None and options.view != "queues":
        parser.error(f"{options.queue!r}: only -q takes the name of a queue")
    return run_tool(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    with open_broker(access_of(options), options.timeout) as broker:
        try:
            if options.queue is not None:
                found = views.queue(broker, options.queue)
            else:
                found = views.VIEWS[options.view](broker)
        except views.NoDataError as error:
            print(error, file=sys.stderr)
            return FAILED
    if options.view in views.SORTABLE and options.queue is None:
        limit = _LIMIT if options.limit is None and options.sort_by is not None else options.limit
        found = [views.arrange(item, options.sort_by, increasing=options.increasing, limit=limit) for item in found]
    for at, view in enumerate(found):
        if at:
            print()
        for line in table(view.title, view.columns, view.rows):
            print(line)
    return OK
