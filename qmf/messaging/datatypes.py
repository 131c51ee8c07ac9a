"""Values that the published API exports beside its own classes (`qpid.datatypes`)."""

from __future__ import annotations

import datetime as _datetime
import functools
import time
from typing import Self
from uuid import uuid4

__all__ = ["Serial", "timestamp", "uuid4"]


class timestamp(float):
    """Seconds since 1970. Sums and differences with numbers of seconds and with `timedelta` are timestamps."""

    def __new__(cls, obj: float | _datetime.datetime | None = None) -> Self:
        """Make a timestamp; without a number, that of now.

        Args:
            obj: seconds or a time; None for now. A time without zone is local.
        """
        if obj is None:
            obj = time.time()
        return super().__new__(cls, obj.timestamp() if isinstance(obj, _datetime.datetime) else obj)

    def datetime(self) -> _datetime.datetime:
        """The time, local and without zone."""
        return _datetime.datetime.fromtimestamp(self)

    def __add__(self, other: float | _datetime.timedelta) -> Self:
        return type(self)(float(self) + _seconds(other))

    __radd__ = __add__

    def __sub__(self, other: float | _datetime.timedelta) -> Self:
        return type(self)(float(self) - _seconds(other))

    def __rsub__(self, other: float) -> Self:
        return type(self)(other - float(self))

    def __neg__(self) -> Self:
        return type(self)(-float(self))

    def __repr__(self) -> str:
        return f"timestamp({float(self)!r})"


def _seconds(value: float | _datetime.timedelta) -> float:
    return value.total_seconds() if isinstance(value, _datetime.timedelta) else value


@functools.total_ordering
class Serial:
    """A serial number of 32 bits: after the highest one comes 0, and of two numbers the lesser one is that from which
    the other is reached by fewer steps forward.

    Attributes:
        value: 0 to 2**32 - 1.
    """

    def __init__(self, value: int) -> None:
        self.value = value & 0xFFFFFFFF

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | Serial):
            return NotImplemented
        return self.value == _serial(other).value

    def __lt__(self, other: int | Serial) -> bool:
        return bool((self.value - _serial(other).value) & 0x80000000)

    def __add__(self, other: int) -> Serial:
        return Serial(self.value + other)

    def __sub__(self, other: int | Serial) -> int | Serial:
        """The difference of two serial numbers, or the number so many steps before."""
        return self.value - other.value if isinstance(other, Serial) else Serial(self.value - other)

    def __repr__(self) -> str:
        return f"serial({self.value})"

    def __str__(self) -> str:
        return str(self.value)


def _serial(value: int | Serial) -> Serial:
    return value if isinstance(value, Serial) else Serial(value)
