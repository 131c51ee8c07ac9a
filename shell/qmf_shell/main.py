"""The command line of `qmf-shell`: options, the choice of the mode, the exit code.

Imports only what the mode needs, so that `--help` and one-shot commands start fast.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from qmf._garbage import collect_seldom
from qmf._version import __version__
from qmf.connecting import add_connection_options, config_path
from qmf_shell.command_line import ProgramParser, failed_to_open, run_program, seconds
from qmf_shell.exit_codes import USAGE, code_of

if TYPE_CHECKING:
    from qmf.connecting import Connections
    from qmf_shell.modes.screen import Screen
    from qmf_shell.session.column_memory import ColumnMemory
    from qmf_shell.session.opening import OpenSession

#: Seconds between samples of the embedded host agent, by default.
INTERVAL = 5.0


class _AppendInput(argparse.Action):
    """Appends a -c or -f to the inputs, so that their order is kept."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        del parser
        kind = "command" if option_string in ("-c", "--command") else "file"
        namespace.inputs = [*namespace.inputs, (kind, str(values))]


_EPILOG = """\
examples:
  qmf-shell                                   an embedded broker with a host agent, to explore
  qmf-shell -b amqp://mq1:5672 -b mq2         two brokers as one
  qmf-shell -b mq1 -c "list queue where msgDepth > 100" --json
  qmf-shell -b mq1 -f nightly.qmf             commands from a file; ! and # begin comments
  echo "export queue queues.csv" | qmf-shell -b mq1

exit codes: 0 success, 1 a command failed, 2 no connection, 64 wrong usage.
files: settings in $XDG_CONFIG_HOME/qmf-shell/config.toml, history in $XDG_STATE_HOME/qmf-shell/history.
`help` within the shell explains the commands."""


def build_parser(*, abbreviations: bool = False) -> argparse.ArgumentParser:
    """The options; those of Apache's names may be abbreviated."""
    parser = ProgramParser(
        prog="qmf-shell",
        description="A shell for QMF: browse agents, objects and events of a running system, and call methods.",
        epilog=_EPILOG,
        abbreviations=abbreviations,
    )
    parser.set_defaults(inputs=[])
    add = parser.add_argument
    add_connection_options(
        parser.add_argument_group("connecting"),
        broker="broker, e.g. amqp://host:5672; may be repeated (default: an embedded broker with a host agent)",
        several=True,
    )
    add(
        "-c",
        "--command",
        metavar="COMMAND",
        action=_AppendInput,
        dest="inputs",
        help="run this and exit; may be repeated",
    )
    add(
        "-f", "--file", metavar="FILE", action=_AppendInput, dest="inputs", help="run the commands in FILE (- is stdin)"
    )
    add(
        "--lake",
        metavar="DIR",
        help="answer at, diff, history, replay and events from what `qmf-pipeline record` wrote to DIR; "
        "without -b and --context there is no broker",
    )
    add("script", nargs="?", metavar="SCRIPT", help="the same as -f SCRIPT")
    add("-x", "--stop-on-error", action="store_true", help="exit after the first command that fails")
    add(
        "--interval",
        metavar="S",
        type=seconds,
        help=f"seconds between samples of the embedded host agent, and of the embedded broker ({INTERVAL:g})",
    )
    output = parser.add_mutually_exclusive_group()
    for name, text in (
        ("json", "print results as JSON, one object per line"),
        ("csv", "print results as CSV"),
        ("yaml", "print results as YAML, one document per object"),
        ("table", "print results as tables (the default, unless the settings differ)"),
    ):
        output.add_argument(f"--{name}", action="store_const", const=name, dest="output", help=text)
    add("--exact", action="store_true", help="numbers with every digit, not such as 12.5 MB (tables only)")
    add("--config", metavar="FILE", help="read settings and aliases from FILE")
    return parser


