"""Options from a TOML file, which the command line overrides.

The file has a table for each subcommand, `[all]` for options that several share, and `[spark]` for settings of Spark.
What would have no effect is refused: options in `[all]` that no command has, or that only jobs on Spark have.
The keys are the names of the long options.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_ALL = "all"

#: Options that only some commands have, and that would do nothing for others.
_OF_SPARK = ("master", "conf")
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
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        command.error(f"{file}: {error}")
    for key, value in content.items():
        if key not in {_ALL, _SPARK, *commands}:
            command.error(f"{file}: there is no subcommand {key!r}")
        if not isinstance(value, dict):
            command.error(f"{file}: {key} must be a table")
    known = _known(command)
    siblings = {key for full, other in commands.items() if full.startswith(f"{name} ") for key in _known(other)}
    own = content.get(name, {})
    for key, value in {**content.get(_ALL, {}), **own}.items():
        action = known.get(key)
        if action is not None:
            _set_default(command, action, value, f"{file}: {key}")
        elif key in own and key not in siblings:
            command.error(f"{file}: {name} has no option {key!r}")
        elif key not in own and key in _OF_SPARK:
            command.error(f"{file}: {name} has no option {key!r}; move it to the tables of the commands that have it")
        elif not any(key in _known(other) for other in commands.values()):
            command.error(f"{file}: no command has an option {key!r}")
    if "conf" in known:
        known["conf"].default = [(key, str(value)) for key, value in _flattened(content.get(_SPARK, {}), "spark.")]


def _known(command: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The options of a command by their names."""
    return {option[2:]: action for action in command._actions for option in action.option_strings}


def _set_default(command: argparse.ArgumentParser, action: argparse.Action, value: object, where: str) -> None:
    if action.nargs == 0:
        if not isinstance(value, bool):
            command.error(f"{where}: must be true or false")
        action.default = value
        return
    text = ",".join(str(item) for item in value) if isinstance(value, list) else str(value)
    if callable(action.type):
        try:
            action.default = action.type(text)
        except (ValueError, argparse.ArgumentTypeError) as error:
            command.error(f"{where}: {error}")
    else:
        action.default = text
    action.required = False


def _flattened(table: Mapping[str, Any], prefix: str) -> list[tuple[str, object]]:
    """Nested tables as dotted names: TOML reads `a.b = 1` as a table in a table."""
    found: list[tuple[str, object]] = []
    for key, value in table.items():
        name = f"{prefix}{key}"
        found += _flattened(value, f"{name}.") if isinstance(value, dict) else [(name, value)]
    return found
