"""Makes text for people of cells: times, durations, numbers, maps. The text is always clean, see `text.clean`."""

from __future__ import annotations

import time
from datetime import tzinfo

import attrs

from qmf.views.cells import (
    Cell,
    CellForm,
    Collection,
    Duration,
    HiLoCell,
    Instant,
    MinMaxMeanCell,
    NamedValues,
    Quantity,
    ReferenceCell,
    WatchedValue,
)
from qmf.views.records import collection_text
from qmf.views.text import clean
from qmf.views.times import brief_duration, duration_text, instant_text
from qmf.views.units import (
    PERCENT,
    brief_quantity,
    full_quantity,
    has_symbol,
    heading_unit,
    number_text,
    quantity_text,
    rate_text,
)

#: Shown in place of a missing value.
ABSENT = "-"


@attrs.frozen
class Formatter:
    """Makes text of cells.

    Attributes:
        zone: time zone of times; None: that of the machine.
        short: times without their date.
        exact: numbers with every digit, instead of such as ``12.5 MB``.
        absent: shown in place of a missing value.
        more: stands for what was cut off.
    """

    zone: tzinfo | None = None
    short: bool = False
    exact: bool = False
    absent: str = ABSENT
    more: str = "..."

    def text(self, cell: Cell) -> str:
        """A cell as one line of clean text, which says everything."""
        match cell:
            case None:
                return self.absent
            case bool():
                return "true" if cell else "false"
            case int():
                return str(cell)
            case float():
                return number_text(cell)
            case str():
                return clean(cell)
            case Instant(ns):
                return self.instant(ns)
            case Duration(ns):
                return f"{number_text(ns)} ns" if self.exact else duration_text(ns)
            case Quantity(value, unit):
                return self._number(value, unit, CellForm.FULL)
            case HiLoCell():
                return self._hilo(cell, CellForm.FULL)
            case MinMaxMeanCell():
                return self._min_max_mean(cell, CellForm.FULL)
            case ReferenceCell(number, name):
                return clean(f"{number} ({name})")
            case Collection(value):
                return collection_text(value, self.more)
            case WatchedValue(inner, _, rate):
                return self.text(inner) + self._growth(inner, rate)
            case NamedValues(values):
                return " ".join(f"{clean(name)}={self._field(value)}" for name, value in values.items())

    def text_as(self, cell: Cell, form: CellForm) -> str:
        """A cell as one line of clean text: as `text`, or shorter, as in a column whose heading has the unit."""
        if form is CellForm.FULL or (self.exact and isinstance(cell, Duration)):
            return self.text(cell)
        match cell:
            case Instant(ns):
                return self._brief_instant(ns)
            case Duration(ns):
                return brief_duration(ns)
            case float():
                return self._number(cell, None, form)
            case Quantity(value, unit):
                return self._number(value, unit, form)
            case HiLoCell(value):
                brief = form is CellForm.BRIEF
                return self._hilo(attrs.evolve(cell, high=None, low=None) if brief else cell, form)
            case MinMaxMeanCell(count, _, _, mean):
                if form is CellForm.BRIEF or not count:
                    return self._sample(mean, cell, form) if count else self.absent
                return self._min_max_mean(cell, form)
            case WatchedValue(inner, _, rate):
                return self.text_as(inner, form) + self._growth(inner, rate)
            case _:
                return self.text(cell)

    def telling_values(self, cell: NamedValues) -> list[tuple[str, str]]:
        """Names and texts of named values that say something, the less important ones last: for short lines."""
        values = [item for item in cell.values.items() if not _is_empty(item[1])] or list(cell.values.items())
        values.sort(key=lambda item: item[0] in cell.minor)
        return [(clean(name), self._field(value)) for name, value in values]

    def heading(self, form: CellForm, unit: str | None) -> str:
        """What stands below the title of a column: the unit of its cells, unless they have it themselves."""
        return "" if form is CellForm.FULL else heading_unit(unit, exact=self.exact)

    def _brief_instant(self, ns: int) -> str:
        """The time of day of a time of today."""
        text = self.instant(ns)
        today = instant_text(time.time_ns(), self.zone)[:10]
        return text.removeprefix(f"{today} ")

    def _number(self, value: int | float | None, unit: str | None, form: CellForm) -> str:
        if value is None:
            return self.absent
        if form is CellForm.FULL:
            return quantity_text(value, unit) if self.exact else full_quantity(value, unit)
        if self.exact:
            return quantity_text(value, unit if unit in PERCENT else None)
        return brief_quantity(value, unit)

    def _growth(self, cell: Cell, rate: float | None) -> str:
        unit = cell.unit if isinstance(cell, Quantity | HiLoCell) else None
        return "" if rate is None else f" ({rate_text(rate, unit, exact=self.exact)})"

    def _hilo(self, cell: HiLoCell, form: CellForm) -> str:
        # The unit of the value stands for all, unless each has a symbol and a prefix.
        unit = cell.unit if not self.exact and has_symbol(cell.unit) else None
        parts = ((name, value) for name, value in (("high", cell.high), ("low", cell.low)) if value is not None)
        known = ", ".join(f"{name} {self._number(value, unit, form)}" for name, value in parts)
        text = self._number(cell.value, cell.unit, form)
        return f"{text} ({known})" if known else text

    def _min_max_mean(self, cell: MinMaxMeanCell, form: CellForm) -> str:
        if not cell.count:
            return "no samples"
        other = cell if cell.duration or (not self.exact and has_symbol(cell.unit)) else attrs.evolve(cell, unit=None)
        samples = "1 sample" if cell.count == 1 else f"{cell.count:,} samples"
        low, high = self._sample(cell.low, other, form), self._sample(cell.high, other, form)
        return f"{self._sample(cell.mean, cell, form)} (min {low}, max {high}, {samples})"

    def _sample(self, value: int | float | None, cell: MinMaxMeanCell, form: CellForm) -> str:
        if value is not None and cell.duration:
            return f"{number_text(value)} ns" if self.exact else duration_text(value)
        return self._number(value, cell.unit, form)

    def _field(self, cell: Cell) -> str:
        text = self.text(cell)
        if isinstance(cell, str) and (not text or " " in text):
            return f'"{text}"'
        return text

    def instant(self, ns: int) -> str:
        """A time to the second in the formatter's zone; one beyond the calendar's range in nanoseconds."""
        return instant_text(ns, self.zone, date=not self.short) if ns else self.absent


def _is_empty(cell: Cell) -> bool:
    return cell in (None, "") or (isinstance(cell, Collection) and not cell.value)