def main(
    argv: Sequence[str] | None = None,
    *,
    abbreviations: bool = False,
    defaults: Mapping[str, str] | None = None,
) -> int:
    """Run the program.

    Args:
        argv: options; None means those of the process.
        abbreviations: options may be abbreviated.
        defaults: of settings, where the program has another name.

    Returns:
        exit code, see `qmf_shell.exit_codes`.
    """
    parser = build_parser(abbreviations=abbreviations)
    try:
        options = parser.parse_args(argv)
        if options.interval is not None and (options.broker or options.context):
            parser.error("--interval is for the embedded host agent and cannot be combined with -b or --context")
        if options.interval is not None and options.lake is not None:
            parser.error("--interval is for the embedded host agent and cannot be combined with --lake")
        if options.script is not None:
            options.inputs = [*options.inputs, ("file", options.script)]
    except SystemExit as end:
        return code_of(end)
    # Until the prompt is shown, nearly all objects created are kept: collecting garbage would find none.
    gc.disable()
    try:
        return run_program(options, lambda: _run(options, defaults))
    finally:
        gc.enable()
        # Extension modules that are never collected report their objects as leaked when the process ends.
        gc.unfreeze()


def _run(options: argparse.Namespace, defaults: Mapping[str, str] | None) -> int:
    from qmf.connecting import Connections, read_connections
    from qmf.errors import CallerError
    from qmf_shell.modes.screen import Screen
    from qmf_shell.render.styles import choose_output_style
    from qmf_shell.settings import read_settings

    try:
        where = config_path(os.environ) if options.config is None else Path(options.config)
        settings = read_settings(where, required=options.config is not None, defaults=defaults)
        inputs = [_read(kind, value) for kind, value in options.inputs]
        # The embedded broker is used where its agent's interval is given, and no broker where only a lake is named,
        # whatever the settings say.
        connections = (
            Connections()
            if options.interval is not None or _lake_alone(options)
            else read_connections(options, prog="qmf-shell", brokers=settings.brokers, contexts=settings.contexts)
        )
    except CallerError as error:
        sys.stderr.write(f"qmf-shell: {error}\n")
        return USAGE
    if options.output:
        settings.change("output", options.output)
    if options.exact:
        settings.change("numbers", "exact")
    keyboard = sys.stdin is not None and sys.stdin.isatty()
    at_terminal = keyboard and sys.stdout.isatty()
    style = choose_output_style(sys.stdout, os.environ, no_color=options.no_color, output=settings["output"])
    screen = Screen(sys.stdout, sys.stderr, style, settings=settings, paging=at_terminal)
    if keyboard and not inputs:
        return _with_session(options, connections, screen, _interact, prompter=at_terminal, interactive=True)

    def batch(opened: OpenSession, screen: Screen) -> int:
        from qmf_shell.modes.batch import number_lines, run

        collect_seldom()
        steps = chain.from_iterable(inputs) if options.inputs else number_lines(sys.stdin)
        return run(steps, opened.context, screen, stop=options.stop_on_error)

    return _with_session(options, connections, screen, batch, prompter=at_terminal, interactive=False)


def _lake_alone(options: argparse.Namespace) -> bool:
    """True if the command line names a lake and no broker."""
    return options.lake is not None and not options.broker and not options.context


def _with_session(
    options: argparse.Namespace,
    connections: Connections,
    screen: Screen,
    work: Callable[[OpenSession, Screen], int],
    *,
    prompter: bool,
    interactive: bool,
) -> int:
    """Open a session, do the work with it, and close it; returns the exit code.

    Args:
        options: of the command line.
        connections: where to connect to.
        screen: shows progress and errors.
        work: what is done; returns the exit code.
        prompter: users can be asked.
        interactive: somebody types commands, so that what agents publish is followed.
    """
    from qmf.errors import QmfError
    from qmf_shell.commands import standard
    from qmf_shell.session.lake_source import LakeSource
    from qmf_shell.session.opening import open_lake_session, open_session

    lake = LakeSource(options.lake)
    with contextlib.ExitStack() as stack:
        stack.callback(screen.close)
        try:
            with screen.progress.busy():
                screen.progress.report("connecting")
                opened = stack.enter_context(
                    open_lake_session(lake, registry=standard(), settings=screen.settings)
                    if _lake_alone(options)
                    else open_session(
                        connections.targets,
                        timeout=options.timeout,
                        interval=options.interval or INTERVAL,
                        follow=interactive,
                        registry=standard(),
                        settings=screen.settings,
                        meanwhile=_load_prompt if interactive else _load_commands,
                    )
                )
        except QmfError as error:
            screen.error(str(error))
            return failed_to_open(error)
        stack.callback(lake.close)
        context = opened.context
        context.connection, context.lake = connections.context, lake
        context.report, context.columns = screen.progress.report, _chosen_columns(screen)
        if prompter:
            from qmf_shell.session.prompts import TerminalPrompter

            context.prompter = TerminalPrompter(screen.progress.pause)
        return work(opened, screen)


