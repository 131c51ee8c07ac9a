"""Results as JSON, one value per line, and the same values as YAML.

Each object or row of a table is one value, whose keys are names of values, else headings in lower case; details are one
value. Hilo and mma statistics are objects, a reference is the name of the object that it refers to. Times are ISO 8601
in UTC with nanoseconds, durations are nanoseconds, quantities are numbers without unit. Notices are printed to stderr,
see `screen`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence

from qmf.views.cells import (
    Cell,
    Collection,
    Duration,
    HiLoCell,
    Instant,
    MinMaxMeanCell,
    NamedValues,
    Quantity,
    Record,
    ReferenceCell,
    WatchedValue,
)
from qmf.views.records import JsonForm
from qmf_shell.results.result import Details, Plot, PlotSeries, Result, ResultGroup, StreamLine, Table, TableColumn

#: Types of most cells, which JSON has, too.
_PLAIN = (str, int, bool)

_FORM = JsonForm()
#: A value as JSON can express it: no NaN, no infinity, keys as text.
plain_tree = _FORM.plain


def json_lines(result: Result) -> Iterator[str]:
    """The lines of a result; ASCII only, so they contain no control characters."""
    for value in result_values(result):
        yield json.dumps(value, default=str, allow_nan=False)


def result_values(result: Result) -> Iterator[object]:
    """A result as plain values: one per object or row of a table, one for everything else."""
    match result:
        case Table():
            yield from map(record_value, table_records(result))
        case Details(pairs):
            yield {name: cell_value(cell) for name, cell in pairs}
        case StreamLine(record=record) if record is not None:
            yield record_value(record)
        case StreamLine(columns, cells):
            yield dict(zip(column_names(columns), map(cell_value, cells), strict=True))
        case Plot(series, _, at):
            yield {"time": cell_value(at), **{item.name: _latest(item) for item in series}}
        case ResultGroup(parts, data):
            if data is not None:
                yield plain_tree(data)
                return
            tables = [part for part in parts if not isinstance(part, Plot)]
            # A plot beside a table shows its values.
            for part in tables or parts:
                yield from result_values(part)


def table_records(table: Table) -> Iterable[Record]:
    """The records of a table, see `Table.records`."""
    if table.records is not None:
        return table.records()
    names = column_names(table.columns)
    tables = [table] if table.more is None else itertools.chain([table], table.more())
    return (dict(zip(names, row, strict=True)) for part in tables for row in part.rows)


def record_value(record: Record) -> dict[str, object]:
    """A record as a plain value. The rates of its counters are under ``rates``, so that a counter is a number."""
    values = {name: cell_value(cell) for name, cell in record.items()}
    counters = {
        name: plain_tree(cell.rate) for name, cell in record.items() if isinstance(cell, WatchedValue) and cell.counter
    }
    return values | {"rates": counters} if counters else values


def column_names(columns: Sequence[TableColumn]) -> list[str]:
    """Names of a table's values, see `TableColumn.key`; a repeated name gets a number."""
    names: list[str] = []
    for column in columns:
        name = column.key
        number = 2
        while name in names:
            name, number = f"{column.key}_{number}", number + 1
        names.append(name)
    return names


def _latest(series: PlotSeries) -> object:
    return plain_tree(series.points[-1][1]) if series.points else None


def cell_value(cell: Cell) -> object:
    """A cell as a value that JSON has."""
    if cell is None or type(cell) in _PLAIN:
        return cell
    match cell:
        case Instant(ns):
            return _FORM.instant(ns)
        case Duration(ns):
            return ns
        case Quantity(value, _):
            return plain_tree(value)
        case HiLoCell(value, high, low, _):
            return {"value": plain_tree(value), "high": plain_tree(high), "low": plain_tree(low)}
        case MinMaxMeanCell():
            return {
                "count": cell.count,
                "min": plain_tree(cell.low),
                "max": plain_tree(cell.high),
                "mean": plain_tree(cell.mean),
            }
        case WatchedValue(inner):
            return cell_value(inner)
        case ReferenceCell():
            return cell.object
        case Collection(value):
            return plain_tree(value)
        case NamedValues(values):
            return {name: cell_value(value) for name, value in values.items()}
        case _:
            return plain_tree(cell)


def yaml_lines(result: Result) -> Iterator[str]:
    """The lines of a result as YAML, one document per value; ASCII only."""
    for value in result_values(result):
        yield from yaml_document(value)


def yaml_document(value: object) -> Iterator[str]:
    """The lines of one value as YAML."""
    # Imported here: most results are not YAML.
    import yaml

    # Values that YAML has no plain form for, such as UUIDs, become the texts that they are in JSON.
    plain = json.loads(json.dumps(value, default=str, allow_nan=False))
    yield "---"
    # Written in C where the library was built so: ten times as fast.
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    yield from yaml.dump(plain, Dumper=dumper, sort_keys=False, width=1000).splitlines()
