"""Plain rows of providers: checked and typed like the values of objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from qmf.agent.layout.class_layout import ClassLayout, FieldLayout
from qmf.agent.layout.references import Referable, resolve
from qmf.errors import CallerError, ConstraintError
from qmf.protocol import to_wire
from qmf.protocol.values import ObjectId
from qmf.schema import QmfType, Style

_Convert = Callable[[Any], object]


class ProviderRowReader:
    """Reads the rows of one class."""

    def __init__(self, layout: ClassLayout) -> None:
        self._class_name = layout.schema.name
        self._order = [name for field in layout for name, _ in field.wire]
        self._convert: dict[str, _Convert] = {
            name: convert
            for field in layout
            for (name, base), convert in zip(field.wire, _converters(layout, field), strict=True)
        }
        self._hilos = [
            (field.name, [name for name, _ in field.wire if name != field.name])
            for field in layout.statistics
            if field.type.style is Style.HILO
        ]

    def read(self, row: Mapping[str, object]) -> dict[str, object]:
        """Values for the wire.

        Args:
            row: values by wire name. Missing values and None are absent from the answer, but high and low of a hilo
                statistic equal its value if they are missing.

        Raises:
            CallerError: the class does not have a name.
            ConstraintError: a value does not fit.
        """
        for name in row:
            if name not in self._convert:
                raise CallerError(f"a row of {self._class_name} has a value {name!r}, which the class does not have")
        values: dict[str, object] = {}
        for name in self._order:
            value = row.get(name)
            if value is not None and (converted := self._convert[name](value)) is not None:
                values[name] = converted
        for name, bounds in self._hilos:
            if name in values:
                for bound in bounds:
                    values.setdefault(bound, values[name])
        return values


def _converters(layout: ClassLayout, field: FieldLayout) -> list[_Convert]:
    if not field.direct:
        return [_converter(base, f"{layout.schema.name}.{name}") for name, base in field.wire]
    wrapper = dict(layout.wire[field.group])[field.name]

    def convert(value: object) -> object:
        checked = field.check(value)
        if isinstance(checked, Referable):
            return resolve(checked)
        return checked if wrapper is None or isinstance(checked, ObjectId) else wrapper(checked)

    return [convert]


def _converter(base: QmfType, where: str) -> _Convert:
    return lambda value: to_wire(base, value, where)


def key_of(value: object, where: str) -> str:
    """Check the key of a row.

    Raises:
        ConstraintError: it is not a string.
    """
    if isinstance(value, str):
        return value
    raise ConstraintError(where, "sstr", value, "must be a string")
