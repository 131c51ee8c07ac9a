"""`Mma`, the accessor of `mma` statistics."""

from __future__ import annotations

import math

from qmf.agent.accessors.counter import IntervalState
from qmf.agent.layout.change_marks import STATISTICS_CELL, Cells, set_mark
from qmf.agent.layout.class_layout import FieldLayout
from qmf.agent.layout.constraint_errors import range_error, to_whole_number


class Mma:
    """Minimum, maximum and average of the samples of the current interval: `mma` types.

    Each interval starts empty; without samples every value is 0. Any thread may call any public method.
    """

    __slots__ = ("_cells", "_field", "_max", "_min", "_samples", "_total")

    def __init__(self, cells: Cells, field: FieldLayout) -> None:
        self._cells = cells
        self._field = field
        self._samples = self._total = 0
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
            ConstraintError: out of range, or not a whole number. Nothing is added.
        """
        if type(value) is not int:
            value = to_whole_number(value, self._field)
        # What lies between minimum and maximum is in range.
        if value > self._max or value < self._min:
            if not self._field.low <= value <= self._field.high:
                raise range_error(self._field, value)
            if value > self._max:
                self._max = value
            if value < self._min:
                self._min = value
        self._samples += 1
        self._total += value
        cells = self._cells
        if not cells[STATISTICS_CELL]:
            set_mark(cells, STATISTICS_CELL)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._field.where} {self._samples} samples>"

    def _read(self) -> tuple[int, ...]:
        samples = self._samples
        total = self._total
        low = self._min
        high = self._max
        return (samples, int(low), int(high), total // samples) if samples else (0, 0, 0, 0)

    def _end_interval(self) -> tuple[tuple[int, ...], IntervalState | None]:
        samples = self._samples
        total = self._total
        low = self._min
        high = self._max
        self._samples = self._total = 0
        self._min = math.inf
        self._max = -math.inf
        if not samples:
            return (0, 0, 0, 0), None
        return (samples, int(low), int(high), total // samples), (samples, total, low, high)

    def _merge_interval(self, interval: IntervalState) -> None:
        samples, total, low, high = interval
        samples, total = int(samples), int(total)
        if low < self._min:
            self._min = low
        if high > self._max:
            self._max = high
        self._samples += samples
        self._total += total
