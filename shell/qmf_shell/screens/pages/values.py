"""All values of one object, or of several side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import attrs

from qmf.schema import ClassSchema
from qmf.views.cells import Cell, HiLoCell, Instant, MinMaxMeanCell, Quantity
from qmf.views.fields import ObjectField, find_field
from qmf.views.formatting import Formatter
from qmf.views.objects import ObjectIdentity, ObjectKey, ObjectView
from qmf.views.rates import RateTracker
from qmf.views.text import clean
from qmf_shell.objects.lookup import object_label
from qmf_shell.objects.value_cells import CONFIG, INST, OTHER, ElementRow, element_rows
from qmf_shell.results.result import Role
from qmf_shell.screens.fixed import TextPage
from qmf_shell.screens.model import TableModel
from qmf_shell.screens.rows import Mark, Row, ScreenColumn, ThresholdState, rate_cell
from qmf_shell.screens.state import Page, PageNote
from qmf_shell.screens.thresholds import level_of, limits_of
from qmf_shell.session.context import Context

TYPE, ELEMENT, MEANING = "type", "element", "meaning"


@attrs.define(eq=False, kw_only=True)
class ValueRow(Row):
    """An element of the objects.

    Attributes:
        item: its name.
        cells: its cell of each object.
        changed: of which objects it changed.
        rates: its growth per second for each object; None where it has none.
        levels: how its values compare with its thresholds.
        meaning: its description.
    """

    item: str
    kind: str = ""
    cells: list[Cell] = attrs.field(factory=list)
    changed: set[int] = attrs.field(factory=set)
    rates: list[float | None] = attrs.field(factory=list)
    levels: list[ThresholdState] = attrs.field(factory=list)
    meaning: str = ""

    @property
    def is_value(self) -> bool:
        """True for a value of the objects; False for when they were updated, and so on."""
        return self.kind in (CONFIG, INST, OTHER)


@attrs.frozen(eq=False)
class _News:
    at: float
    found: Sequence[ObjectView | None]


class ValuesPage(Page):
    """All values of objects.

    Attributes:
        targets: the objects, with their last values.
        gone: those that no longer exist, and since when, in nanoseconds since 1970.
    """

    empty = "It has no values."

    def __init__(
        self,
        context: Context,
        targets: Sequence[ObjectView],
        interval: float,
        open_key: Callable[[ObjectKey], Page | None],
        *,
        all_integers: bool = False,
    ) -> None:
        """Make the page of some objects; `all_integers`: every integer is a counter."""
        for item in targets:
            if item.values:
                context.ids.assign(item.identity, item.created)
        labels = [object_label(item.identity) for item in targets]
        title = labels[0] if len(labels) == 1 else f"{labels[0]} and {len(labels) - 1} more"
        super().__init__(context, title, TableModel(()), interval)
        self.targets = list(targets)
        self.gone: dict[ObjectKey, int] = {}
        self._open_key = open_key
        self._all_integers = all_integers
        self._rates = RateTracker()
        shown = self._make_columns()
        self.model.set_columns(shown, [item.key for item in shown if item.key != MEANING or len(targets) == 1])

    @property
    def identity(self) -> ObjectIdentity:
        """The first object."""
        return self.targets[0].identity

    def _make_columns(self) -> list[ScreenColumn]:
        columns = [ScreenColumn(ELEMENT, "Element", lambda row: row.item, role=Role.NAME, fixed=True, desc="its name")]
        alone = len(self.targets) == 1
        for number, target in enumerate(self.targets):
            title = "Value" if alone else str(self.context.ids.number(target.identity.key))
            columns.append(_value_column(number, title, object_label(target.identity)))
            columns.append(_rate_column(number, "Per second" if alone else f"{title}/s"))
        columns += [
            ScreenColumn(TYPE, "Type", lambda row: row.kind, role=Role.FAINT, desc="of the element"),
            ScreenColumn(
                MEANING,
                "Meaning",
                lambda row: row.meaning or None,
                role=Role.FAINT,
                spare=True,
                prose=True,
                desc="the description of the element",
            ),
        ]
        return columns

    def load(self) -> object:
        found = [self.context.backend.get(item.identity) for item in self.targets]
        return _News(time.monotonic(), found)

    def apply(self, news: object) -> None:
        assert isinstance(news, _News)
        for number, now in enumerate(news.found):
            key = self.targets[number].identity.key
            if now is None:
                self.gone.setdefault(key, time.time_ns())
            else:
                self.gone.pop(key, None)
                self.targets[number] = now
                self.context.ids.assign(now.identity, now.created)
        elements = enumerate(element_rows(self.context, self.targets))
        self.model.replace([self._row(order, element, news.at) for order, element in elements])
        self._note_gone()
        self.loaded = True

    def _note_gone(self) -> None:
        if not self.gone:
            self.notes = ()
            return
        at = max(self.gone.values())
        since = Formatter(short=True).text(Instant(at))
        which = "it is" if len(self.targets) == 1 else f"{len(self.gone)} of these are"
        self.notes = (PageNote(f"{which} gone since {since}: these are the last values", bad=True),)

    def _row(self, order: int, element: ElementRow, at: float) -> ValueRow:
        kind, name, cells = element
        key = (kind, name)
        row = self.model.row(key)
        if not isinstance(row, ValueRow):
            row = ValueRow(key=key, item=name, kind=kind, order=order, search=name.lower())
            row.meaning = _meaning(self.targets[0].schema, name)
            row.cells = cells
        row.changed = {number for number, cell in enumerate(cells) if self.loaded and row.cells[number] != cell}
        row.order, row.cells = order, cells
        fields = [self._field(item.schema, name) if kind in (CONFIG, INST) else None for item in self.targets]
        pairs = list(zip(self.targets, fields, strict=True))
        row.rates = [self._rate(item, field, at) for item, field in pairs]
        row.levels = [self._level(item, field) for item, field in pairs]
        row.mark = Mark.LOST if len(self.gone) == len(self.targets) else Mark.NONE
        return row

    def _field(self, schema: ClassSchema, name: str) -> ObjectField | None:
        field = find_field([schema], name)
        return field if field is not None and field.member is not None else None

    def _rate(self, item: ObjectView, field: ObjectField | None, at: float) -> float | None:
        if field is None or not field.grows(all_integers=self._all_integers):
            return None
        key = item.identity.key, field.name
        return self._rates.update(key, field.type, item.values.get(field.name), at, item.identity.key.agent_epoch)

    def _level(self, item: ObjectView, field: ObjectField | None) -> ThresholdState:
        if field is None:
            return ThresholdState.NORMAL
        limits = limits_of(field, item.schema.name, self.context.settings.thresholds)
        return level_of(item.values.get(field.name), limits)

    def open(self, row: Row) -> Page | object | None:
        """See `Page.open`: the object that a reference names."""
        for item in self.targets:
            value = item.values.get(str(row.item))
            if isinstance(value, ObjectKey) and value.object_name:
                return self._open_key(value)
        texts = [Formatter().text(cell) for cell in row.cells]  # type: ignore[attr-defined]
        return TextPage(self.context, str(row.item), "\n".join(texts))

    @property
    def summary(self) -> str:
        number = self.context.ids.number(self.identity.key)
        return f"id {number}" if len(self.targets) == 1 and number is not None else ""


def _value_column(number: int, title: str, meaning: str) -> ScreenColumn:
    return ScreenColumn(
        f"value{number}",
        clean(title),
        lambda row: row.cells[number],
        lambda row: _plain(row.cells[number]),
        main=True,
        desc=meaning,
        level=lambda row: row.levels[number],
        changed=lambda row: number in row.changed,
    )


def _rate_column(number: int, title: str) -> ScreenColumn:
    def cell(row: ValueRow) -> Cell:
        shown = row.cells[number]
        unit = shown.unit if isinstance(shown, Quantity | HiLoCell) else None
        return rate_cell(row.rates[number], unit)

    return ScreenColumn(
        f"rate{number}",
        title,
        cell,
        lambda row: row.rates[number],
        right=True,
        rate=True,
        desc="growth of counters per second",
    )


def _plain(cell: Cell) -> object:
    match cell:
        case Quantity(value=value) | HiLoCell(value=value):
            return value
        case MinMaxMeanCell(mean=mean):
            return mean
        case Instant(ns):
            return ns
        case int() | float() | str():
            return cell
        case _:
            return None if cell is None else str(cell)


def _meaning(schema: ClassSchema, name: str) -> str:
    item = schema.property(name) or schema.statistic(name)
    return " ".join((item.desc or "").split()) if item is not None else ""
