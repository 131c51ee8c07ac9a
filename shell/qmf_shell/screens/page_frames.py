"""Pages of objects as tables that follow each other, for files, pipes and users who want lines.

A page computes what is shown, here as on a live screen; a frame has rates beside their totals in one column.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.schema import ClassKey
from qmf.views.cells import Cell, CellForm, Instant, Record, WatchedValue
from qmf.views.fields import ObjectField, fields_of
from qmf.views.objects import ObjectView
from qmf.views.text import clean
from qmf_shell.objects.columns import ValueColumn, value_columns
from qmf_shell.objects.object_records import object_record, record_of, value_name
from qmf_shell.objects.selecting import for_each_class
from qmf_shell.parsing.selection import ParsedSelection
from qmf_shell.results.result import Result, Role, Table, TableColumn, in_one
from qmf_shell.screens.opening import PageFactory
from qmf_shell.screens.pages.object_columns import NAME, RATE
from qmf_shell.screens.pages.object_row import ObjectRow
from qmf_shell.screens.pages.objects import ObjectsPage
from qmf_shell.screens.pages.values import ValueRow, ValuesPage
from qmf_shell.screens.rows import Row, ScreenColumn, table_column
from qmf_shell.session.backend import ClassName
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name

#: How many objects that came or went are named.
_NAMED = 3


def object_frames(pages: PageFactory, keys: Sequence[ClassKey], selection: ParsedSelection) -> Callable[[], Result]:
    """Makes frames with the objects of classes that have the same name, those of each class in a table.

    Args:
        keys: the versions of the classes.
        selection: which objects of them, without ids.

    Raises:
        QmfError: a name or value in the selection is wrong.
    """
    context, all_integers = pages.context, pages.all_integers
    form = CellForm.WIDE if selection.wide else CellForm.BRIEF

    def frames(_: ClassName, versions: Sequence[ClassKey]) -> ObjectFrames:
        spec = pages.spec_of(versions, selection)
        spec = attrs.evolve(spec, asks=True, form=form, more=spec.more and not spec.columns)
        return ObjectFrames(context, pages.objects(spec), selection.columns, all_integers)

    made = [one for _, one in for_each_class(keys, frames)]
    return lambda: in_one([one.frame() for one in made])


def value_frames(pages: PageFactory, targets: Sequence[ObjectView]) -> Callable[[], Result]:
    """Makes frames with all values of some objects, those of a class side by side."""
    groups: dict[ClassName, list[ObjectView]] = {}
    for item in targets:
        groups.setdefault(class_name(item.identity), []).append(item)
    made = [ValueFrames(pages.context, pages.only_values(group), pages.all_integers) for group in groups.values()]
    return lambda: in_one([one.frame() for one in made])


@attrs.define
class ObjectFrames:
    """The frames of a page with the objects of a class.

    Attributes:
        context: the session.
        page: the page, which asks for all objects in each update.
        chosen: the names of the columns that the user chose; none for the default ones.
        all_integers: every integer is a counter.
    """

    context: Context
    page: ObjectsPage
    chosen: Sequence[str]
    all_integers: bool
    _before: Mapping[object, str] | None = attrs.field(default=None, init=False)

    def frame(self) -> Table:
        """The next frame."""
        page = self.page
        page.apply(page.load())
        rows = page.object_rows()
        rates = {item.key.removesuffix(RATE): item for item in page.model.columns if item.rate}
        columns = [
            item
            for item in page.model.shown_columns
            if not item.rate and (item.key != NAME or any(item.cell(row) for row in rows))
        ]
        return Table(
            tuple(map(self._heading, columns)),
            tuple(tuple(_watched_cell(item, rates.get(item.key), row) for item in columns) for row in rows),
            title=f"{page.title}, {page.summary}",
            empty=page.empty,
            note=self._changes(),
            records=lambda: self._records(rows, page.now),
        )

    def _heading(self, item: ScreenColumn) -> TableColumn:
        whole = bool(item.name) and item.form is not CellForm.BRIEF
        return attrs.evolve(
            table_column(item),
            spare=bool(item.name) and not self.chosen,
            wraps=whole and not item.right,
            shortens=not whole and not item.right,
        )

    def _changes(self) -> str | None:
        """The objects that appeared or disappeared since the previous frame, as a note."""
        now = {row.key: row.item.identity.index for row in self.page.model.rows}
        before, self._before = self._before, now
        if before is None:
            return None
        parts = []
        for word, there, other in (("new", now, before), ("gone", before, now)):
            names = [clean(index) for key, index in there.items() if key not in other]
            if names:
                left = len(names) - _NAMED
                parts.append(f"{word}: {', '.join(names[:_NAMED])}" + (f" and {left} more" if left > 0 else ""))
        return "; ".join(parts) or None

    def _records(self, rows: Sequence[ObjectRow], now: float) -> list[Record]:
        found: list[Record] = []
        for row in rows:
            schemas = [row.item.schema]
            chosen: list[ValueColumn] | None = value_columns(schemas, self.chosen) if self.chosen else None
            record = record_of(self.context, row.item, chosen)
            found.append(_watched_record(row.item, record, _rate_of(row, now), all_integers=self.all_integers))
        return found


@attrs.define
class ValueFrames:
    """The frames of a page with all values of some objects of a class.

    Attributes:
        context: the session.
        page: the page.
        all_integers: every integer is a counter.
    """

    context: Context
    page: ValuesPage
    all_integers: bool

    def frame(self) -> Table:
        """The next frame; of an object that no longer exists, it has the last values."""
        page = self.page
        page.apply(page.load())
        found = [row for row in page.model.arranged_rows() if isinstance(row, ValueRow)]
        rows: list[tuple[Cell, ...]] = [(row.kind, row.item, *_watched_cells(row)) for row in found]
        gone = [page.gone.get(item.identity.key) for item in page.targets]
        if any(gone):
            rows.append(("time", "gone since", *(Instant(since or 0) for since in gone)))
        identity = page.identity
        alone = len(page.targets) == 1
        return Table(
            (
                TableColumn("Type", Role.FAINT, spare=True),
                TableColumn("Element", Role.NAME),
                *(self._heading(item) for item in page.targets),
            ),
            tuple(rows),
            title=f"{identity.class_key.package}:{identity.class_key.name}" + (f" {identity.index}" if alone else ""),
            note="Gone: these are its last values." if alone and any(gone) else None,
            records=lambda: [self._record(number, found) for number in range(len(page.targets))],
        )

    def _heading(self, item: ObjectView) -> TableColumn:
        key = item.identity.key
        number = str(self.context.ids.number(key))
        return TableColumn(f"{number} (gone)" if key in self.page.gone else number, wraps=True)

    def _record(self, number: int, rows: Sequence[ValueRow]) -> Record:
        item = self.page.targets[number]
        rates = {row.item: row.rates[number] for row in rows}
        record = _watched_record(
            item,
            object_record(self.context, item),
            lambda field: rates.get(field.name),
            all_integers=self.all_integers,
        )
        gone = self.page.gone.get(item.identity.key)
        return record if gone is None else record | {"gone": Instant(gone)}


def _watched_cell(item: ScreenColumn, rate: ScreenColumn | None, row: Row) -> Cell:
    if not item.name:
        return item.cell(row)
    growth = None if rate is None else rate.value(row)
    return WatchedValue(
        item.cell(row), item.changed(row), growth if isinstance(growth, float | int) else None, counter=rate is not None
    )


def _watched_cells(row: ValueRow) -> list[Cell]:
    if not row.is_value:
        return row.cells
    return [WatchedValue(cell, number in row.changed, row.rates[number]) for number, cell in enumerate(row.cells)]


def _rate_of(row: ObjectRow, now: float) -> Callable[[ObjectField], float | None]:
    return lambda field: row.rate(field, now)


def _watched_record(
    item: ObjectView,
    record: Record,
    rate_of: Callable[[ObjectField], float | None],
    *,
    all_integers: bool,
) -> dict[str, Cell]:
    """The record of an object in a frame: with the time, and with the rates of its counters."""
    found: dict[str, Cell] = {"time": Instant(time.time_ns()), **record}
    for field in fields_of(item.schema).values():
        name = value_name(field.name)
        if name in record and field.grows(all_integers=all_integers):
            found[name] = WatchedValue(record[name], rate=rate_of(field), counter=True)
    return found
