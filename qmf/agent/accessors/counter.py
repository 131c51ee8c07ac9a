"""`Counter`, the accessor of `count` statistics. The rules of all accessors stand in the package's docstring."""

from __future__ import annotations

from qmf.agent.layout.change_marks import STATISTICS_CELL, Cells, set_mark
from qmf.agent.layout.class_layout import FieldLayout
from qmf.agent.layout.constraint_errors import range_error, to_whole_number

#: What `_merge_interval` needs of an interval that `_end_interval` ended.
IntervalState = tuple[int | float, ...]


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
        """The current number."""
        return self._value

    def inc(self, n: int = 1) -> None:
        """Add.

        Args:
            n: the amount; may be negative.

        Raises:
            ConstraintError: the result is out of range, or `n` is not a whole number. The value is unchanged.
        """
        field = self._field
        if type(n) is not int:
            n = to_whole_number(n, field)
        new = self._value + n
        if not field.low <= new <= field.high:
            raise range_error(field, new)
        self._value = new
        cells = self._cells
        if not cells[STATISTICS_CELL]:
            set_mark(cells, STATISTICS_CELL)

    def dec(self, n: int = 1) -> None:
        """Subtract; as `inc`."""
        field = self._field
        if type(n) is not int:
            n = to_whole_number(n, field)
        new = self._value - n
        if not field.low <= new <= field.high:
            raise range_error(field, new)
        self._value = new
        cells = self._cells
        if not cells[STATISTICS_CELL]:
            set_mark(cells, STATISTICS_CELL)

    def set(self, value: int) -> None:
        """Replace. Setting the same number again is not a change.

        Args:
            value: the new number.

        Raises:
            ConstraintError: out of range, or not a whole number. The value is unchanged.
        """
        field = self._field
        if type(value) is not int:
            value = to_whole_number(value, field)
        if not field.low <= value <= field.high:
            raise range_error(field, value)
        if value != self._value:
            self._value = value
            cells = self._cells
            if not cells[STATISTICS_CELL]:
                set_mark(cells, STATISTICS_CELL)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._field.where} {self.value}>"

    def _read(self) -> tuple[int, ...]:
        """The values for the wire."""
        return (self._value,)

    def _end_interval(self) -> tuple[tuple[int, ...], IntervalState | None]:
        """Begin a new interval.

        Returns:
            the values of the old one, and what `_merge_interval` needs; None if the old one needs no merging.
        """
        return (self._value,), None

    def _merge_interval(self, interval: IntervalState) -> None:
        """Add the interval that `_end_interval` ended to the current one: it could not be published."""
