"""`qmf-stat`: what a broker that is managed by QMF does, at one glance, or again and again.

The views follow the old `qpid-stat`: an overview, agents, classes, queues, exchanges, connections, subscriptions.
All but the first three need the classes of a qpidd; on other brokers they say so.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from qmf_shell.command_line import ProgramParser, count, failed_to_open, run_program, seconds
from qmf_shell.exit_codes import FAILED, INTERRUPTED, OK, USAGE

if TYPE_CHECKING:
    from qmf_shell.results.result import Result
    from qmf_shell.session.context import Context

#: Where to look when no broker is named, as the old tool did.
DEFAULT = "localhost"

VIEWS = {
    "overview": "what the broker is and has done in total",
    "agents": "agents that are there",
    "classes": "classes of objects, with how many there are",
    "queues": "queues, with their depth and what went through",
    "exchanges": "exchanges, with what went through",
    "connections": "connections of clients",
    "subscriptions": "who reads from which queue",
}
_LETTERS = {
    "g": "overview",
    "a": "agents",
    "q": "queues",
    "e": "exchanges",
    "c": "connections",
    "u": "subscriptions",
}

_EPILOG = """\
examples:
  qmf-stat                               the overview of the broker on this machine
  qmf-stat queues -b mq1 -S msg -L 10    the ten deepest queues
  qmf-stat -q -b mq1 -i 2                queues, every two seconds
  qmf-stat connections -b mq1 --json

exit codes: 0 fine, 1 the view cannot be had, 2 no connection, 64 wrong usage."""


def build_parser() -> argparse.ArgumentParser:
    """The options."""
    views = "\n".join(f"  {name:<14} {text}" for name, text in VIEWS.items())
    parser = ProgramParser(
        prog="qmf-stat",
        description=f"Show what a broker that is managed by QMF does.\n\nviews:\n{views}",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("view", nargs="?", choices=tuple(VIEWS), metavar="VIEW", help="one of the views above (default: overview)")
    for letter, view in _LETTERS.items():
        add(f"-{letter}", dest="letter", action="store_const", const=view, help=f"the same as {view}")
    add(
        "-b", "--broker", metavar="URL", action="append", default=[], help=f"broker (default: {DEFAULT}); several times"
    )
    add("-i", "--interval", metavar="S", type=seconds, help="show it again after so many seconds, until Ctrl-C or q")
    add("-n", "--count", metavar="COUNT", type=count, help="with -i: leave after so many pictures")
    add("-S", "--sort-by", metavar="COLUMN", help="sort by this column, the largest first")
    add("-I", "--increasing", action="store_true", help="the smallest first")
    add("-L", "--limit", metavar="COUNT", type=count, help="show so many rows at most")
    output = parser.add_mutually_exclusive_group()
    for name in ("json", "csv", "table"):
        output.add_argument(
            f"--{name}", action="store_const", const=name, dest="output", default="table", help=f"print it as {name}"
        )
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
        if options.count is not None and options.interval is None:
            parser.error("-n counts the pictures of -i")
        if options.view and options.letter and options.view != options.letter:
            parser.error(f"one view at a time: {options.view} or {options.letter}")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else USAGE
    return run_program(options, lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    from qmf.errors import QmfError
    from qmf_shell.render.screen import Screen, choose_output_style
    from qmf_shell.results.result import LiveView
    from qmf_shell.session.opening import open_session
    from qmf_shell.stat_views import make_view

    style = choose_output_style(sys.stdout, os.environ, no_color=options.no_color, output=options.output)
    screen = Screen(sys.stdout, sys.stderr, style)
    with contextlib.ExitStack() as stack:
        try:
            with screen.progress.busy():
                opened = stack.enter_context(
                    open_session(options.broker or [DEFAULT], timeout=options.timeout, interval=1, live=False)
                )
        except QmfError as error:
            screen.error(str(error))
            return failed_to_open(error)
        context = opened.context
        view = options.view or options.letter or "overview"

        def frame() -> Result:
            context.warnings.clear()
            return make_view(context, view, options.sort_by, up=options.increasing, limit=options.limit)

        try:
            if options.interval is not None:
                screen.show(LiveView(frame, options.interval, options.count))
                return OK
            with screen.progress.busy():
                result = frame()
            screen.show(result)
        except QmfError as error:
            screen.error(str(error))
            return FAILED
        except KeyboardInterrupt:
            return INTERRUPTED
        return _warned(context, screen.error)


def _warned(context: Context, tell: Callable[[str], None]) -> int:
    for warning in context.warnings:
        tell(warning)
    return FAILED if context.warnings else OK


if __name__ == "__main__":
    sys.exit(main())
