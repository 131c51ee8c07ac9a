"""Reads one table of a rule file. Errors are collected, so that all errors of a file are reported at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf.pipeline.correlate.rules import SECOND
from qmf.pipeline.durations import parse_duration
from qmf.pipeline.errors import PipelineError


class RuleError(PipelineError):
    """Rules that can't be evaluated: a line for each error, with file, rule and key."""


class RuleTable:
    """One table, of which each key is read once.

    Attributes:
        where: the table, for messages.
    """

    def __init__(self, table: Mapping[str, Any], where: str, errors: list[str]) -> None:
        """Make a reader; it adds its errors to `errors`."""
        self._table = dict(table)
        self.where = where
        self._errors = errors
        self._errors_before = len(errors)

    @property
    def failed(self) -> bool:
        """True after an error in this table."""
        return len(self._errors) > self._errors_before

    def fail(self, key: str, text: str) -> None:
        """Add an error."""
        self._errors.append(f"{self.where}: {key}: {text}")

    def read(self, key: str, *, needed: bool = False) -> Any:
        """The value of a key, or None."""
        if needed and key not in self._table:
            self.fail(key, "is missing")
        return self._table.pop(key, None)

    def text(self, key: str, *, needed: bool = False) -> str | None:
        """A text that isn't empty."""
        value = self.read(key, needed=needed)
        if value is None or (isinstance(value, str) and value.strip()):
            return value
        self.fail(key, f"must be a text, not {value!r}")
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

    def flag(self, key: str) -> bool | None:
        """True or false."""
        value = self.read(key)
        if value is None or isinstance(value, bool):
            return value
        self.fail(key, f"must be true or false, not {value!r}")
        return None

    def duration(self, key: str, *, needed: bool = False, zero: bool = False) -> int | None:
        """A duration in ns; `zero` allows 0."""
        value = self.read(key, needed=needed)
        if value is None:
            return None
        try:
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise ValueError(f'must be a time such as "30s", not {value!r}')
            ns = parse_duration(value) if isinstance(value, str) else round(value * SECOND)
            if ns < 0 or (ns == 0 and not zero):
                raise ValueError("must be longer than 0")
        except ValueError as error:
            self.fail(key, str(error))
            return None
        return ns

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A list of texts, or one text."""
        value = self.read(key)
        if value is None:
            return None
        items = [value] if isinstance(value, str) else value
        if isinstance(items, list) and items and all(isinstance(item, str) and item.strip() for item in items):
            return tuple(items)
        self.fail(key, f"must be a list of texts, not {value!r}")
        return None

    def inner(self, key: str, value: object) -> RuleTable:
        """A reader of a table inside this one."""
        if not isinstance(value, dict):
            self.fail(key, f"must be a table, not {value!r}")
            value = {}
        return RuleTable(value, f"{self.where}: {key}", self._errors)

    def end(self) -> None:
        """Add an error for each key that was not read."""
        for key in self._table:
            self.fail(key, "no such key")
