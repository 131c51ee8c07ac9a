"""`HiLo`, the accessor of `hilo` statistics."""

from __future__ import annotations

from qmf.agent.accessors.counter import Counter, IntervalState
from qmf.agent.layout.change_marks import STATISTICS_CELL, Cells, set_mark
from qmf.agent.layout.class_layout import FieldLayout
from qmf.agent.layout.constraint_errors import range_error, to_whole_number

#: The default of `inc` and `dec`: it has a short way, with one bound to check.
_ONE = 1


class HiLo(Counter):
    """A number with its highest and lowest value of the current interval: `hilo` types.

    At the start of each interval both are set to the current value. If `set` gives the first value, the first interval
    begins with that value, not with 0.
    """

    __slots__ = ("_fresh", "_high", "_low")

    def __init__(self, cells: Cells, field: FieldLayout) -> None:
        super().__init__(cells, field)
        self._high = self._low = self._value
        # Until the first `set` or the first new interval. After `inc` and `dec`, high and low differ.
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
            # What lies between high and low is in range.
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
        cells = self._cells
        if not cells[STATISTICS_CELL]:
            set_mark(cells, STATISTICS_CELL)

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
        cells = self._cells
        if not cells[STATISTICS_CELL]:
            set_mark(cells, STATISTICS_CELL)

    def set(self, value: int) -> None:
        """Replace; as `Counter.set`."""
        if type(value) is not int:
            value = to_whole_number(value, self._field)
        if self._fresh:
            self._start_with(value)
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
            cells = self._cells
            if not cells[STATISTICS_CELL]:
                set_mark(cells, STATISTICS_CELL)

    def _start_with(self, value: int) -> None:
        # Another thread may have been here first.
        if self._fresh and self._field.low <= value <= self._field.high:
            self._fresh = False
            if self._high == self._low:
                self._high = self._low = value

    def _read(self) -> tuple[int, ...]:
        return self._value, self._high, self._low

    def _end_interval(self) -> tuple[tuple[int, ...], IntervalState | None]:
        value = self._value
        high = self._high
        low = self._low
        self._fresh = False
        if high != low:
            self._high = self._low = value
        return (value, high, low), None if high == low else (high, low)

    def _merge_interval(self, interval: IntervalState) -> None:
        high, low = map(int, interval)
        if high > self._high:
            self._high = high
        if low < self._low:
            self._low = low
