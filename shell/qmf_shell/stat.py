"""`qmf-stat`: shows statistics of a broker that is managed by QMF, once or repeatedly.

The views follow the old `qpid-stat`: an overview, agents, classes, queues, exchanges, connections, subscriptions.
All but the first three need the classes of a qpidd; on other brokers they are an error.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmf._option_values import count
from qmf.connecting import add_connection_options
from qmf_shell.command_line import ProgramParser, failed_to_open, run_program, seconds
from qmf_shell.exit_codes import FAILED, INTERRUPTED, OK, code_of

if TYPE_CHECKING:
    from qmf_shell.modes.screen import Screen
    from qmf_shell.results.result import Result
    from qmf_shell.session.context import Context

#: The default broker, as in the old tool.
DEFAULT_BROKER = "localhost"

VIEWS = {
    "overview": "the broker and its totals",
    "agents": "agents",
    "classes": "classes of objects, with their numbers of objects",
    "queues": "queues, with their depths and totals of messages",
    "exchanges": "exchanges, with totals of messages",
    "connections": "connections of clients",
    "subscriptions": "subscriptions, with their queues",
    "mqtt": "sessions of MQTT, also of clients that are away",
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

exit codes: 0 success, 1 the view is not available, 2 no connection, 64 wrong usage."""


def build_parser() -> argparse.ArgumentParser:
    """The options."""
    views = "\n".join(f"  {name:<14} {text}" for name, text in VIEWS.items())
    parser = ProgramParser(
        prog="qmf-stat",
        description=f"Show statistics of a broker that is managed by QMF.\n\nviews:\n{views}",
        epilog=_EPILOG,
    )
    add = parser.add_argument
    add("view", nargs="?", choices=tuple(VIEWS), metavar="VIEW", help="one of the views above (default: overview)")
    for letter, view in _LETTERS.items():
        add(f"-{letter}", dest="letter", action="store_const", const=view, help=f"the same as {view}")
    add_connection_options(
        parser.add_argument_group("connecting"),
        broker=f"broker (default: {DEFAULT_BROKER}); may be repeated",
        several=True,
    )
    add("-i", "--interval", metavar="S", type=seconds, help="refresh after so many seconds, until Ctrl-C or q")
    add("-n", "--count", metavar="COUNT", type=count, help="with -i: exit after so many refreshes")
    add("-S", "--sort-by", metavar="COLUMN", help="sort by this column, the largest first")
    add("-I", "--increasing", action="store_true", help="the smallest first")
    add("--all", action="store_true", help="include what agents and consoles create on the broker for themselves")
    add("--exact", action="store_true", help="numbers with every digit, not such as 12.5 MB")
    add("-L", "--limit", metavar="COUNT", type=count, help="show at most so many rows")
    output = parser.add_mutually_exclusive_group()
    for name in ("json", "csv", "yaml", "table"):
        output.add_argument(
            f"--{name}", action="store_const", const=name, dest="output", default="table", help=f"print as {name}"
        )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; `argv`: options; None means those of the process.

    Returns:
        exit code, see `qmf_shell.exit_codes`.
    """
    parser = build_parser()
    try:
        options = parser.parse_args(argv)
        if options.count is not None and options.interval is None:
            parser.error("-n needs -i: it counts refreshes")
        if options.view and options.letter and options.view != options.letter:
            parser.error(f"one view at a time: {options.view} or {options.letter}")
    except SystemExit as end:
        return code_of(end)
    return run_program(options, lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    import attrs

    from qmf.connecting import read_connections
    from qmf.errors import QmfError
    from qmf_shell.modes.screen import Screen
    from qmf_shell.parsing.command import BoundArguments
    from qmf_shell.render.styles import choose_output_style
    from qmf_shell.results.result import LiveView
    from qmf_shell.screens.start import frames_of
    from qmf_shell.session.opening import open_session
    from qmf_shell.stat_views import stat_view

    style = choose_output_style(sys.stdout, os.environ, no_color=options.no_color, output=options.output)
    screen = Screen(sys.stdout, sys.stderr, style)
    if options.exact:
        screen.settings.change("numbers", "exact")
    with contextlib.ExitStack() as stack:
        try:
            targets = read_connections(options, prog="qmf-stat", default=DEFAULT_BROKER).targets
            with screen.progress.busy():
                opened = stack.enter_context(open_session(targets, timeout=options.timeout, interval=1, follow=False))
        except QmfError as error:
            screen.error(str(error))
            return failed_to_open(error)
        context = attrs.evolve(opened.context, show_own=options.all)
        view = options.view or options.letter or "overview"

        def frame() -> Result:
            context.warnings.clear()
            return stat_view(context, view, options.sort_by, increasing=options.increasing, limit=options.limit)

        try:
            if options.interval is not None:
                frames = LiveView(frame, options.interval, options.count)
                screen.show(frames_of(context, BoundArguments(), f"qmf-stat {view}", frames))
                return OK
            with screen.progress.busy():
                result = frame()
            screen.show(result)
        except QmfError as error:
            screen.error(str(error))
            return FAILED
        except KeyboardInterrupt:
            return INTERRUPTED
        return _show_warnings(context, screen)


def _show_warnings(context: Context, screen: Screen) -> int:
    for warning in context.warnings:
        screen.error(warning)
    return FAILED if context.warnings else OK


if __name__ == "__main__":
    sys.exit(main())
