"""Results as CSV: a line of headings, then one line per row.

Values are as in JSON. A hilo statistic has the columns ``depth``, ``depthHigh`` and ``depthLow``, an mma statistic
those with ``Count``, ``Min``, ``Max`` and ``Avg``, a counter of a view one with ``Rate``; maps and lists are JSON.
Control characters are escaped: a row is one line, and CSV is printed on terminals, too. Several tables are separated by
an empty line. Notices are printed to stderr, see `screen`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from qmf.views.cells import Cell, HiLoCell, MinMaxMeanCell, Record, WatchedValue
from qmf.views.text import clean
from qmf_shell.render.json_lines import cell_value, column_names, table_records
from qmf_shell.results.result import Details, Plot, Result, ResultGroup, StreamLine, Table


class CsvWriter:
    """Makes lines of results, one result after the other."""

    def __init__(self, *, merge_headings: bool = False) -> None:
        """Make a writer, which has written no headings yet.

        Args:
            merge_headings: no headings if they are the same as the previous ones: for streams and views.
        """
        self._merge_headings = merge_headings
        self._headings: Sequence[str] | None = None

    def lines(self, result: Result) -> Iterator[str]:
        """The lines of a result, without their ends."""
        match result:
            case Table():
                yield from self._table(result)
            case Details(pairs):
                yield from self._rows([name for name, _ in pairs], [[cell for _, cell in pairs]])
            case StreamLine(record=record) if record is not None:
                flat = flat_record(record)
                yield from self._rows([*flat], [[*flat.values()]])
            case StreamLine(columns, cells):
                yield from self._rows(column_names(columns), [cells])
            case Plot(series, _, at):
                values = [item.points[-1][1] if item.points else None for item in series]
                yield from self._rows(["time", *(item.name for item in series)], [[at, *values]])
            case ResultGroup(parts):
                tables = [part for part in parts if isinstance(part, Table | Details)]
                for number, part in enumerate(tables):
                    if number:
                        yield ""
                    yield from self.lines(part)

    def _table(self, table: Table) -> Iterator[str]:
        records = [flat_record(record) for record in table_records(table)]
        names = list(dict.fromkeys(name for record in records for name in record))
        if not records and table.records is None:
            names = column_names(table.columns)
        if names:
            yield from self._rows(names, ([record.get(name) for name in names] for record in records))

    def _rows(self, names: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
        if not (self._merge_headings and names == self._headings):
            yield _line(names)
        self._headings = names
        for row in rows:
            yield _line([csv_text(cell) for cell in row])


def flat_record(record: Record) -> dict[str, Cell]:
    """A record with one cell per column: hilo and mma statistics have several, and counters one for their rate."""
    found: dict[str, Cell] = {}
    for name, cell in record.items():
        inner = cell.cell if isinstance(cell, WatchedValue) else cell
        match inner:
            case HiLoCell(value, high, low):
                found |= {name: value, f"{name}High": high, f"{name}Low": low}
            case MinMaxMeanCell(count, low, high, mean):
                parts = {"Count": count, "Min": low, "Max": high, "Avg": mean}
                found |= {name + suffix: part for suffix, part in parts.items()}
            case _:
                found[name] = inner
        if isinstance(cell, WatchedValue) and cell.counter:
            found[f"{name}Rate"] = cell.rate
    return found


def csv_text(cell: Cell) -> object:
    """A cell as a value for `csv.writer`."""
    value = cell_value(cell)
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Mapping() | list():
            return json.dumps(value, default=str)
        case _:
            return value


class _ReturnLine:
    """A file for `csv.writer`, whose `writerow` returns what `write` returns: the line."""

    def write(self, text: str) -> str:
        return text


def _line(values: Sequence[object]) -> str:
    cleaned = [clean(value) if isinstance(value, str) else value for value in values]
    line: str = csv.writer(_ReturnLine(), lineterminator="").writerow(cleaned)
    return line
