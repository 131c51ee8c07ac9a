"""Reads one table of a configuration. Errors are collected with their lines, so that all are reported at once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from qmf._toml import KeyPath, line_of
from qmf.pipeline.notifying.matchers import Matcher, parse_matcher
from qmf.pipeline.notifying.receivers.base import Secret
from qmf.pipeline.toml_tables import TomlTable

_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@attrs.frozen(order=True)
class ConfigError:
    """What is wrong in a configuration.

    Attributes:
        line: from 1; 0 where it is not known.
        text: where in the file, and what is wrong.
    """

    line: int
    text: str

    def at(self, file: str) -> str:
        """One line for people."""
        return f"{file}:{self.line}: {self.text}" if self.line else f"{file}: {self.text}"


class ConfigTable(TomlTable):
    """One table, of which each key is read once."""

    def __init__(
        self,
        content: Mapping[str, Any],
        path: KeyPath,
        lines: Mapping[KeyPath, int],
        errors: list[ConfigError],
        folder: Path,
    ) -> None:
        """Make a reader of the table at `path`; it adds to `errors`, and paths in it are relative to `folder`."""
        super().__init__(content)
        self._path, self._lines, self._errors, self._folder = path, lines, errors, folder

    @property
    def names(self) -> list[str]:
        """The keys that were not read yet."""
        return list(self._content)

    def fail(self, key: str, text: str) -> None:
        """Add an error; without a key, one of the whole table."""
        path = (*self._path, key) if key else self._path
        names = [str(part + 1) if isinstance(part, int) else part for part in path]
        where = ": ".join([*names, text])
        self._errors.append(ConfigError(line_of(self._lines, path) or 0, where))

    def missing(self, key: str) -> None:
        """Add the error that a key is not there."""
        self.fail("", f"{key} is missing")

    def count(self, key: str, default: int) -> int:
        """A whole number, not negative."""
        value = self.read(key)
        if value is None or (type(value) is int and value >= 0):
            return default if value is None else value
        self.fail(key, f"must be a whole number, 0 or more, not {value!r}")
        return default

    def matchers(self, key: str, *, needed: bool = False) -> tuple[Matcher, ...]:
        """A list of matchers, or a table of names and values that must be equal."""
        if isinstance(self._content.get(key), dict):
            table = self.read(key)
            if all(isinstance(value, str) for value in table.values()):
                return tuple(Matcher(name, value) for name, value in table.items())
            self.fail(key, "the values must be texts")
            return ()
        found: list[Matcher] = []
        for text in self.texts(key, needed=needed, empty=True) or ():
            try:
                found.append(parse_matcher(text))
            except ValueError as error:
                self.fail(key, str(error))
        return tuple(found)

    def file(self, key: str, *, needed: bool = False) -> Path | None:
        """A path, relative to the folder of the configuration."""
        text = self.text(key, needed=needed)
        return None if text is None else self._folder / Path(text).expanduser()

    def existing(self, key: str) -> Path | None:
        """The path of a file that can be read."""
        path = self.file(key)
        if path is not None and not (path.is_file() and os.access(path, os.R_OK)):
            self.fail(key, f"{path}: {'is not a file that can be read' if path.exists() else 'no such file'}")
        return path

    def secret(self, name: str, *, plain: bool = True) -> Secret | None:
        """A secret, by the keys ``NAME_file`` or ``NAME_env``.

        Unless it is not `plain`, the key ``NAME`` itself is an error that says what to write instead.
        """
        if plain and name in self:
            self.read(name)
            self.fail(name, f"a secret does not belong into this file; use {name}_file or {name}_env")
        file, variable = self.existing(f"{name}_file"), self.text(f"{name}_env")
        if file is not None and variable is not None:
            self.fail(f"{name}_env", f"give either {name}_file or {name}_env")
        if variable is not None and not _WORD.fullmatch(variable):
            self.fail(f"{name}_env", f"must be the name of a variable, not {variable!r}")
        return None if file is None and variable is None else Secret(file, None if file is not None else variable)

    def table(self, key: str) -> ConfigTable:
        """A table inside this one; an empty one where it is missing."""
        value = self.read(key)
        if value is not None and not isinstance(value, dict):
            self.fail(key, f"must be a table, not {value!r}")
        return self._inner(value if isinstance(value, dict) else {}, (*self._path, key))

    def tables(self, key: str) -> Iterator[ConfigTable]:
        """A list of tables, or one table; true for an empty one."""
        value = self.read(key)
        if value is True:
            value = {}
        if isinstance(value, dict):
            yield self._inner(value, (*self._path, key))
        elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
            for index, item in enumerate(value):
                yield self._inner(item, (*self._path, key, index))
        elif value is not None:
            self.fail(key, f"must be a table or a list of tables, not {value!r}")

    def end(self, known: str = "") -> None:
        """Add an error for each key that was not read; `known` says what there is instead."""
        for key in list(self._content):
            self.fail(key, f"no such key{f'; there are {known}' if known else ''}")

    def _inner(self, content: Mapping[str, Any], path: KeyPath) -> ConfigTable:
        return ConfigTable(content, path, self._lines, self._errors, self._folder)
