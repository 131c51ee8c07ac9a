"""Reads one table of a TOML file. Errors are collected, so that all errors of a file are reported at once. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self, TypeVar

import attrs

from qmf._toml import KeyPath, line_of
from qmf.pipeline.errors import PipelineError
from qmf.views.times import parse_duration

_SECOND = 10**9
T = TypeVar("T")


def or_default(value: T | None, default: T) -> T:
    """A value that was read; `default` where it is None, and not where it is false, 0 or empty."""
    return default if value is None else value


@attrs.frozen(order=True)
class TomlError:
    """What is wrong in a file, and in which line, from 1; 0 where that is not known."""

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

    def check(self, file: str, error: type[PipelineError]) -> None:
        """Raise all of them as one error, if there are any."""
        if self.found:
            raise error("\n".join(self.texts(file)))


class TomlTable:
    """One table, of which each key is read once. Methods that read give None for a missing key, or a wrong value."""

    def __init__(self, content: Mapping[str, Any], path: KeyPath, errors: TomlErrors, folder: Path = Path()) -> None:
        """Make a reader of the table at `path`; it adds its errors to `errors`. Files are relative to `folder`."""
        self._content, self._path, self._errors, self._folder = dict(content), path, errors, folder
        self._errors_before = len(errors.found)

    def __contains__(self, key: str) -> bool:
        """True where the key is there and was not read."""
        return key in self._content

    @property
    def names(self) -> list[str]:
        """The keys that were not read yet."""
        return list(self._content)

    @property
    def failed(self) -> bool:
        """True after an error in this table."""
        return len(self._errors.found) > self._errors_before

    @property
    def line(self) -> int | None:
        """The line of the table; None where not known."""
        return self._errors.line(self._path)

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

    def value(self, key: str, fits: Callable[[Any], bool], what: str, *, needed: bool = False) -> Any:
        """The value of a key that fits; for another one the error that it must be `what`."""
        value = self.read(key, needed=needed)
        if value is None or fits(value):
            return value
        self.fail(key, f"must be {what}, not {value!r}")
        return None

    def flag(self, key: str) -> bool | None:
        """True or false."""
        found: bool | None = self.value(key, lambda value: isinstance(value, bool), "true or false")
        return found

    def number(self, key: str) -> float | None:
        """A number."""
        found = self.value(key, lambda value: type(value) in (int, float) and value == value, "a number")
        return None if found is None else float(found)

    def whole_number(self, key: str, *, positive: bool = False, needed: bool = False) -> int | None:
        """A whole number, not negative."""
        what = "a whole number above 0" if positive else "a whole number, 0 or more"
        found: int | None = self.value(key, lambda value: type(value) is int and value >= positive, what, needed=needed)
        return found

    def duration(self, key: str, *, needed: bool = False, zero: bool = False) -> int | None:
        """A duration in ns, as text or as a number of seconds; `zero` allows 0."""
        value = self.read(key, needed=needed)
        if value is None:
            return None
        try:
            if type(value) not in (str, int, float) or (isinstance(value, float) and not math.isfinite(value)):
                raise ValueError(f'must be a time such as "30s", not {value!r}')
            ns = parse_duration(value) if isinstance(value, str) else round(value * _SECOND)
            if ns < 0 or (ns == 0 and not zero):
                raise ValueError("must be longer than 0")
        except ValueError as error:
            self.fail(key, str(error))
            return None
        return ns

    def text(self, key: str, *, needed: bool = False) -> str | None:
        """A text that is not blank."""
        found: str | None = self.value(key, _is_text, "a text", needed=needed)
        return found

    def texts(self, key: str, *, needed: bool = False, empty: bool = False) -> tuple[str, ...] | None:
        """A list of texts, or one text; `empty` allows a list without any."""

        def fits(value: Any) -> bool:
            return _is_text(value) or (isinstance(value, list) and (empty or bool(value)) and all(map(_is_text, value)))

        found = self.value(key, fits, "a list of texts", needed=needed)
        return (found,) if isinstance(found, str) else None if found is None else tuple(found)

    def choice(self, key: str, choices: Sequence[str], *, needed: bool = False) -> str | None:
        """One of some texts."""
        value = self.text(key, needed=needed)
        if value is None or value in choices:
            return value
        self.fail(key, f"must be one of {', '.join(choices)}, not {value!r}")
        return None

    def named_texts(self, key: str) -> dict[str, str]:
        """A table of texts; numbers and booleans are taken as TOML writes them."""
        found = {}
        for name, item in (self.value(key, lambda value: isinstance(value, dict), "a table of texts") or {}).items():
            if isinstance(item, str | int | float):
                found[name] = str(item).lower() if isinstance(item, bool) else str(item)
            else:
                self.fail(f"{key}.{name}", f"must be a text, not {item!r}")
        return found

    def table(self, key: str, *, needed: bool = False) -> Self:
        """A table inside this one; an empty one where it is missing."""
        value = self.read(key, needed=needed)
        return self.inner(key, {} if value is None else value)

    def inner(self, key: str, value: object, number: int | None = None) -> Self:
        """A reader of a value that must be a table inside this one; `number` is its place in a list, from 1."""
        path = (*self._path, key) if number is None else (*self._path, key, number - 1)
        if not isinstance(value, dict):
            self._errors.add(path, f"must be a table, not {value!r}")
            value = {}
        return type(self)(value, path, self._errors, self._folder)

    def end(self, known: str = "", hints: Mapping[str, str] = MappingProxyType({})) -> None:
        """Add an error for each key that was not read; `known` says what there is, `hints` what to write instead."""
        for key in self._content:
            hint = hints.get(key) or (known and f"there are {known}")
            self.fail(key, f"no such key; {hint}" if hint else "no such key")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())
