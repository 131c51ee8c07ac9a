"""`qmf-shell`'s command line: options in, exit code out.

Chooses the way of running, and imports what that needs, no more: so `--help` and one-shot commands start fast.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from qmf._version import __version__
from qmf_shell.exits import FAILED, FINE, INTERRUPTED, UNREACHABLE, USAGE

if TYPE_CHECKING:
    from qmf_shell.render.screen import Screen
    from qmf_shell.session.opening import Opened

#: Seconds that the embedded host agent samples and publishes after, when nothing else is asked for.
INTERVAL = 5.0
#: Seconds to wait for a connection and for answers, when nothing else is asked for.
TIMEOUT = 10.0


class _Parser(argparse.ArgumentParser):
    """argparse with the exit code of wrong usage that sysexits.h names: 2 means here that there is no connection."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.01 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0.01 to 86400")
    return value


def build_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = _Parser(
        prog="qmf-shell",
        description="A shell over QMF: browse agents, objects and events of a live system, and call methods.",
        epilog="Exit codes: 0 fine, 1 a command failed, 2 no connection, 64 wrong usage.",
    )
    parser.add_argument(
        "-b",
        "--broker",
        metavar="URL",
        help="broker, e.g. amqp://host:5672 (default: an embedded one with a host agent)",
    )
    parser.add_argument(
        "-c",
        "--command",
        metavar="COMMAND",
        action="append",
        default=[],
        help="run this and leave; may be given several times",
    )
    parser.add_argument(
        "--timeout",
        metavar="S",
        type=_seconds,
        default=TIMEOUT,
        help="wait this long for the broker and for answers (%(default)g s)",
    )
    parser.add_argument(
        "--interval", metavar="S", type=_seconds, help=f"how often the embedded host agent samples ({INTERVAL:g} s)"
    )
    parser.add_argument("--json", action="store_true", help="print results as JSON, one value per line")
    parser.add_argument(
        "--no-color", action="store_true", help="plain text (NO_COLOR in the environment does the same)"
    )
    parser.add_argument("--verbose", action="store_true", help="log to stderr what happens below")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program.

    Args:
        argv: options; None means those of the process.

    Returns:
        exit code, see `qmf_shell.exits`.
    """
    parser = build_parser()
    try:
        options = parser.parse_args(argv)
        if options.interval is not None and options.broker is not None:
            parser.error("--interval is for the embedded host agent and cannot be combined with -b")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else USAGE
    _set_up_logging(options.verbose)
    if sys.stdout is None or sys.stderr is None:
        # Started with a closed stream: what goes there is not wanted.
        nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets an escape instead of ending the program.
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = _run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        _drop_output()
        return FINE
    except OSError as error:
        _drop_output()
        sys.stderr.write(f"error: cannot write the output: {error.strerror or error}\n")
        return FAILED
    return code


def _drop_output() -> None:
    """Python flushes at exit: let that go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(options: argparse.Namespace) -> int:
    from qmf.errors import QmfError
    from qmf_shell.render.screen import Screen, choose_look
    from qmf_shell.session.opening import open_session

    look = choose_look(sys.stdout, os.environ, no_color=options.no_color, as_json=options.json)
    screen = Screen(sys.stdout, sys.stderr, look)
    interactive = not options.command and sys.stdin is not None and sys.stdin.isatty()
    with contextlib.ExitStack() as stack:
        try:
            opened = stack.enter_context(
                open_session(
                    options.broker, timeout=options.timeout, interval=options.interval or INTERVAL, live=interactive
                )
            )
        except QmfError as error:
            screen.error(str(error))
            return UNREACHABLE
        if interactive:
            return _interact(opened, screen)
        from qmf_shell.batch import run

        if options.command:
            return run(options.command, opened.context, screen)
        return run(sys.stdin, opened.context, screen, numbered=True)


def _interact(opened: Opened, screen: Screen) -> int:
    from qmf_shell.repl import Repl, history_path, open_history
    from qmf_shell.session.snapshot import Refresher

    refresher = Refresher(opened.context.source)
    repl = Repl(opened.context, screen, refresher, history=open_history(history_path(os.environ)))
    opened.on_change(refresher.want_classes)
    opened.on_change(repl.redraw)
    refresher.start()
    _greet(opened, screen)
    try:
        return repl.run()
    finally:
        refresher.close()


def _greet(opened: Opened, screen: Screen) -> None:
    from qmf_shell.results import Level, Message
    from qmf_shell.text import plural

    agents = len(opened.context.source.agents())
    url = opened.context.source.health.url
    if opened.embedded:
        where = f"Connected to an embedded broker at {url}, with a host agent that describes this machine."
    else:
        where = f"Connected to {url}, {plural(agents, 'agent')}."
    screen.show(Message(f"qmf-shell {__version__}. {where}", Level.PLAIN))
    if not agents:
        screen.show(Message("No agent has answered so far.", Level.WARNING))
    screen.show(Message("Type help for the commands; Tab completes, Ctrl-D leaves."))


def _set_up_logging(verbose: bool) -> None:
    """Nothing by default: without a handler Python prints warnings, and tracebacks of lost tasks, into the prompt."""
    root = logging.getLogger()
    if not verbose:
        root.addHandler(logging.NullHandler())
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    logging.getLogger("qmf").setLevel(logging.DEBUG)


if __name__ == "__main__":
    sys.exit(main())
