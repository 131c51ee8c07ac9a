"""Options from a TOML file, which the command line overrides.

The file has a table for each subcommand, `[all]` for options that several share, and `[spark]` for settings of Spark.
What would have no effect is refused: options in `[all]` that no command has, and in a table that its command has not.
The keys are the names of the long options.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qmf._toml import TomlFile, read_toml
from qmf.pipeline.errors import PipelineError

_ALL = "all"

_SPARK = "spark"


def parse_options(
    parser: argparse.ArgumentParser, commands: Mapping[str, argparse.ArgumentParser], arguments: Sequence[str]
) -> argparse.Namespace:
    """Parse a command line, with defaults from the file of its `--config`.

    Args:
        parser: of the whole line.
        commands: the parser of each subcommand, see `cli.parsers`.
        arguments: without the program's name.

    Raises:
        SystemExit: with 2 for an error on the line or in the file.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--config", type=Path)
    file = finder.parse_known_args(list(arguments))[0].config
    command = commands.get(" ".join(arguments[:2])) or commands.get(" ".join(arguments[:1]))
    if file is not None and command is not None:
        _set_defaults(command, arguments[0], file, commands)
    return parser.parse_args(arguments)


def _set_defaults(
    command: argparse.ArgumentParser, name: str, file: Path, commands: Mapping[str, argparse.ArgumentParser]
) -> None:
    try:
        toml = read_toml(file, PipelineError)
        if toml is None:
            raise PipelineError(f"cannot read {file}: no such file")
        _check_tables(toml, commands)
        known = _options_by_name(command)
        tables = {_ALL: toml.content.get(_ALL, {}), name: toml.content.get(name, {})}
        for table, options in tables.items():
            for key, value in options.items():
                if table == _ALL and key in tables[name]:
                    continue
                with toml.at(table, key):
                    if key in known:
                        _set_default(known[key], key, value)
                    else:
                        _check_foreign_option(key, name, commands, own=table == name)
    except PipelineError as error:
        command.error(str(error))
    if "conf" in known:
        known["conf"].default = [(key, str(value)) for key, value in _flatten(toml.content.get(_SPARK, {}), "spark.")]


def _check_tables(toml: TomlFile, commands: Mapping[str, argparse.ArgumentParser]) -> None:
    for key, value in toml.content.items():
        with toml.at(key):
            if key not in {_ALL, _SPARK, *commands}:
                raise PipelineError(f"there is no subcommand {key!r}")
            if not isinstance(value, dict):
                raise PipelineError(f"{key} must be a table")


def _check_foreign_option(key: str, name: str, commands: Mapping[str, argparse.ArgumentParser], *, own: bool) -> None:
    """Check an option that the command `name` does not have: others must have it, in its own table its subcommands."""
    having = [full for full, other in commands.items() if key in _options_by_name(other)]
    if own and not any(full.startswith(f"{name} ") for full in having):
        raise PipelineError(f"{name} has no option {key!r}")
    if not having:
        raise PipelineError(f"no command has an option {key!r}")


def _options_by_name(command: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The options of a command by their names."""
    return {option[2:]: action for action in command._actions for option in action.option_strings}


def _set_default(action: argparse.Action, key: str, value: object) -> None:
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise PipelineError(f"{key}: must be true or false")
        action.default = value
        return
    text = ",".join(str(item) for item in value) if isinstance(value, list) else str(value)
    if callable(action.type):
        try:
            action.default = action.type(text)
        except (ValueError, argparse.ArgumentTypeError) as error:
            raise PipelineError(f"{key}: {error}") from None
    else:
        action.default = text
    action.required = False


def _flatten(table: Mapping[str, Any], prefix: str) -> list[tuple[str, object]]:
    """Nested tables as dotted names: TOML reads `a.b = 1` as a table in a table."""
    found: list[tuple[str, object]] = []
    for key, value in table.items():
        name = f"{prefix}{key}"
        found += _flatten(value, f"{name}.") if isinstance(value, dict) else [(name, value)]
    return found
