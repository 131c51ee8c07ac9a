"""Configuration files of the daemon: a line ``name=value`` for each option, as qpidd reads them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from qmf._text_files import read_text
from qmf.broker.daemon.values import yes_or_no


class ConfigFileError(Exception):
    """A configuration file cannot be used; the message has file and line."""


def config_arguments(path: str | Path, parser: argparse.ArgumentParser) -> list[str]:
    """The arguments that a file stands for.

    Empty lines and what follows a ``#`` are ignored. Options without a value are written with ``yes`` or ``no``.

    Args:
        path: of the file.
        parser: knows the options.

    Raises:
        ConfigError: the file cannot be read, a line is not of this form, or names no option.
    """
    arguments: list[str] = []
    for number, line in enumerate(read_text(path, ConfigFileError).splitlines(), 1):
        line = line.partition("#")[0].strip()
        if line:
            arguments += _arguments(line, f"{path}:{number}", parser)
    return arguments


def _arguments(line: str, where: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    name, given, value = (part.strip() for part in line.partition("="))
    option = f"--{name}"
    action = parser._option_string_actions.get(option)
    if action is None or name in ("config", "help", "version"):
        raise ConfigFileError(f"{where}: there is no option {name!r} for a configuration file")
    if not given:
        raise ConfigFileError(f"{where}: expected {name}=value")
    if action.nargs != 0:
        yield f"{option}={value}"
        return
    try:
        if yes_or_no(value):
            yield option
    except argparse.ArgumentTypeError as error:
        raise ConfigFileError(f"{where}: {name}: {error}") from None
