"""Reads one table of a TOML file. Errors are collected, so that all errors of a file are reported at once. Pure."""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from qmf.views.times import parse_duration

_SECOND = 10**9
T = TypeVar("T")


def or_default(value: T | None, default: T) -> T:
    """A value that was read; `default` where it is None, and not where it is false, 0 or empty."""
    return default if value is None else value


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


class TomlTable(abc.ABC):
    """One table, of which each key is read once. Methods that read give None for a missing key, or a wrong value."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        """Make a reader of the keys and values in `content`."""
        self._content = dict(content)

    def __contains__(self, key: str) -> bool:
        """True where the key is there and was not read."""
        return key in self._content

    @abc.abstractmethod
    def fail(self, key: str, text: str) -> None:
        """Add an error; without a key, one of the whole table."""

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
