"""Accessors of statistics: `Counter`, `HiLo` and `Mma`. A managed program calls them in its hot paths.

Rules:

* A change stores, sets the object's mark and returns: no call into the agent, no time read. An `Mma` sets none: whoever
  asks for changes sees them from the number of samples, which is quicker for those who sample.
* High, low, minimum, maximum and average describe the publisher's interval. Only the publisher begins a new one
  (`_take`); queries and other readers take nothing away.
* A value that leaves the range of its type, or the bounds of its schema, raises ConstraintError and changes nothing.
* No update is lost, whatever threads do. CPython with its global lock switches threads only where a function begins, at
  calls and at the end of a loop's round; in 3.11 the garbage collector may also run where a container is made. So
  between the first read of an accessor's state and the last write to it there is none of these; a test reads the byte
  code. (Lines traced in Python, as by a debugger, are such places too.) Where there is no global lock,
  `accessors.locking` gives each accessor one of its own. A lock here would cost twice as much as all the rest.
"""

from __future__ import annotations

import math

from qmf.agent.layout.class_layout import STATISTICS_CELL, Cells, FieldLayout
from qmf.agent.layout.constraint_errors import range_error, to_whole_number

#: The default of what counts: by one has a short way, with one bound to look at.
_ONE = 1

#: What `_take` took away; opaque, for `_restore`.
Interval = tuple[int | float, ...]


class Counter:
    """A number that goes up and down: `count` types.

    Any thread may call any method; no update is lost.
    """

    __slots__ = ("_cells", "_field", "_value")

    def __init__(self, cells: Cells, field: FieldLayout) -> None:
        self._cells = cells
        self._field = field
        self._value = field.start

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
        field = self._field
        if type(n) is not int:
            n = to_whole_number(n, field)
        new = self._value + n
        if not field.low <= new <= field.high:
            raise range_error(field, new)
        self._value = new
        self._cells[STATISTICS_CELL] = True

    def dec(self, n: int = 1) -> None:
        """Subtract; as `inc`."""
        field = self._field
        if type(n) is not int:
            n = to_whole_number(n, field)
        new = self._value - n
        if not field.low <= new <= field.high:
            raise range_error(field, new)
        self._value = new
        self._cells[STATISTICS_CELL] = True

    def set(self, value: int) -> None:
        """Replace. Setting what is there already is no change.

        Args:
            value: the new number.

        Raises:
            ConstraintError: out of range, or no whole number. The value stays as it was.
        """
        field = self._field
        if type(value) is not int:
            value = to_whole_number(value, field)
        if not field.low <= value <= field.high:
            raise range_error(field, value)
        if value != self._value:
            self._value = value
            self._cells[STATISTICS_CELL] = True

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._field.where} {self.value}>"

    def _read(self) -> tuple[int, ...]:
        """The values for the wire."""
        return (self._value,)

    def _take(self) -> tuple[tuple[int, ...], Interval | None]:
        """Begin a new interval; the values of the old one, and what restores it if anything changed by that."""
        return (self._value,), None

    def _restore(self, interval: Interval) -> None:
        """Take the time before `_take` into the interval that runs: it could not be published."""


