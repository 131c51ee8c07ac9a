"""Statistics with an `assign` expression: computed from others on each read, and never set."""

from __future__ import annotations

from qmf.agent.accessors.counter import Counter
from qmf.agent.accessors.hilo import HiLo
from qmf.agent.layout import object_state
from qmf.agent.layout.change_marks import Cells
from qmf.agent.layout.class_layout import FieldLayout
from qmf.agent.layout.constraint_errors import read_only_error
from qmf.agent.layout.object_state import StatefulObject


class DerivedStatistic(HiLo):
    """A counter or hilo that equals an expression of other statistics. Reading computes it; it cannot be set.

    High and low equal the value: nothing watches the expression between two reads.
    """

    __slots__ = ("_sources",)

    def __init__(self, cells: Cells, field: FieldLayout, sources: tuple[Counter | int, ...]) -> None:
        """Make one.

        Args:
            cells, field: as of other accessors.
            sources: accessors, or cells of plain values, in the order of the names in the expression. (The object
                itself would be a reference in a circle: it has this accessor.)
        """
        super().__init__(cells, field)
        self._sources = sources

    @property
    def value(self) -> int:
        """The current value of the expression."""
        formula = self._field.formula
        assert formula is not None
        cells = self._cells
        numbers = {
            name: (cells[source] if isinstance(source, int) else source.value) or 0
            for name, source in zip(formula.names, self._sources, strict=True)
        }
        return int(self._field.derive(numbers))

    @property
    def high(self) -> int:
        """The value."""
        return self.value

    @property
    def low(self) -> int:
        """The value."""
        return self.value

    def inc(self, n: int = 1) -> None:
        """Refuse.

        Raises:
            ConstraintError: always.
        """
        raise read_only_error(self._field, n)

    dec = inc

    def set(self, value: int) -> None:
        """Refuse.

        Raises:
            ConstraintError: always.
        """
        raise read_only_error(self._field, value)

    def _read(self) -> tuple[int, ...]:
        """Zeros: the functions that read objects compute formulas from the values that they read of the sources."""
        return (0,) * len(self._field.wire)

    def _end_interval(self) -> tuple[tuple[int, ...], None]:
        return self._read(), None


def compute(instance: StatefulObject, field: FieldLayout) -> int | float:
    """The current value of a derived statistic. Its sources are read one after the other."""
    return field.derive({source.name: number(instance, source) for source in object_state.layout(instance).sources})


def number(instance: StatefulObject, field: FieldLayout) -> int | float:
    """The value of a source in a formula: the number that an object holds, or 0 if it is unset."""
    value = object_state.value(instance, field) if field.direct else getattr(instance, field.slot).value
    return value or 0
