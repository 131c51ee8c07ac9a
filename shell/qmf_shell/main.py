"""`qmf-shell`'s command line: options in, exit code out.

Chooses the way of running, and imports what that needs, no more: so `--help` and one-shot commands start fast.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from qmf._version import __version__
from qmf_shell.command_line import ProgramParser, failed_to_open, run_program, seconds
from qmf_shell.exit_codes import USAGE

if TYPE_CHECKING:
    from qmf_shell.render.screen import Screen
    from qmf_shell.session.opening import OpenSession

#: Seconds that the embedded host agent samples and publishes after, when nothing else is asked for.
INTERVAL = 5.0


class _Source(argparse.Action):
    """-c and -f in the order in which they were given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        del parser
        kind = "command" if option_string in ("-c", "--command") else "file"
        namespace.sources = [*namespace.sources, (kind, str(values))]


_EPILOG = """\
examples:
  qmf-shell                                   an embedded broker with a host agent, to look around
  qmf-shell -b amqp://mq1:5672 -b mq2         two brokers as one
  qmf-shell -b mq1 -c "list queue where msgDepth > 100" --json
  qmf-shell -b mq1 -f nightly.qmf             commands from a file; ! and # begin comments
  echo "export queue queues.csv" | qmf-shell -b mq1

exit codes: 0 fine, 1 a command failed, 2 no connection, 64 wrong usage.
files: settings in $XDG_CONFIG_HOME/qmf-shell/config.toml, history in $XDG_STATE_HOME/qmf-shell/history.
`help` within the shell explains the commands."""


def build_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = ProgramParser(
        prog="qmf-shell",
        description="A shell over QMF: browse agents, objects and events of a live system, and call methods.",
        epilog=_EPILOG,
    )
    parser.set_defaults(sources=[])
    add = parser.add_argument
    add(
        "-b",
        "--broker",
        metavar="URL",
        action="append",
        default=[],
        help="broker, e.g. amqp://host:5672; several times for several (default: an embedded one with a host agent)",
    )
    add("-c", "--command", metavar="COMMAND", action=_Source, dest="sources", help="run this and leave; several times")
    add("-f", "--file", metavar="FILE", action=_Source, dest="sources", help="run the commands in FILE (- is stdin)")
    add("script", nargs="?", metavar="SCRIPT", help="the same as -f SCRIPT")
    add("-x", "--stop-on-error", action="store_true", help="leave after the first command that fails")
    add("--interval", metavar="S", type=seconds, help=f"how often the embedded host agent samples ({INTERVAL:g} s)")
    output = parser.add_mutually_exclusive_group()
    for name, text in (
        ("json", "print results as JSON, one value per line"),
        ("csv", "print results as CSV"),
        ("table", "print results as tables (the default, unless the settings say otherwise)"),
    ):
        output.add_argument(f"--{name}", action="store_const", const=name, dest="output", help=text)
    add("--config", metavar="FILE", help="read settings and aliases from FILE")
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
        if options.interval is not None and options.broker:
            parser.error("--interval is for the embedded host agent and cannot be combined with -b")
        if options.script is not None:
            options.sources = [*options.sources, ("file", options.script)]
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else USAGE
    # Until the prompt is there, nearly everything that is made stays: looking for garbage among it is in vain.
    gc.disable()
    try:
        return run_program(options, lambda: _run(options))
    finally:
        gc.enable()


