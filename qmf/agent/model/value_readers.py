"""Functions that read all values of an object at once: one per class and group, compiled for its fields.

A function gives a tuple of plain Python values in wire order, with None for absent ones; encoders of the class need no
types with widths and no dictionary. It reads value, high and low of an accessor in one step (see the rules of
`accessors`), so they belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from qmf._compile import compile_function
from qmf.agent.accessors.derived_statistic import number
from qmf.agent.accessors.locking import HAS_GLOBAL_LOCK
from qmf.agent.layout.class_layout import BOTH, STATISTICS, ClassLayout, FieldLayout
from qmf.agent.layout.object_state import CELLS_OF_OBJ
from qmf.agent.layout.references import resolve
from qmf.protocol.objects import SourcePart
from qmf.schema import Style

#: Values of an object, in wire order.
RawValues = tuple[Any, ...]

#: Gives the values of an object. A taker also begins a new interval; it gives the slots of accessors, each with the
#: state of its old interval.
Reader = Callable[[Any], RawValues]
Taker = Callable[[Any], tuple[RawValues, list[tuple[str, Any]]]]

_NOTHING = (0, 0, 0, 0)


def make_reader(layout: ClassLayout, groups: int, *, locked: bool = not HAS_GLOBAL_LOCK) -> Reader:
    """The function that reads the values of some groups of a class.

    Args:
        layout: of the class.
        groups: which groups.
        locked: accessors have locks, so that their state is reached by their methods only.
    """
    reader: Reader = _ReaderSource(layout, groups, taking=False, locked=locked).function()
    return reader


def make_reader_of(
    layout: ClassLayout, names: Collection[str], *, locked: bool = not HAS_GLOBAL_LOCK
) -> tuple[tuple[str, ...], Reader]:
    """The function that reads some values of a class, and their wire names; those of the same field come as well.

    Args:
        layout: of the class.
        names: wire names of the values; others are left out.
        locked: as of `make_reader`.
    """
    source = _ReaderSource(layout, BOTH, taking=False, locked=locked, names=names)
    return tuple(name for field in source.fields for name, _ in field.wire), source.function()


def make_taker(layout: ClassLayout, groups: int, *, locked: bool = not HAS_GLOBAL_LOCK) -> Taker:
    """The function that reads values for a publication and begins a new interval; arguments as of `make_reader`."""
    taker: Taker = _ReaderSource(layout, groups, taking=True, locked=locked).function()
    return taker


def statistics_source(layout: ClassLayout, *, locked: bool = not HAS_GLOBAL_LOCK) -> SourcePart:
    """The source that reads the statistics of `obj`, for a longer function; arguments as of `make_reader`."""
    return _ReaderSource(layout, STATISTICS, taking=False, locked=locked).reading()


class _ReaderSource:
    """Makes the source of one function."""

    def __init__(
        self, layout: ClassLayout, groups: int, *, taking: bool, locked: bool, names: Collection[str] | None = None
    ) -> None:
        self._layout = layout
        #: The fields that are read.
        self.fields = [
            field for field in layout.fields(groups) if names is None or any(name in names for name, _ in field.wire)
        ]
        self._groups = groups
        self._taking = taking
        self._locked = locked
        self._steps: list[str] = []
        self._names: dict[str, object] = {"resolve": resolve, "NOTHING": _NOTHING}

    def function(self) -> Callable[[Any], Any]:
        """Make the function."""
        reading = self.reading()
        result = f"({''.join(f'{value}, ' for value in reading.values)})"
        steps = [*reading.steps, f"return {result}, intervals" if self._taking else f"return {result}"]
        source = "\n".join(["def collect(obj):", *(f"    {step}" for step in steps), ""])
        return compile_function("collect", source, reading.names, f"{self._layout.schema.name} {self._groups}")

    def reading(self) -> SourcePart:
        """The source that reads the values of `obj`, in wire order; called once."""
        layout, fields = self._layout, self.fields
        values: dict[FieldLayout, list[str]] = {
            field: self._read(position, field) for position, field in enumerate(fields) if field.formula is None
        }
        if self._groups & STATISTICS and any(field in fields for field in layout.derived):
            # From the same values that are sent with them.
            numbers = {
                field.name: self._number(position, field, values) for position, field in enumerate(layout.sources)
            }
            for position, field in enumerate(layout.derived):
                if field in fields:
                    values[field] = self._derive(position, field, numbers)
        steps = [f"cells = {CELLS_OF_OBJ}", *(["intervals = []"] if self._taking else []), *self._steps]
        return SourcePart(steps, [value for field in fields for value in values[field]], self._names)

    def _read(self, position: int, field: FieldLayout) -> list[str]:
        """Add the steps that read a field; gives the expressions of its values."""
        if field.direct:
            cell = f"cells[{field.cell}]"
            return [f"resolve({cell})" if field.type.base == "objId" else self._local(f"d{position}", cell, field)]
        accessor = f"obj.{field.slot}"
        style = field.type.style
        if style is Style.COUNT and not self._locked:
            return [self._local(f"d{position}", f"{accessor}._value", field)]
        names = [f"v{position}_{number}" for number in range(len(field.wire))]
        targets = f"{', '.join(names)},"
        note = f"intervals.append(({field.slot!r}, interval))"
        if self._locked and self._taking:
            self._steps += [
                f"({targets}), interval = {accessor}._end_interval()",
                "if interval is not None:",
                f"    {note}",
            ]
        elif self._locked:
            self._steps.append(f"{targets} = {accessor}._read()")
        else:
            self._steps.append(f"a = {accessor}")
            condition = self._read_interval(style, names, targets)
            if self._taking:
                if style is Style.HILO:
                    self._steps.append("a._fresh = False")  # a new interval begins, whatever there was in this one
                self._steps += [f"if {condition}:", f"    ({targets}), interval = a._end_interval()"]
                self._steps += ["    if interval is not None:", f"        {note}"]
        return names

    def _read_interval(self, style: Style, names: list[str], targets: str) -> str:
        """Add the steps that read a hilo or mma; gives the condition that its interval has to be ended."""
        if style is Style.HILO:
            # Nothing may come between the three reads: see the rules of `accessors`.
            parts = ("_value", "_high", "_low")
            self._steps += [f"{name} = a.{part}" for name, part in zip(names, parts, strict=True)]
            return f"{names[1]} != {names[2]}"
        self._steps.append(f"{targets} = " + ("NOTHING" if self._taking else "a._read() if a._samples else NOTHING"))
        return "a._samples"

    def _local(self, name: str, expression: str, field: FieldLayout) -> str:
        """The expression, or a local name for it where a formula uses the field, too."""
        if field not in self._layout.sources:
            return expression
        self._steps.append(f"{name} = {expression}")
        return name

    def _number(self, position: int, field: FieldLayout, values: dict[FieldLayout, list[str]]) -> str:
        """The expression of a field in formulas: a number, or 0 if it is unset."""
        if field in values:
            found = values[field][0]
        else:
            found = f"n{position}"
            self._names["number"] = number
            self._names[f"F{position}"] = field
            self._steps.append(f"{found} = number(obj, F{position})")
        return f"({found} or 0)" if field.optional else found

    def _derive(self, position: int, field: FieldLayout, numbers: dict[str, str]) -> list[str]:
        """Add the steps that compute a formula and limit it to the field's range."""
        assert field.formula is not None
        self._names[f"D{position}"] = field
        name = f"f{position}"
        source = field.formula.source(numbers) if field.type.is_integer and self._whole(field) else None
        if source is None:
            pairs = ", ".join(f"{key!r}: {value}" for key, value in numbers.items())
            self._steps.append(f"{name} = D{position}.derived({{{pairs}}})")
        else:
            self._steps.append(f"{name} = {source}")
            low, high = int(field.low), int(field.high)
            self._steps += [f"if not {low} <= {name} <= {high}:", f"    {name} = {low} if {name} < {low} else {high}"]
        return [name] * len(field.wire)

    def _whole(self, field: FieldLayout) -> bool:
        """Whether a formula is of whole numbers only."""
        assert field.formula is not None
        used = field.formula.names
        return all(source.type.is_integer for source in self._layout.sources if source.name in used)
