"""`watch`: objects as a table that is drawn again and again, with what changed marked and how fast counters grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import attrs

from qmf.schema import ClassSchema, QmfType
from qmf_shell.objects.cells import element_cells
from qmf_shell.objects.columns import ALL_COLUMNS, ValueColumn, column_names, value_columns
from qmf_shell.objects.counters import is_counter
from qmf_shell.objects.filtering import TIME_TYPES, fields_of
from qmf_shell.objects.lookup import classes_or_none
from qmf_shell.objects.rates import ChangeTracker, RateTracker
from qmf_shell.objects.selecting import SelectedObjects, find_objects, select_objects
from qmf_shell.parsing.command import BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.parsing.option_numbers import count_option, seconds_option
from qmf_shell.parsing.selection import Selection, parse_selection
from qmf_shell.results.result import (
    Cell,
    Column,
    Instant,
    LiveView,
    Result,
    ResultGroup,
    Role,
    Table,
    WatchedValue,
)
from qmf_shell.session.backend import ClassName, ObjectIdentity, ObjectRecord
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name
from qmf_shell.text import clean, plural

#: Statistics of a class that are shown where the user names none.
SHOWN = 6

VIEW_OPTIONS = (
    Option(("-n", "--interval"), "seconds from one picture to the next (2)", "SECONDS"),
    Option(("-c", "--count"), "how many pictures; without it until Ctrl-C or q", "COUNT"),
)
#: For agents whose schema does not tell counters from other numbers.
RATES = Option(("-r", "--rates"), "take every whole number for a counter")


def run(context: Context, args: BoundArguments) -> LiveView:
    """Begin to watch."""
    keys = classes_or_none(context, args.texts[0])
    follower = _Follower("rates" in args.options)
    frame: Callable[[], Result]
    if keys:
        selection = parse_selection(args.words[1:])
        frame = _ClassWatch(context, lambda: select_objects(context, keys, selection), selection, follower).frame
        if selection.ids:
            frame = _ObjectWatch(context, find_objects(context, selection.ids, classes=keys), follower).frame
    else:
        frame = _ObjectWatch(context, find_objects(context, args.texts), follower).frame
    return make_view(context, WATCH, args, frame)


def make_view(context: Context, command: Command, args: BoundArguments, frame: Callable[[], Result]) -> LiveView:
    """A view with the interval and the count that were given; see `VIEW_OPTIONS`."""
    interval = seconds_option(command, args, "interval", context.settings.interval)
    count = count_option(command, args, "count", 0)
    return LiveView(frame, interval, count or None)


class _Follower:
    """What two looks at the same objects say together."""

    def __init__(self, every: bool) -> None:
        """
        Args:
            every: take every whole number for a counter.
        """
        self._every = every
        self._rates = RateTracker()
        self._changes = ChangeTracker()

    def cell(self, target: ObjectRecord, name: str, cell: Cell, at: float) -> WatchedValue:
        """A value with what is new about it."""
        key = target.identity.key, name
        changed = self._changes.take(key, cell)
        kind = self._counter(target.schema, name)
        if kind is None:
            return WatchedValue(cell, changed)
        rate = self._rates.take(key, kind, target.values.get(name), at, target.identity.key.epoch)
        return WatchedValue(cell, changed, rate, counter=True)

    def _counter(self, schema: ClassSchema, name: str) -> QmfType | None:
        """The type of a counter; None for what is none."""
        item = schema.statistic(name)
        if item is not None and is_counter(schema.package, item):
            return item.type
        found = item or schema.property(name)
        if self._every and found is not None and found.type.is_integer and found.type.base not in TIME_TYPES:
            return found.type
        return None


@attrs.define
class _ObjectWatch:
    """Objects in full, side by side."""

    context: Context
    targets: list[ObjectRecord]
    follower: _Follower
    gone: dict[object, int] = attrs.field(factory=dict)

    def frame(self) -> Result:
        """The objects as they are now; of one that is gone, what it was at last."""
        at = time.monotonic()
        for number, item in enumerate(self.targets):
            now = self.context.backend.get(item.identity)
            if now is None:
                self.gone.setdefault(item.identity.key, time.time_ns())
            else:
                self.gone.pop(item.identity.key, None)
                self.targets[number] = now
        groups: dict[ClassName, list[ObjectRecord]] = {}
        for item in self.targets:
            self.context.ids.assign(item.identity, item.created)
            groups.setdefault(class_name(item.identity), []).append(item)
        tables = tuple(self._table(group, at) for group in groups.values())
        return tables[0] if len(tables) == 1 else ResultGroup(tables)

    def _table(self, group: Sequence[ObjectRecord], at: float) -> Table:
        alone = len(group) == 1
        columns = [Column("Type", Role.FAINT, spare=True), Column("Element", Role.NAME)]
        for item in group:
            number = str(self.context.ids.number(item.identity.key))
            columns.append(Column(f"{number} (gone)" if item.identity.key in self.gone else number, wraps=True))
        cells = [element_cells(self.context, item) for item in group]
        elements = list(dict.fromkeys(element for one in cells for element in one))
        rows: list[tuple[Cell, ...]] = []
        for kind, name in elements:
            followed = [
                self.follower.cell(item, name, one.get((kind, name)), at)
                for item, one in zip(group, cells, strict=True)
            ]
            rows.append((kind, name, *followed))
        rows.append(("time", "updated", *(Instant(item.updated) for item in group)))
        dead = [self.gone[item.identity.key] for item in group if item.identity.key in self.gone]
        if dead:
            rows.append(("time", "gone since", *(Instant(self.gone.get(item.identity.key, 0)) for item in group)))
        identity = group[0].identity
        title = f"{identity.class_key.package}:{identity.class_key.name}" + (f" {identity.index}" if alone else "")
        note = "Gone: these are its last values." if dead and alone else None
        return Table(tuple(columns), tuple(rows), title=title, note=note)


@attrs.define
class _ClassWatch:
    """The objects of a class, one per row."""

    context: Context
    select_objects: Callable[[], Sequence[SelectedObjects]]
    selection: Selection
    follower: _Follower
    before: dict[ClassName, dict[object, ObjectIdentity]] = attrs.field(factory=dict)

    def frame(self) -> Result:
        """The objects as they are now."""
        at = time.monotonic()
        tables = tuple(self._table(chosen, at) for chosen in self.select_objects())
        return tables[0] if len(tables) == 1 else ResultGroup(tables)

    def _table(self, chosen: SelectedObjects, at: float) -> Table:
        values = self._values(chosen)
        columns = [Column("ID", Role.ID), Column("Index", Role.NAME, wraps=True)]
        named = any(item.identity.title for item in chosen.shown)
        if named:
            columns.append(Column("Name", wraps=True))
        columns += [value.column for value in values]
        rows: list[tuple[Cell, ...]] = []
        for item in chosen.shown:
            number = self.context.ids.assign(item.identity, item.created)
            cells = [
                self.follower.cell(item, value.column.title, value.cell(self.context, item), at) for value in values
            ]
            title = [item.identity.title] if named else []
            rows.append((number, item.identity.index, *title, *cells))
        return Table(
            tuple(columns),
            tuple(rows),
            title=f"{clean(chosen.name[0])}:{clean(chosen.name[1])}, {plural(len(chosen.objects), 'object')}",
            empty=f"No objects of {clean(chosen.name[0])}:{clean(chosen.name[1])}.",
            note=self._came_and_went(chosen),
        )

    def _values(self, chosen: SelectedObjects) -> list[ValueColumn]:
        wanted = column_names(self.selection)
        if not wanted:
            wholes = [
                field.element for schema in chosen.schemas for field in fields_of(schema).values() if field.statistic
            ]
            wanted = list(dict.fromkeys(wholes))[:SHOWN] or list(ALL_COLUMNS[:1])
        return value_columns(chosen.schemas, wanted)

    def _came_and_went(self, chosen: SelectedObjects) -> str | None:
        """What is different from the picture before, in words."""
        now: dict[object, ObjectIdentity] = {item.identity.key: item.identity for item in chosen.objects}
        before = self.before.get(chosen.name)
        self.before[chosen.name] = now
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
        "watch [-n SECONDS] [-c COUNT] [-r] ID...",
        "watch [-n SECONDS] [-c COUNT] [-r] CLASS [where CONDITION] [sort NAME [desc]] [columns NAME...] [limit COUNT]",
    ),
    summary="Look at objects again and again",
    help=(
        "Values that changed since the picture before are marked. Counters show how much they grow per second; a "
        "counter that starts anew counts from zero. Which values are counters is known of qpidd and of agents of this "
        "project; -r takes every whole number for one.",
        "Of a class, the first statistics are shown; columns names others. An object that goes away keeps its last "
        "values and is marked as gone. Without a connection the last picture stays until it is back.",
        "Ctrl-C or q ends it. With output to a file or pipe the pictures follow each other.",
    ),
    examples=(
        ("watch 101", "everything of one object"),
        ("watch -n 5 queue where consumers = 0 columns msgDepth, byteDepth", "some objects of a class"),
        ("watch -c 3 process sort cpuPercent desc limit 5", "three pictures"),
    ),
    parameters=(
        Parameter("ID", ParameterKind.TARGET, "short id, range, name, index, or a class", required=True),
        Parameter("SELECTION", ParameterKind.SELECTION, "more ids; of a class, a condition and so on", many=True),
    ),
    options=(*VIEW_OPTIONS, RATES),
    handler=run,
)
