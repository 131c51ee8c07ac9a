"""`watch`: objects as a table that is refreshed repeatedly, with changes marked and rates of counters."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from qmf.schema import ClassKey, ClassSchema, QmfType
from qmf.views.cells import Cell, CellForm, Instant, Record, WatchedValue
from qmf.views.fields import fields_of
from qmf.views.objects import ObjectIdentity, ObjectView
from qmf.views.rates import ChangeTracker, RateTracker
from qmf.views.text import clean, plural
from qmf_shell.commands.list import LIST
from qmf_shell.objects.columns import ALL_COLUMNS, ValueColumn, column_names, value_columns
from qmf_shell.objects.default_columns import default_columns
from qmf_shell.objects.lookup import matching_classes
from qmf_shell.objects.object_records import object_record, record_of, value_name
from qmf_shell.objects.selecting import SelectedObjects, compile_selection, find_objects, select_objects
from qmf_shell.objects.value_cells import element_cells
from qmf_shell.parsing.command import AnyCommand, BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.parsing.common_options import ALL, EXACT, PLAIN
from qmf_shell.parsing.option_numbers import count_option, seconds_option
from qmf_shell.parsing.selection import ParsedSelection, parse_selection
from qmf_shell.results.result import LiveView, Result, ResultGroup, Role, Table, TableColumn
from qmf_shell.screens.start import screen_of
from qmf_shell.session.backend import ClassName
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name, class_names

if TYPE_CHECKING:
    from qmf_shell.screens.opening import PageFactory
    from qmf_shell.screens.state import Page

VIEW_OPTIONS = (
    Option(("-n", "--interval"), "seconds between refreshes (2)", "SECONDS"),
    Option(("-c", "--count"), "end after so many frames; by default, at Ctrl-C or q", "COUNT"),
    EXACT,
    ALL,
)
#: For agents whose schema does not distinguish counters from other numbers.
RATES = Option(("-r", "--rates"), "treat all integers as counters")


def run(context: Context, args: BoundArguments) -> Result:
    """Start the view."""
    if not args.words:
        view = live_view(context, WATCH, args, lambda: LIST.handler(context, BoundArguments()))
        return screen_of(context, args, view, lambda: _pages(context, args, view).classes())
    keys = matching_classes(context, args.texts[0])
    watcher = _ValueWatcher("rates" in args.options)
    selection = parse_selection(args.words[1:]) if keys else ParsedSelection()
    only = _only_objects(context, keys) if selection == ParsedSelection() else []
    if keys and not selection.ids and not only:
        frame = _ClassWatch(context, lambda: select_objects(context, keys, selection), selection, watcher).frame
        view = live_view(context, WATCH, args, frame)

        def class_page() -> Page:
            from qmf_shell.screens.selection import objects_spec

            factory = _pages(context, args, view)
            return factory.objects(objects_spec(context, keys, selection, all_integers=factory.all_integers))

        names = class_names(keys)
        if len(names) > 1:
            return screen_of(context, args, view, lambda: _pages(context, args, view).classes(names))
        # Mistakes in the selection are found before the terminal changes.
        return screen_of(context, args, view, class_page, check=lambda: compile_selection(context, keys, selection))
    texts = selection.ids or args.texts
    targets = only or find_objects(context, texts, classes=keys)
    view = live_view(context, WATCH, args, _ObjectWatch(context, list(targets), watcher).frame)
    return screen_of(context, args, view, lambda: _pages(context, args, view).values(targets))


def _only_objects(context: Context, keys: Sequence[ClassKey]) -> Sequence[ObjectView]:
    """The only object of each of some classes, which the class stands for; none if a class has several."""
    found = context.objects(class_names(keys)) if keys else ()
    return found if len({class_name(item.identity) for item in found}) == len(found) else ()


def _pages(context: Context, args: BoundArguments, view: LiveView) -> PageFactory:
    from qmf_shell.screens.opening import PageFactory

    return PageFactory(context, view.interval, "rates" in args.options)


def live_view(context: Context, command: AnyCommand, args: BoundArguments, frame: Callable[[], Result]) -> LiveView:
    """A view with the interval and count of the options `VIEW_OPTIONS`."""
    interval = seconds_option(command, args, "interval", context.settings.interval)
    count = count_option(command, args, "count", 0)
    return LiveView((lambda: _exactly(frame())) if "exact" in args.options else frame, interval, count or None)


def _exactly(result: Result) -> Result:
    """The result with every digit of its numbers."""
    if isinstance(result, ResultGroup):
        return attrs.evolve(result, parts=tuple(map(_exactly, result.parts)))
    return attrs.evolve(result, exact=True) if isinstance(result, Table) else result


class _ValueWatcher:
    """Compares the values of objects with those of the previous frame."""

    def __init__(self, all_integers: bool) -> None:
        """Begin without a frame.

        Args:
            all_integers: treat all integers as counters.
        """
        self._all_integers = all_integers
        self._rates = RateTracker()
        self._changes = ChangeTracker()
        self._counters: dict[ClassKey, dict[str, QmfType]] = {}

    def cell(self, target: ObjectView, name: str, cell: Cell, at: float) -> WatchedValue:
        """A value with its rate, and whether it has changed."""
        key = target.identity.key, name
        changed = self._changes.update(key, cell)
        kind = self._counter_type(target.schema, name)
        if kind is None:
            return WatchedValue(cell, changed)
        rate = self._rates.update(key, kind, target.values.get(name), at, target.identity.key.agent_epoch)
        return WatchedValue(cell, changed, rate, counter=True)

    def record(
        self, target: ObjectView, record: Record, watched: Mapping[str, WatchedValue], at: float
    ) -> dict[str, Cell]:
        """The record of an object in a view: with the time, and with rates of its counters.

        Args:
            target: the object.
            record: its record.
            watched: the values that this frame has compared already.
            at: when, on the monotonic clock.
        """
        found: dict[str, Cell] = {"time": Instant(time.time_ns()), **record}
        for name in (*fields_of(target.schema), *target.values):
            key = value_name(name)
            if key in record and self._counter_type(target.schema, name) is not None:
                value = watched.get(name) or self.cell(target, name, record[key], at)
                found[key] = attrs.evolve(value, cell=record[key])
        return found

    def _counter_type(self, schema: ClassSchema, name: str) -> QmfType | None:
        """The type of a value that is a counter; None if it is not."""
        known = self._counters.get(schema.key)
        if known is None:
            fields = fields_of(schema).values()
            known = self._counters[schema.key] = {
                item.name: item.type for item in fields if item.grows(all_integers=self._all_integers)
            }
        return known.get(name)


@attrs.define
class _ObjectWatch:
    """Objects in full, side by side."""

    context: Context
    targets: list[ObjectView]
    watcher: _ValueWatcher
    gone: dict[object, int] = attrs.field(factory=dict)

    def frame(self) -> Result:
        """The objects with their current values; of an object that no longer exists, the last ones."""
        at = time.monotonic()
        for number, item in enumerate(self.targets):
            now = self.context.backend.get(item.identity)
            if now is None:
                self.gone.setdefault(item.identity.key, time.time_ns())
            else:
                self.gone.pop(item.identity.key, None)
                self.targets[number] = now
        groups: dict[ClassName, list[ObjectView]] = {}
        for item in self.targets:
            self.context.ids.assign(item.identity, item.created)
            groups.setdefault(class_name(item.identity), []).append(item)
        tables = tuple(self._table(group, at) for group in groups.values())
        return tables[0] if len(tables) == 1 else ResultGroup(tables)

    def _table(self, group: Sequence[ObjectView], at: float) -> Table:
        watched = self._watched_values(group, at)
        rows: list[tuple[Cell, ...]] = [
            (kind, name, *(one[kind, name] for one in watched)) for kind, name in watched[0]
        ]
        rows.append(("time", "updated", *(Instant(item.updated) for item in group)))
        gone = [self.gone.get(item.identity.key) for item in group]
        if any(gone):
            rows.append(("time", "gone since", *(Instant(since or 0) for since in gone)))
        identity = group[0].identity
        title = f"{identity.class_key.package}:{identity.class_key.name}"
        note = None
        if len(group) == 1:
            title += f" {identity.index}"
            note = "Gone: these are its last values." if any(gone) else None

        def records() -> list[Record]:
            by_name = [{name: cell for (_, name), cell in one.items()} for one in watched]
            return [self._record(item, one, at) for item, one in zip(group, by_name, strict=True)]

        return Table(tuple(self._columns(group)), tuple(rows), title=title, note=note, records=records)

    def _columns(self, group: Sequence[ObjectView]) -> list[TableColumn]:
        columns = [TableColumn("Type", Role.FAINT, spare=True), TableColumn("Element", Role.NAME)]
        for item in group:
            number = str(self.context.ids.number(item.identity.key))
            columns.append(TableColumn(f"{number} (gone)" if item.identity.key in self.gone else number, wraps=True))
        return columns

    def _watched_values(self, group: Sequence[ObjectView], at: float) -> list[dict[tuple[str, str], WatchedValue]]:
        """For each object its values by kind and name; those that only others of the group have are empty."""
        cells = [element_cells(self.context, item) for item in group]
        elements = list(dict.fromkeys(element for one in cells for element in one))
        return [
            {element: self.watcher.cell(item, element[1], one.get(element), at) for element in elements}
            for item, one in zip(group, cells, strict=True)
        ]

    def _record(self, item: ObjectView, watched: Mapping[str, WatchedValue], at: float) -> Record:
        record = self.watcher.record(item, object_record(self.context, item), watched, at)
        gone = self.gone.get(item.identity.key)
        return record if gone is None else record | {"gone": Instant(gone)}


@attrs.define
class _ClassWatch:
    """The objects of a class, one per row."""

    context: Context
    select: Callable[[], Sequence[SelectedObjects]]
    selection: ParsedSelection
    watcher: _ValueWatcher
    before: dict[ClassName, dict[object, ObjectIdentity]] = attrs.field(factory=dict)
    # Chosen once: columns that come and go would be hard to read.
    columns: dict[ClassName, list[str]] = attrs.field(factory=dict)

    def frame(self) -> Result:
        """The objects with their current values."""
        at = time.monotonic()
        tables = tuple(self._table(selected, at) for selected in self.select())
        return tables[0] if len(tables) == 1 else ResultGroup(tables)

    def _table(self, selected: SelectedObjects, at: float) -> Table:
        values = self._values(selected)
        columns = [TableColumn("ID", Role.ID), TableColumn("Index", Role.NAME, shortens=True)]
        named = any(item.identity.title for item in selected.shown)
        if named:
            columns.append(TableColumn("Name", shortens=True))
        asked, form = bool(self.selection.columns), CellForm.WIDE if self.selection.wide else CellForm.BRIEF
        columns += [attrs.evolve(value.column_as(form), spare=not asked) for value in values]
        rows: list[tuple[Cell, ...]] = []
        watched: list[dict[str, WatchedValue]] = []
        for item in selected.shown:
            number = self.context.ids.assign(item.identity, item.created)
            cells = [
                self.watcher.cell(item, value.column.title, value.cell(self.context, item), at) for value in values
            ]
            title = [item.identity.title] if named else []
            rows.append((number, item.identity.index, *title, *cells))
            watched.append({value.column.title: cell for value, cell in zip(values, cells, strict=True)})

        def records() -> list[Record]:
            chosen = values if self.selection.columns else None
            return [
                self.watcher.record(item, record_of(self.context, item, chosen), one, at)
                for item, one in zip(selected.shown, watched, strict=True)
            ]

        return Table(
            tuple(columns),
            tuple(rows),
            title=f"{clean(selected.name[0])}:{clean(selected.name[1])}, {plural(len(selected.objects), 'object')}",
            empty=f"No objects of {clean(selected.name[0])}:{clean(selected.name[1])}.",
            note=self._changes_note(selected),
            records=records,
        )

    def _values(self, selected: SelectedObjects) -> list[ValueColumn]:
        wanted = column_names(self.selection) or self.columns.get(selected.name)
        if not wanted:
            found = default_columns(self.context, selected.name, selected.schemas, selected.objects)
            wanted = self.columns[selected.name] = found or list(ALL_COLUMNS[:1])
        return value_columns(selected.schemas, wanted)

    def _changes_note(self, selected: SelectedObjects) -> str | None:
        """The objects that appeared or disappeared since the previous frame, as a note."""
        now: dict[object, ObjectIdentity] = {item.identity.key: item.identity for item in selected.objects}
        before = self.before.get(selected.name)
        self.before[selected.name] = now
        if before is None:
            return None
        parts = []
        for word, there, other in (("new", now, before), ("gone", before, now)):
            names = [clean(identity.index) for key, identity in there.items() if key not in other]
            if names:
                parts.append(f"{word}: {', '.join(names[:3])}" + (f" and {len(names) - 3} more" if names[3:] else ""))
        return "; ".join(parts) or None


WATCH = Command(
    name="watch",
    usage=(
        "watch [-n SECONDS] [-c COUNT] [-p]",
        "watch [-n SECONDS] [-c COUNT] [-p] [-r] ID...",
        "watch [-n SECONDS] [-c COUNT] [-pr] CLASS [where CONDITION] [sort NAME] [columns NAME...] [limit COUNT]",
    ),
    summary="Show classes or objects, refreshed repeatedly",
    help=(
        "Values that changed since the previous frame are marked. Counters show their growth per second; the reset of "
        "a counter is noticed. Which values are counters is known for qpidd and for agents of this project; -r treats "
        "all integers as counters.",
        "Of a class, the columns of `list` are shown; columns selects others. An object that no longer exists keeps "
        "its last values and is marked as gone. While the connection is lost, the last frame stays.",
        "Ctrl-C or q ends it. In a file or pipe, the frames follow each other.",
    ),
    examples=(
        ("watch 101", "all values of one object"),
        ("watch -n 5 queue where consumers = 0 columns msgDepth, byteDepth", "some objects of a class"),
        ("watch -c 3 process sort cpuPercent desc limit 5", "three frames"),
    ),
    parameters=(
        Parameter("ID", ParameterKind.TARGET, "short id, range, name, index, or a class"),
        Parameter("SELECTION", ParameterKind.SELECTION, "more ids; of a class, a condition and so on", repeated=True),
    ),
    options=(*VIEW_OPTIONS, RATES, PLAIN),
    handler=run,
)
