"""Accessors of statistics: `Counter`, `HiLo` and `Mma`. A managed program calls them in its hot paths.

Rules:

* A change takes the object's lock, stores, sets the object's mark and returns: no call into the agent, no time read.
* High, low, minimum, maximum and average describe the publisher's interval. Only the publisher begins a new one
  (`_restart`); queries and other readers take nothing away.
* A value that leaves the range of its type, or the bounds of its schema, raises ConstraintError and changes nothing.

Methods with an underscore belong to `qmf.agent.model`, which calls them with the object's lock held.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from qmf.agent.layout import STATISTICS, Field
from qmf.errors import ConstraintError

#: What `_restart` took away; opaque, for `_restore`.
Interval = tuple[int, ...]


class Owner(Protocol):
    """What an accessor knows of its object."""

    _qmf_lock: threading.Lock
    _qmf_marks: int


class Counter:
    """A number that goes up and down: `count` types.

    Any thread may call any method; no update is lost.
    """

    __slots__ = ("_field", "_high_bound", "_lock", "_low_bound", "_owner", "_value")

    def __init__(self, owner: Owner, field: Field) -> None:
        self._owner = owner
        self._field = field
        self._lock = owner._qmf_lock
        self._low_bound = field.low
        self._high_bound = field.high
        self._value = max(0, int(field.low))

    @property
    def value(self) -> int:
        """The number now."""
        return self._value

    def inc(self, n: int = 1) -> None:
        """Add.

        Args:
            n: how much; may be negative.

        Raises:
            ConstraintError: the result is out of range, or `n` is no whole number. The value stays as it was.
        """
        if type(n) is not int:
            n = whole(n, self._field)
        with self._lock:
            self._store(self._value + n)

    def dec(self, n: int = 1) -> None:
        """Subtract; as `inc`."""
        if type(n) is not int:
            n = whole(n, self._field)
        with self._lock:
            self._store(self._value - n)

    def set(self, value: int) -> None:
        """Replace. Setting what is there already is no change.

        Args:
            value: the new number.

        Raises:
            ConstraintError: out of range, or no whole number. The value stays as it was.
        """
        if type(value) is not int:
            value = whole(value, self._field)
        with self._lock:
            if value != self._value:
                self._store(value)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._field.where} {self.value}>"

    def _store(self, value: int) -> None:
        if not self._low_bound <= value <= self._high_bound:
            raise out_of_range(self._field, value)
        self._value = value
        if not self._owner._qmf_marks & STATISTICS:
            self._owner._qmf_marks |= STATISTICS

    def _read(self) -> tuple[int, ...]:
        return (self._value,)

    def _restart(self) -> Interval | None:
        """Begin a new interval; what the old one held, or None where nothing changed by that."""
        return None

    def _restore(self, interval: Interval) -> None:
        """Take the time before `_restart` into the interval that runs: it could not be published."""


class HiLo(Counter):
    """A number with its highest and lowest value of the current interval: `hilo` types.

    At the start of each interval both marks are set to the current value. A number that `set` gives its first value was
    never anything else: its first interval begins with that value, not with 0.
    """

    __slots__ = ("_high", "_low", "_untouched")

    def __init__(self, owner: Owner, field: Field) -> None:
        super().__init__(owner, field)
        self._high = self._low = self._value
        self._untouched = True

    @property
    def high(self) -> int:
        """Highest value since the interval began."""
        return self._high

    @property
    def low(self) -> int:
        """Lowest value since the interval began."""
        return self._low

    def set(self, value: int) -> None:
        """Replace; as `Counter.set`."""
        if type(value) is not int:
            value = whole(value, self._field)
        with self._lock:
            first = self._untouched
            if value != self._value:
                self._store(value)
                if first:
                    self._high = self._low = value
            self._untouched = False

    def _store(self, value: int) -> None:
        Counter._store(self, value)
        self._untouched = False
        if value > self._high:
            self._high = value
        elif value < self._low:
            self._low = value

    def _read(self) -> tuple[int, ...]:
        return self._value, self._high, self._low

    def _restart(self) -> Interval | None:
        if self._high == self._low:
            return None
        interval = (self._high, self._low)
        self._high = self._low = self._value
        return interval

    def _restore(self, interval: Interval) -> None:
        high, low = interval
        self._high = max(self._high, high)
        self._low = min(self._low, low)


class Mma:
    """Minimum, maximum and average of the samples of the current interval: `mma` types.

    Each interval starts empty; without samples every value is 0. Any thread may call any method.
    """

    __slots__ = ("_field", "_high_bound", "_lock", "_low_bound", "_max", "_min", "_owner", "_samples", "_total")

    def __init__(self, owner: Owner, field: Field) -> None:
        self._owner = owner
        self._field = field
        self._lock = owner._qmf_lock
        self._low_bound = field.low
        self._high_bound = field.high
        self._samples = self._total = self._min = self._max = 0

    @property
    def samples(self) -> int:
        """Number of samples in the interval."""
        return self._samples

    @property
    def min(self) -> int:
        """Smallest sample, or 0 without any."""
        return self._min

    @property
    def max(self) -> int:
        """Largest sample, or 0 without any."""
        return self._max

    @property
    def average(self) -> float:
        """Mean of the samples, or 0.0 without any. On the wire it is rounded down."""
        with self._lock:
            return self._total / self._samples if self._samples else 0.0

    def sample(self, value: int) -> None:
        """Add one sample.

        Args:
            value: in the schema's unit; `mmaTime` takes nanoseconds.

        Raises:
            ConstraintError: out of range, or no whole number. Nothing is added.
        """
        if type(value) is not int:
            value = whole(value, self._field)
        if not self._low_bound <= value <= self._high_bound:
            raise out_of_range(self._field, value)
        with self._lock:
            if not self._samples:
                self._min = self._max = value
            elif value < self._min:
                self._min = value
            elif value > self._max:
                self._max = value
            self._samples += 1
            self._total += value
            if not self._owner._qmf_marks & STATISTICS:
                self._owner._qmf_marks |= STATISTICS

    def __repr__(self) -> str:
        return f"<Mma {self._field.where} {self._samples} samples>"

    def _read(self) -> tuple[int, ...]:
        average = self._total // self._samples if self._samples else 0
        return self._samples, self._min, self._max, average

    def _restart(self) -> Interval | None:
        if not self._samples:
            return None
        interval = (self._samples, self._total, self._min, self._max)
        self._samples = self._total = self._min = self._max = 0
        return interval

    def _restore(self, interval: Interval) -> None:
        samples, total, low, high = interval
        self._min = min(self._min, low) if self._samples else low
        self._max = max(self._max, high) if self._samples else high
        self._samples += samples
        self._total += total


class Derived(HiLo):
    """A counter or hilo that equals an expression of other statistics. Reading computes it; it cannot be set.

    High and low equal the value: nothing watches the expression between two reads.
    """

    __slots__ = ("_compute",)

    def __init__(self, owner: Owner, field: Field, compute: Callable[[], int | float]) -> None:
        super().__init__(owner, field)
        self._compute = compute

    @property
    def value(self) -> int:
        """The expression's value now."""
        return int(self._compute())

    @property
    def high(self) -> int:
        """The value."""
        return self.value

    @property
    def low(self) -> int:
        """The value."""
        return self.value

    def _store(self, value: int) -> None:
        raise read_only(self._field, value)

    def set(self, value: int) -> None:
        """Refuse.

        Raises:
            ConstraintError: always.
        """
        raise read_only(self._field, value)


def whole(value: object, field: Field) -> int:
    """A whole number of another class than `int`, as one.

    Raises:
        ConstraintError: not a whole number; `bool` is none.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise ConstraintError(field.where, field.type.name, value, "must be a whole number")


def out_of_range(field: Field, value: int) -> ConstraintError:
    """The error for a number beyond the bounds of a field."""
    return ConstraintError(field.where, field.type.name, value, f"must be {field.low} to {field.high}")


def read_only(field: Field, value: object) -> ConstraintError:
    """The error for setting a derived statistic."""
    text = field.formula.text if field.formula else ""
    return ConstraintError(field.where, field.type.name, value, f"is computed as {text!r} and cannot be set")