def _chosen_columns(screen: Screen) -> ColumnMemory:
    """The columns that the user chose in earlier sessions."""
    from qmf.connecting import xdg_path
    from qmf_shell.session.column_memory import ColumnMemory, ColumnMemoryError, read_columns

    path = xdg_path(os.environ, "XDG_STATE_HOME", ".local/state", "columns.json")
    try:
        return read_columns(path)
    except ColumnMemoryError as error:
        screen.error(str(error))
        return ColumnMemory(path)


def _read(kind: str, value: str) -> Iterable[tuple[str, str]]:
    """The lines of a -c or -f, with their positions.

    Raises:
        SettingsError: the file cannot be read.
    """
    from qmf_shell.modes.batch import number_lines
    from qmf_shell.settings import SettingsError

    if kind == "command":
        return [(value, "")]
    if value == "-":
        return number_lines(sys.stdin)
    try:
        return number_lines(Path(value).read_text(encoding="utf-8", errors="surrogateescape").splitlines(), value)
    except OSError as error:
        raise SettingsError(f"cannot read {value}: {error.strerror or error}") from None


def _load_prompt() -> None:
    """Load the modules that the prompt needs."""
    import qmf_shell.modes.repl  # noqa: F401


def _load_commands() -> None:
    """Load the modules that commands need."""


def _interact(opened: OpenSession, screen: Screen) -> int:
    from qmf_shell.modes.repl import Repl, history_path, open_history
    from qmf_shell.session.name_cache import NameRefresher

    refresher = NameRefresher(opened.context.backend)
    repl = Repl(opened.context, screen, refresher, history=open_history(history_path(os.environ)))
    opened.on_change(refresher.request_classes)
    opened.on_switch(refresher.use)
    opened.on_change(repl.redraw)
    _greet(opened, screen)
    collect_seldom()
    try:
        return repl.run()
    finally:
        refresher.close()


def _greet(opened: OpenSession, screen: Screen) -> None:
    from qmf.views.text import listing, plural
    from qmf_shell.results.result import Notice, NoticeLevel

    backend = opened.context.backend
    agents = len(backend.agents())
    connected = [item.url for item in backend.statuses if item.connected]
    if opened.recorded:
        where = _lake_summary(opened)
    elif opened.embedded:
        where = f"Connected to an embedded broker at {connected[0]}, with a host agent that describes this machine."
    else:
        where = f"Connected to {listing(connected, 'and')}, {plural(agents, 'agent')}."
    screen.show(Notice(f"qmf-shell {__version__}. {where}", NoticeLevel.PLAIN))
    for item in backend.statuses:
        if not item.connected:
            text = f"No connection to {item.url} yet: {item.reason}. It is retried."
            screen.show(Notice(text, NoticeLevel.WARNING))
    if not agents and not opened.recorded:
        screen.show(Notice("No agent has answered yet.", NoticeLevel.WARNING))
    screen.show(Notice("Type help for the commands; Tab completes, Ctrl-D leaves."))


def _lake_summary(opened: OpenSession) -> str:
    """What the lake tells about, for the greeting."""
    from qmf.views.formatting import Formatter

    reader = opened.context.past()
    if not reader.end():
        return f"The lake {reader.url} is empty."
    first, last = map(Formatter().instant, (reader.begin(), reader.end()))
    return f"No broker: the lake {reader.url} reports on {first} to {last}."


if __name__ == "__main__":
    sys.exit(main())