def _run(options: argparse.Namespace) -> int:
    from qmf.errors import QmfError
    from qmf_shell.render.screen import Screen, choose_output_style
    from qmf_shell.settings import SettingsError, config_path, read_settings

    try:
        where = config_path(os.environ) if options.config is None else Path(options.config)
        settings = read_settings(where, required=options.config is not None)
        sources = [_read(kind, value) for kind, value in options.sources]
    except SettingsError as error:
        sys.stderr.write(f"qmf-shell: {error}\n")
        return USAGE
    if options.output:
        settings.change("output", options.output)
    interactive = not sources and sys.stdin is not None and sys.stdin.isatty()
    somebody = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    style = choose_output_style(sys.stdout, os.environ, no_color=options.no_color, output=settings["output"])
    screen = Screen(sys.stdout, sys.stderr, style, settings=settings, paging=somebody)
    brokers = options.broker or ([] if options.interval is not None else settings.brokers)
    from qmf_shell.session.opening import open_session

    with contextlib.ExitStack() as stack:
        stack.callback(screen.close)
        try:
            with screen.progress.busy():
                screen.progress.report("connecting")
                opened = stack.enter_context(
                    open_session(
                        brokers,
                        timeout=options.timeout,
                        interval=options.interval or INTERVAL,
                        live=interactive,
                        settings=settings,
                        meanwhile=_load_prompt if interactive else _load_commands,
                    )
                )
        except QmfError as error:
            screen.error(str(error))
            return failed_to_open(error)
        opened.context.report = screen.progress.report
        if somebody:
            from qmf_shell.session.prompts import TerminalPrompter

            opened.context.prompter = TerminalPrompter(screen.progress.paused)
        if interactive:
            return _interact(opened, screen)
        from qmf_shell.modes.batch import numbered, run

        _collect_garbage()
        steps = chain.from_iterable(sources) if options.sources else numbered(sys.stdin)
        return run(steps, opened.context, screen, stop=options.stop_on_error)


def _collect_garbage() -> None:
    """Collect from now on, but not what is there already; and less often than usual, for answers are large."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def _read(kind: str, value: str) -> Iterable[tuple[str, str]]:
    """The lines of a -c or -f, with their places.

    Raises:
        SettingsError: the file cannot be read.
    """
    from qmf_shell.modes.batch import numbered
    from qmf_shell.settings import SettingsError

    if kind == "command":
        return [(value, "")]
    if value == "-":
        return numbered(sys.stdin)
    try:
        return numbered(Path(value).read_text(encoding="utf-8", errors="surrogateescape").splitlines(), value)
    except OSError as error:
        raise SettingsError(f"cannot read {value}: {error.strerror or error}") from None


def _load_prompt() -> None:
    """Load what the prompt needs."""
    import qmf_shell.modes.repl  # noqa: F401


def _load_commands() -> None:
    """Load what a command line needs."""


def _interact(opened: OpenSession, screen: Screen) -> int:
    from qmf_shell.modes.repl import Repl, history_path, open_history
    from qmf_shell.session.name_cache import NameRefresher

    refresher = NameRefresher(opened.context.backend)
    repl = Repl(opened.context, screen, refresher, history=open_history(history_path(os.environ)))
    opened.on_change(refresher.want_classes)
    opened.on_change(repl.redraw)
    _greet(opened, screen)
    _collect_garbage()
    try:
        return repl.run()
    finally:
        refresher.close()


def _greet(opened: OpenSession, screen: Screen) -> None:
    from qmf_shell.results.result import Notice, NoticeLevel
    from qmf_shell.text import listing, plural

    backend = opened.context.backend
    agents = len(backend.agents())
    there = [item.url for item in backend.statuses if item.connected]
    if opened.embedded:
        where = f"Connected to an embedded broker at {there[0]}, with a host agent that describes this machine."
    else:
        where = f"Connected to {listing(there, 'and')}, {plural(agents, 'agent')}."
    screen.show(Notice(f"qmf-shell {__version__}. {where}", NoticeLevel.PLAIN))
    for item in backend.statuses:
        if not item.connected:
            text = f"No connection to {item.url} yet: {item.reason}. It is tried again."
            screen.show(Notice(text, NoticeLevel.WARNING))
    if not agents:
        screen.show(Notice("No agent has answered so far.", NoticeLevel.WARNING))
    screen.show(Notice("Type help for the commands; Tab completes, Ctrl-D leaves."))


if __name__ == "__main__":
    sys.exit(main())