class HiLo(Counter):
    """A number with its highest and lowest value of the current interval: `hilo` types.

    At the start of each interval both marks are set to the current value. A number that `set` gives its first value was
    never anything else: its first interval begins with that value, not with 0.
    """

    __slots__ = ("_fresh", "_high", "_low")

    def __init__(self, cells: Cells, field: FieldLayout) -> None:
        super().__init__(cells, field)
        self._high = self._low = self._value
        # Until the first `set` or the first new interval. What `inc` and `dec` do is seen by the marks.
        self._fresh = True

    @property
    def high(self) -> int:
        """Highest value since the interval began."""
        return self._high

    @property
    def low(self) -> int:
        """Lowest value since the interval began."""
        return self._low

    def inc(self, n: int = _ONE) -> None:
        """Add; as `Counter.inc`."""
        if n is not _ONE:
            if type(n) is not int:
                n = to_whole_number(n, self._field)
            new = self._value + n
            # What lies between the marks is in range.
            if new < self._low:
                if new < self._field.low:
                    raise range_error(self._field, new)
                self._low = new
        else:
            new = self._value + 1
        if new > self._high:
            if new > self._field.high:
                raise range_error(self._field, new)
            self._high = new
        self._value = new
        self._cells[STATISTICS_CELL] = True

    def dec(self, n: int = _ONE) -> None:
        """Subtract; as `Counter.inc`."""
        if n is not _ONE:
            if type(n) is not int:
                n = to_whole_number(n, self._field)
            new = self._value - n
            if new > self._high:
                if new > self._field.high:
                    raise range_error(self._field, new)
                self._high = new
        else:
            new = self._value - 1
        if new < self._low:
            if new < self._field.low:
                raise range_error(self._field, new)
            self._low = new
        self._value = new
        self._cells[STATISTICS_CELL] = True

    def set(self, value: int) -> None:
        """Replace; as `Counter.set`."""
        if type(value) is not int:
            value = to_whole_number(value, self._field)
        if self._fresh:
            self._begin(value)
        if value > self._high:
            if value > self._field.high:
                raise range_error(self._field, value)
            self._high = value
        elif value < self._low:
            if value < self._field.low:
                raise range_error(self._field, value)
            self._low = value
        if value != self._value:
            self._value = value
            self._cells[STATISTICS_CELL] = True

    def _begin(self, value: int) -> None:
        # Another thread may have been here first.
        if self._fresh and self._field.low <= value <= self._field.high:
            self._fresh = False
            if self._high == self._low:
                self._high = self._low = value

    def _read(self) -> tuple[int, ...]:
        return self._value, self._high, self._low

    def _take(self) -> tuple[tuple[int, ...], Interval | None]:
        value = self._value
        high = self._high
        low = self._low
        self._fresh = False
        if high != low:
            self._high = self._low = value
        return (value, high, low), None if high == low else (high, low)

    def _restore(self, interval: Interval) -> None:
        high, low = map(int, interval)
        if high > self._high:
            self._high = high
        if low < self._low:
            self._low = low


class Mma:
    """Minimum, maximum and average of the samples of the current interval: `mma` types.

    Each interval starts empty; without samples every value is 0. Any thread may call any method but `_note`, which
    belongs to the agent's loop like `_take`.
    """

    __slots__ = ("_field", "_max", "_min", "_noted", "_samples", "_total")

    def __init__(self, cells: Cells, field: FieldLayout) -> None:  # noqa: ARG002  # all accessors are made the same way
        self._field = field
        self._samples = self._total = self._noted = 0
        self._min: int | float = math.inf
        self._max: int | float = -math.inf

    @property
    def samples(self) -> int:
        """Number of samples in the interval."""
        return self._samples

    @property
    def min(self) -> int:
        """Smallest sample, or 0 without any."""
        return self._read()[1]

    @property
    def max(self) -> int:
        """Largest sample, or 0 without any."""
        return self._read()[2]

    @property
    def average(self) -> float:
        """Mean of the samples, or 0.0 without any. On the wire it is rounded down."""
        samples = self._samples
        total = self._total
        return total / samples if samples else 0.0

    def sample(self, value: int) -> None:
        """Add one sample.

        Args:
            value: in the schema's unit; `mmaTime` takes nanoseconds.

        Raises:
            ConstraintError: out of range, or no whole number. Nothing is added.
        """
        if type(value) is not int:
            value = to_whole_number(value, self._field)
        # What lies between the marks is in range.
        if value > self._max or value < self._min:
            if not self._field.low <= value <= self._field.high:
                raise range_error(self._field, value)
            if value > self._max:
                self._max = value
            if value < self._min:
                self._min = value
        self._samples += 1
        self._total += value

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._field.where} {self._samples} samples>"

    def _note(self) -> bool:
        """Whether there were samples since the last call, or since the interval began."""
        samples = self._samples
        if samples == self._noted:
            return False
        self._noted = samples
        return True

    def _read(self) -> tuple[int, ...]:
        samples = self._samples
        total = self._total
        low = self._min
        high = self._max
        return (samples, int(low), int(high), total // samples) if samples else (0, 0, 0, 0)

    def _take(self) -> tuple[tuple[int, ...], Interval | None]:
        samples = self._samples
        total = self._total
        low = self._min
        high = self._max
        self._samples = self._total = self._noted = 0
        self._min = math.inf
        self._max = -math.inf
        if not samples:
            return (0, 0, 0, 0), None
        return (samples, int(low), int(high), total // samples), (samples, total, low, high)

    def _restore(self, interval: Interval) -> None:
        samples, total, low, high = interval
        samples, total = int(samples), int(total)
        if low < self._min:
            self._min = low
        if high > self._max:
            self._max = high
        self._samples += samples
        self._total += total
