"""Reads one table of a TOML file. Errors are collected, so that all errors of a file are reported at once. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeVar

import attrs

from qmf._toml import KeyPath, line_of
from qmf.views.times import parse_duration

_SECOND = 10**9
T = TypeVar("T")


def or_default(value: T | None, default: T) -> T:
    """A value that was read; `default` where it is None, and not where it is false, 0 or empty."""
    return default if value is None else value


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


@attrs.frozen(order=True)
class TomlError:
    """What is wrong in a file.

    Attributes:
        line: from 1; 0 where it is not known.
        text: where in the file, and what is wrong.
    """

    line: int
    text: str

    def at(self, file: str) -> str:
        """One line for people."""
        return f"{file}:{self.line}: {self.text}" if self.line else f"{file}: {self.text}"


class TomlErrors:
    """The errors that were found in a file, with the lines of its keys, as of `key_lines`."""

    def __init__(self, lines: Mapping[KeyPath, int]) -> None:
        self._lines = lines
        self.found: list[TomlError] = []

    def add(self, path: KeyPath, text: str) -> None:
        """Add the error of a table, or of a key, in which a dot may lead into a table."""
        names = [str(part + 1) if isinstance(part, int) else part for part in path]
        self.found.append(TomlError(self.line(path) or 0, ": ".join([*names, text])))

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, or of the innermost table or key around it; None where not known."""
        if path not in self._lines and path and isinstance(path[-1], str):
            path = (*path[:-1], *(path[-1].split(".") if len(path) > 1 else path[-1:]))
        return line_of(self._lines, path)

    def texts(self, file: str) -> tuple[str, ...]:
        """A line for each, in the order of their lines."""
        return tuple(error.at(file) for error in sorted(self.found, key=lambda error: error.line))


class TomlTable:
    """One table, of which each key is read once. Methods that read give None for a missing key, or a wrong value."""

    def __init__(self, content: Mapping[str, Any], path: KeyPath, errors: TomlErrors) -> None:
        """Make a reader of the table at `path`; it adds its errors to `errors`."""
        self._content, self._path, self._errors = dict(content), path, errors

    def __contains__(self, key: str) -> bool:
        """True where the key is there and was not read."""
        return key in self._content

    def fail(self, key: str, text: str) -> None:
        """Add an error; without a key, one of the whole table."""
        self._errors.add((*self._path, key) if key else self._path, text)

    def missing(self, key: str) -> None:
        """Add the error that a key is not there."""
        self.fail(key, "is missing")

    def read(self, key: str, *, needed: bool = False) -> Any:
        """The value of a key, or None."""
        if needed and key not in self._content:
            self.missing(key)
        return self._content.pop(key, None)

    def flag(self, key: str) -> bool | None:
        """True or false."""
        value = self.read(key)
        if value is None or isinstance(value, bool):
            return value
        self.fail(key, f"must be true or false, not {value!r}")
        return None

    def duration(self, key: str, *, needed: bool = False, zero: bool = False) -> int | None:
        """A duration in ns, as text or as a number of seconds; `zero` allows 0."""
        value = self.read(key, needed=needed)
        if value is None:
            return None
        try:
            if isinstance(value, bool) or not (isinstance(value, str | int) or _is_finite(value)):
                raise ValueError(f'must be a time such as "30s", not {value!r}')
            ns = parse_duration(value) if isinstance(value, str) else round(value * _SECOND)
            if ns < 0 or (ns == 0 and not zero):
                raise ValueError("must be longer than 0")
        except ValueError as error:
            self.fail(key, str(error))
            return None
        return ns

    def texts(self, key: str, *, needed: bool = False, empty: bool = False) -> tuple[str, ...] | None:
        """A list of texts, or one text; `empty` allows a list without any."""
        value = self.read(key, needed=needed)
        if value is None:
            return None
        items = [value] if isinstance(value, str) else value
        if isinstance(items, list) and (items or empty) and all(isinstance(one, str) and one.strip() for one in items):
            return tuple(items)
        self.fail(key, f"must be a list of texts, not {value!r}")
        return None

    def text(self, key: str, *, needed: bool = False, empty: bool = False) -> str | None:
        """A text; `empty` allows one without characters."""
        value = self.read(key, needed=needed)
        if value is None or (isinstance(value, str) and (empty or value.strip())):
            return value
        self.fail(key, f"must be a text, not {value!r}")
        return None
