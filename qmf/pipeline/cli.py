"""`qmf-pipeline`: records a bus into a lake, maintains the lake, and runs the jobs over it.

Exit codes: 0 done or ended by a signal; 2 wrong arguments, no connection, a missing library, or a failed file system.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from typing import Any

from qmf._completion import add_completion_option
from qmf._version import __version__
from qmf.errors import QmfError
from qmf.pipeline.commands import COMMANDS
from qmf.pipeline.commands.base import Subcommand, add_common, parse_options
from qmf.pipeline.without_pandas import without_pandas

_EXIT_ERROR = 2


def program() -> int:
    """Run `main` in a process of its own, without pandas."""
    with without_pandas():
        return main()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; arguments without the program's name, None takes those of the process. Returns the exit code.

    Raises:
        SystemExit: with 2 for wrong arguments, with 0 for `--help` and `--version`.
    """
    parser, commands = parsers()
    options = parse_options(parser, commands, sys.argv[1:] if argv is None else argv)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    try:
        options.run(options)
    except QmfError as error:
        print(f"qmf-pipeline: {error}", file=sys.stderr)
        return _EXIT_ERROR
    except KeyboardInterrupt:
        return 0
    return 0


def parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """The parser of the whole command line, and that of each subcommand; ``COMMAND ACTION`` of one with actions."""
    parser = argparse.ArgumentParser(
        prog="qmf-pipeline", description="Record a QMF bus, and process the recording with Spark.", allow_abbrev=False
    )
    add_completion_option(parser)
    parser.add_argument("--version", action="version", version=f"qmf-pipeline {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands: dict[str, argparse.ArgumentParser] = {}
    for command in COMMANDS:
        made = _add_parser(subparsers, command)
        commands[command.name] = made
        if not command.actions:
            _complete(made, command)
            continue
        actions = made.add_subparsers(dest="action", required=True, metavar="ACTION")
        for action in command.actions:
            inner = _add_parser(actions, action)
            commands[f"{command.name} {action.name}"] = inner
            _complete(inner, action)
    return parser, commands


def _add_parser(parsers: Any, command: Subcommand) -> argparse.ArgumentParser:
    # With abbreviations, --conf would be --config where Spark is not needed.
    parser: argparse.ArgumentParser = parsers.add_parser(
        command.name, help=command.help, description=f"{command.help}.", allow_abbrev=False
    )
    return parser


def _complete(parser: argparse.ArgumentParser, command: Subcommand) -> None:
    add_common(parser, spark=command.spark, lake=command.lake)
    command.options(parser)
    parser.set_defaults(run=command.run)
