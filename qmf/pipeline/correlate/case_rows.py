"""The rows that a test of rules gives, as a small lake in memory."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.correlate.rule_table import RuleTable
from qmf.pipeline.correlate.rules import Rule, SelectedTable
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, columns_of, import_pyarrow
from qmf.pipeline.lake.columns import ClassVersion, ColumnType, LakeColumn, MemberKind, MemberPart
from qmf.pipeline.lake.delta_lake import RecordedClass
from qmf.pipeline.lake.location import class_path, kind_path

#: The object is deleted at that time.
_DELETED = object()

#: The notation of promtool: ``a``, ``axn``, ``a+bxn``, ``a-bxn``, and ``_`` for nothing.
_ITEM = re.compile(
    r"(?P<first>-?[\d.]+(?:e[+-]?\d+)?|_|deleted)(?:(?P<step>[+-][\d.]+(?:e[+-]?\d+)?))?(?:x(?P<count>\d+))?"
)


@attrs.frozen
class CaseSeries:
    """Rows of one object, event, agent or recorder, at regular times.

    Attributes:
        package, name: of the class; empty for kinds without one.
        times: of each row, in ns since the beginning of the test.
        cells: the values of each row, by column.
        deleted: for each row, the object is deleted with it.
    """

    source: SelectedTable
    package: str
    name: str
    agent: str
    object: str | None
    times: tuple[int, ...]
    cells: tuple[Mapping[str, Any], ...]
    deleted: tuple[bool, ...]


def expand(text: str) -> list[object]:
    """Values in the notation of promtool: ``1 2x3 0+10x5 _x2``; None for nothing.

    Raises:
        ValueError: the notation is wrong.
    """
    found: list[object] = []
    for item in text.split():
        match = _ITEM.fullmatch(item)
        if match is None:
            raise ValueError(f"{item!r} is not a value such as 5, 5x3, 0+10x5, _ or deleted")
        count = int(match["count"] or 0)
        if match["first"] in ("_", "deleted"):
            # As for promtool: `_x3` is three times nothing, but `5x3` four times 5.
            found += [None if match["first"] == "_" else _DELETED] * max(count, 1)
            continue
        first, step = _number(match["first"]), _number(match["step"] or "0")
        found += [first + number * step for number in range(count + 1)]
    return found


def _number(text: str) -> float:
    return float(text) if any(letter in text for letter in ".e") else int(text)


def read_series(table: RuleTable, interval: int) -> CaseSeries:
    """Read a series."""
    source = SelectedTable.SAMPLES
    if "of" in table:
        source = SelectedTable(table.choice("of", tuple(item.value for item in SelectedTable)) or source.value)
    elif "event" in table:
        source = SelectedTable.EVENTS
    package = name = ""
    if source.has_class:
        key = "event" if source is SelectedTable.EVENTS else "class"
        package, _, name = (table.text(key, needed=True) or "").rpartition(":")
    agent = table.text("agent") or "agent"
    object_ = table.text("object") or ("object" if source is SelectedTable.SAMPLES else None)
    start = table.duration("start", zero=True) or 0
    given = table.read("values")
    series = _rows(table, given, start, table.duration("interval") or interval)
    table.end()
    cells, times, deleted = series
    return CaseSeries(source, package, name, agent, object_, times, cells, deleted)


def _rows(
    table: RuleTable, given: Any, start: int, interval: int
) -> tuple[tuple[Mapping[str, Any], ...], tuple[int, ...], tuple[bool, ...]]:
    if isinstance(given, str):
        # Rows without values of their own: heartbeats, events.
        given = {"": given}
    if not isinstance(given, dict) or not given:
        table.fail("values", 'must be a table of columns, or a text such as "1x10" for rows without any')
        return (), (), ()
    columns, constants = _columns(table, given)
    cells, times, deleted = [], [], []
    for number, row in enumerate(itertools.zip_longest(*columns.values()) if columns else [()]):
        if columns and all(item is None for item in row):
            continue
        values = {name: item for name, item in zip(columns, row, strict=True) if item not in (None, _DELETED)}
        cells.append({**constants, **values})
        times.append(start + number * interval)
        deleted.append(_DELETED in row)
    return tuple(cells), tuple(times), tuple(deleted)


def _columns(table: RuleTable, given: Mapping[str, Any]) -> tuple[dict[str, list[object]], dict[str, Any]]:
    """The values of columns that differ from row to row, and those that are the same in all."""
    columns: dict[str, list[object]] = {}
    constants: dict[str, Any] = {}
    for name, value in given.items():
        try:
            if isinstance(value, list):
                columns[name] = [None if item == "_" else item for item in value]
            elif isinstance(value, str) and _is_notation(value):
                columns[name] = expand(value)
            else:
                constants[name] = value
        except ValueError as error:
            table.fail(f"values.{name}", str(error))
    return columns, constants


def _is_notation(text: str) -> bool:
    """True for numbers in the notation of promtool; other texts are a value of all rows."""
    return bool(text.split()) and all(_ITEM.fullmatch(item) for item in text.split())


class CaseLake:
    """The rows of some series as tables.

    Attributes:
        classes: of the rows, and of what the rules read besides.
        rows: Arrow tables by path.
        goodbyes: agents that said goodbye, as (time, agent), in order.
    """

    def __init__(self, series: Sequence[CaseSeries], rules: Sequence[Rule]) -> None:
        packages = {
            (selector.source, selector.name.lower()): selector.package
            for rule in rules
            for selector in rule.selectors
            if selector.name is not None and selector.package
        }
        numbers = itertools.count(1)
        groups: dict[str, list[CaseSeries]] = {}
        for item in series:
            package = (
                packages.get((item.source, item.name.lower()), item.package) if item.package == "test" else item.package
            )
            item = attrs.evolve(item, package=package or item.package)
            groups.setdefault(_path(item), []).append(item)
        self.classes: tuple[RecordedClass, ...] = ()
        self.rows: dict[str, Any] = {}
        for path, own in groups.items():
            version = _version(own)
            if version is not None:
                self.classes = (*self.classes, RecordedClass(version, path))
            self.rows[path] = _table(own[0].source.kind, version, own, numbers)
        self.goodbyes = sorted(
            (at, item.agent)
            for item in series
            if item.source is SelectedTable.AGENTS
            for at, values in zip(item.times, item.cells, strict=True)
            if (values.get("change"), values.get("reason")) == ("removed", "goodbye")
        )


def _path(series: CaseSeries) -> str:
    kind = series.source.kind
    return class_path(kind, series.package, series.name.lower()) if series.source.has_class else kind_path(kind)


def _version(series: Sequence[CaseSeries]) -> ClassVersion | None:
    """The class of some series, with the columns that their values have."""
    first = series[0]
    if not first.source.has_class:
        return None
    types: dict[str, ColumnType] = {}
    for values in (values for item in series for values in item.cells):
        for name, value in values.items():
            if name:
                types[name] = _wider(types.get(name), _column_type(value))
    columns = tuple(
        LakeColumn(
            name=name, wire=name, member=name, type="double", column_type=type, kind=MemberKind.PROPERTY,
            part=MemberPart.VALUE,
        )
        for name, type in types.items()
    )  # fmt: skip
    events = first.source is SelectedTable.EVENTS
    return ClassVersion(package=first.package, name=first.name, hash="", event=events, columns=columns)


def _column_type(value: object) -> ColumnType:
    if isinstance(value, bool):
        return ColumnType.BOOL
    if isinstance(value, int):
        return ColumnType.INT64
    return ColumnType.DOUBLE if isinstance(value, float) else ColumnType.TEXT


def _wider(known: ColumnType | None, type: ColumnType) -> ColumnType:
    if known in (None, type):
        return type
    numbers = {ColumnType.INT64, ColumnType.DOUBLE}
    return ColumnType.DOUBLE if {known, type} == numbers else ColumnType.TEXT


def _table(kind: RowKind, version: ClassVersion | None, series: Sequence[CaseSeries], numbers: Iterator[int]) -> Any:
    pa = import_pyarrow()
    schema = arrow_schema(columns_of(kind, version))
    rows = []
    for item in series:
        for at, values, deleted in zip(item.times, item.cells, item.deleted, strict=True):
            common: dict[str, Any] = {
                "_run": "test", "_seq": next(numbers), "_ts": at // 1000, "_ts_ns": at, "_received_ns": at,
                "_agent": item.agent, "_epoch": 1, "_object": item.object, "_object_epoch": 1, "_create_ns": 0,
                "_delete_ns": max(at, 1) if deleted else 0, "_properties": True, "_statistics": True, "_severity": 6,
                "interval": 10.0, "count": 1,
            }  # fmt: skip
            row = {**common, **values}
            rows.append({name: _cell(row.get(name), schema.field(name).type) for name in schema.names})
    return pa.Table.from_pylist(rows, schema=schema)


def _cell(value: Any, type: Any) -> Any:
    pa = import_pyarrow()
    return str(value) if value is not None and pa.types.is_string(type) else value
