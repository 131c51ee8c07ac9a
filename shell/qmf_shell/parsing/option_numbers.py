"""Options of commands that are numbers."""

from __future__ import annotations

import math
import re

from qmf_shell.parsing.command import AnyCommand, BoundArguments, UsageError


def count_option(command: AnyCommand, args: BoundArguments, key: str, default: int) -> int:
    """The whole number of an option, or the default.

    Raises:
        UsageError: its value is not a whole number from 0 to 999999999.
    """
    text = args.options.get(key, str(default))
    if not re.fullmatch("[0-9]{1,9}", text):
        raise UsageError(
            command.name, f"option {_spelling(command, key)} needs a number, not {text!r}", command.usage[0]
        )
    return int(text)


def seconds_option(command: AnyCommand, args: BoundArguments, key: str, default: float) -> float:
    """The seconds of an option, or the default.

    Raises:
        UsageError: its value is not a number from 0.1 to 86400.
    """
    text = args.options.get(key)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.1 <= value <= 86400:
        reason = f"option {_spelling(command, key)} needs seconds from 0.1 to 86400, not {text!r}"
        raise UsageError(command.name, reason, command.usage[0])
    return value


def _spelling(command: AnyCommand, key: str) -> str:
    option = command.option(f"--{key}")
    return option.names[0] if option is not None else key
