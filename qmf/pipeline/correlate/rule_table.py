"""Reads one table of a rule file. Errors are collected, so that all errors of a file are reported at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf._toml import KeyPath
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.toml_tables import TomlErrors, TomlTable


class RuleError(PipelineError):
    """Rules that can't be evaluated: a line for each error, with file, line, rule and key."""


def raise_errors(errors: TomlErrors, file: str) -> None:
    """Raise all errors in the order of their lines as a `RuleError`, if there is one."""
    if errors.found:
        raise RuleError("\n".join(errors.texts(file)))


class RuleTable(TomlTable):
    """One table of a file of rules, or of tests of rules."""

    def __init__(self, content: Mapping[str, Any], path: KeyPath, errors: TomlErrors) -> None:
        """Make a reader of the table at `path`; it adds its errors to `errors`."""
        super().__init__(content, path, errors)
        self._errors_before = len(errors.found)

    @property
    def failed(self) -> bool:
        """True after an error in this table."""
        return len(self._errors.found) > self._errors_before

    def line(self) -> int | None:
        """The line of the table; None where not known."""
        return self._errors.line(self._path)

    def choice(self, key: str, choices: tuple[str, ...], *, needed: bool = False) -> str | None:
        """One of some texts."""
        value = self.text(key, needed=needed)
        if value is None or value in choices:
            return value
        self.fail(key, f"must be one of {', '.join(choices)}, not {value!r}")
        return None

    def number(self, key: str) -> float | None:
        """A number."""
        value = self.read(key)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value == value):
            return None if value is None else float(value)
        self.fail(key, f"must be a number, not {value!r}")
        return None

    def positive_integer(self, key: str) -> int | None:
        """A whole number above 0; the key is needed."""
        value = self.read(key, needed=True)
        if value is None or (type(value) is int and value > 0):
            return value
        self.fail(key, f"must be a whole number above 0, not {value!r}")
        return None

    def named_texts(self, key: str) -> dict[str, str]:
        """A table of texts; numbers and booleans are taken as TOML writes them."""
        value = self.read(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.fail(key, f"must be a table of texts, not {value!r}")
            return {}
        found = {}
        for name, item in value.items():
            if isinstance(item, str | int | float):
                found[name] = str(item).lower() if isinstance(item, bool) else str(item)
            else:
                self.fail(f"{key}.{name}", f"must be a text, not {item!r}")
        return found

    def inner(self, key: str, value: object, number: int | None = None) -> RuleTable:
        """A reader of a table inside this one; `number` is its place in a list, from 1."""
        path = (*self._path, key) if number is None else (*self._path, key, number - 1)
        if not isinstance(value, dict):
            self._errors.add(path, f"must be a table, not {value!r}")
            value = {}
        return RuleTable(value, path, self._errors)

    def end(self, hints: Mapping[str, str] | None = None) -> None:
        """Add an error for each key that was not read; `hints` says for keys what to write instead."""
        for key in self._content:
            hint = (hints or {}).get(key)
            self.fail(key, f"no such key; {hint}" if hint else "no such key")
