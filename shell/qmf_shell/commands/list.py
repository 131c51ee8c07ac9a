"""`list`: classes with their numbers of objects, the objects of a class, or some objects in full."""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Iterator, Sequence

import attrs

from qmf.errors import NotFoundError
from qmf.schema import ClassKey
from qmf.views.cells import Cell, CellForm, Instant, Quantity, Record
from qmf.views.objects import ObjectView, field_value
from qmf.views.text import clean, plural
from qmf_shell.commands.show import SHOW, show_objects
from qmf_shell.objects.columns import ValueColumn, column_names, compound_statistics, default_columns, value_columns
from qmf_shell.objects.ended import (
    LOST_SHOWN,
    EndedObject,
    destroyed_objects,
    lost_count,
    lost_names,
    lost_objects,
    lost_table,
)
from qmf_shell.objects.lookup import find_classes, matching_classes
from qmf_shell.objects.object_records import deleted_record, record_of
from qmf_shell.objects.selecting import FirstPage, SelectedObjects, find_objects, select_objects
from qmf_shell.parsing.command import ALL, EXACT, BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.parsing.selection import ParsedSelection, parse_selection
from qmf_shell.results.result import Result, Role, Table, TableColumn, in_one
from qmf_shell.session.backend import ClassName
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name, class_names, names_class
from qmf_shell.session.own_objects import own_note

_CLASSES = (
    TableColumn("Package", Role.FAINT, shortens=True),
    TableColumn("Class", Role.NAME),
    TableColumn("Active", Role.NUMBER),
    TableColumn("Destroyed", Role.NUMBER, spare=True),
    TableColumn("Lost", Role.NUMBER),
)
#: Objects of a longer list that are shown before the others are there; they decide about its columns.
FIRST_PAGE = 200
#: Rows that are made before the next are.
_ROWS_AT_ONCE = 500
#: Classes have no such names.
_ID_OR_RANGE = re.compile(r"[0-9]+(-[0-9]+)?")
_ID = TableColumn("ID", Role.ID)
_INDEX = TableColumn("Index", Role.NAME, shortens=True)
_TITLE = TableColumn("Name", shortens=True)
_AGENT = TableColumn("Agent", Role.FAINT, shortens=True)
_TIMES = (
    TableColumn("Created", Role.TIME, spare=True),
    TableColumn("Destroyed", Role.TIME, spare=True),
    TableColumn("Lost", Role.TIME),
)


def run(context: Context, args: BoundArguments) -> Result:
    """List classes, the objects of a class, or the values of objects."""
    name = args.text(0)
    if "lost" in args.options:
        return _list_lost(context, args)
    if name is None:
        return _list_classes(context)
    if len(args.words) == 1 and name.lower() in ("all", "active") and not matching_classes(context, name):
        return _list_classes(context, only_active=name.lower() == "active")
    if _ID_OR_RANGE.fullmatch(name):
        return show_objects(find_objects(context, args.texts), context, exact="exact" in args.options)
    selection = parse_selection(args.words[1:])
    try:
        keys = find_classes(context.classes(), name)
    except NotFoundError as no_class:
        return _list_without_class(context, args, no_class)
    return _list_class(context, keys, args, selection)


def _list_class(context: Context, keys: Sequence[ClassKey], args: BoundArguments, selection: ParsedSelection) -> Result:
    """The objects of a class: a line each, or in full if the arguments ask for that."""
    exact = "exact" in args.options
    active = selection.active or "active" in args.options
    in_full = len(args.words) == 2 and args.texts[1].lower() == "all" and args.words[1].plain > 0
    if in_full or (_as_tool(context) and selection == ParsedSelection(active=True)):
        return SHOW.handler(context, attrs.evolve(args, words=args.words[:1]))
    if selection == ParsedSelection(ids=selection.ids) and selection.ids:
        return show_objects(find_objects(context, selection.ids, classes=keys), context, exact=exact)
    selection = attrs.evolve(selection, active=active, wide=selection.wide or "wide" in args.options)
    page = FirstPage(FIRST_PAGE, lambda name: _can_grow(context, name))
    selected = select_objects(context, keys, selection, page)
    return in_one([attrs.evolve(_ClassListing(context, item, selection).table(), exact=exact) for item in selected])


def _can_grow(context: Context, name: ClassName) -> bool:
    """True if a list of a class may begin before all of its objects are there: ended ones have columns of their own."""
    ended = destroyed_objects(context, name, ()) or context.lost.of({name}, everything=context.everything)
    return not ended and context.backend.sends_first(name)


def _list_without_class(context: Context, args: BoundArguments, no_class: NotFoundError) -> Result:
    """What is listed if the first argument is no class: lost objects of a class, or an object as ``class:index``."""
    name = args.texts[0]
    # Nobody knows the class any more, since its agent is gone.
    if lost := _lost_objects(context, name):
        return lost_table(lost)
    if ":" not in name:
        raise no_class
    try:
        found = find_objects(context, args.texts)
    except NotFoundError as no_object:
        of_class = any(matching_classes(context, name[: mark.start()]) for mark in re.finditer(":", name))
        raise (no_object if of_class else no_class) from None
    return show_objects(found, context, exact="exact" in args.options)


def _list_lost(context: Context, args: BoundArguments) -> Table:
    """Only the lost objects, of a class or of all."""
    if len(args.words) > 1:
        raise LIST.misuse("--lost takes a class only", -1)
    keys = context.object_classes()
    names = lost_names(context)
    # Those that were received again, from another run of their agent, are not lost any more.
    again = context.objects([name for name in class_names(keys) if name in names], everything=True)
    context.lost.exist(item.identity.key for item in again)
    name = args.text(0)
    if name is None:
        return lost_table(lost_objects(context))
    found = _lost_objects(context, name)
    if not found:
        find_classes(keys, name)
    return lost_table(found)


def _lost_objects(context: Context, text: str) -> list[EndedObject]:
    """The lost objects of the classes that a text names."""
    return [item for item in lost_objects(context) if names_class(text, item.identity.class_key)]


def _as_tool(context: Context) -> bool:
    """True if objects are listed as `qpid-tool` does."""
    return context.settings["lists"] == "qpid-tool"


def _list_classes(context: Context, *, only_active: bool = False) -> Table:
    existing = class_names(context.object_classes())
    objects = context.objects(existing)
    context.lost.exist(item.identity.key for item in objects)
    lost = lost_names(context)
    names = [*existing, *sorted(lost.difference(existing))]
    counts = collections.Counter(class_name(item.identity) for item in objects)
    destroyed = {name: context.deletions.of(name, everything=context.everything) for name in names}
    rows: list[tuple[Cell, ...]] = []
    for name in names:
        if only_active and not counts[name]:
            continue
        ended = [Quantity(destroyed[name]), *([lost_count(context, name)] if lost else [])]
        rows.append((*name, Quantity(counts[name]), *ended))
    return Table(
        _CLASSES if lost else _CLASSES[:-1],
        tuple(rows),
        title="Objects by class",
        empty="No classes yet: no agent has sent one.",
        note="; ".join(own_note(context.left_out_rows(names))) or None,
    )


class _ClassListing:
    """The table of the objects of a class: the existing ones, then those that were destroyed or lost."""

    def __init__(self, context: Context, selected: SelectedObjects, selection: ParsedSelection) -> None:
        self._context = context
        self._selected = selected
        self._selection = selection
        self._existing = selected.shown
        existing_keys = {item.identity.key for item in selected.objects}
        context.lost.exist(existing_keys)
        self._destroyed: Sequence[EndedObject] = ()
        self._lost: Sequence[EndedObject] = ()
        self._rest: Sequence[ObjectView] | None = None
        if selected.rest is None and not (
            selection.active or selection.where or selection.ids or selection.limit is not None
        ):
            self._destroyed = destroyed_objects(context, selected.name, existing_keys)
            self._lost = lost_objects(context, {selected.name})
        self._values = self._chosen_values()

    def table(self) -> Table:
        """The table."""
        package, name = map(clean, self._selected.name)
        hidden = self._hidden_note()
        nothing = f"No objects of {package}:{name}{' that match' if self._selection.where else ''}."
        # First, since it gives the objects their ids.
        rows = [*map(self._row, self._existing), *map(self._ended_row, self._shown_ended)]
        shown = self._shown_columns()
        headings = (_ID, *_TIMES, _INDEX, _TITLE, *_headings(self._values, self._selection), _AGENT)
        table = Table(
            tuple(itertools.compress(headings, shown)),
            tuple(tuple(itertools.compress(row, shown)) for row in rows),
            title=f"{package}:{name}, {self._counts()}",
            empty=" ".join([nothing, *(f"{text}." for text in hidden)]),
            note="; ".join([*self._omission_notes(), *hidden]) or None,
            records=self._records,
        )
        if self._selected.rest is None:
            return table
        first = attrs.evolve(table, note=None)
        return attrs.evolve(first, more=lambda: self._more(first, shown))

    def _more(self, table: Table, shown: Sequence[bool]) -> Iterator[Table]:
        """The rows behind the first ones, some at a time, then how many there are in all."""
        later = self._later()
        for start in range(0, len(later), _ROWS_AT_ONCE):
            rows = tuple(
                tuple(itertools.compress(self._row(item), shown)) for item in later[start : start + _ROWS_AT_ONCE]
            )
            yield attrs.evolve(table, rows=rows)
        counts = [plural(len(self._existing) + len(later), "object"), *self._hidden_note()]
        yield attrs.evolve(table, rows=(), note="; ".join(counts))

    def _later(self) -> Sequence[ObjectView]:
        """The objects behind the first ones; the agents are asked once."""
        if self._selected.rest is None:
            return ()
        if self._rest is None:
            self._rest = self._selected.rest()
            self._context.lost.exist({item.identity.key for item in self._rest})
        return self._rest

    def _hidden_note(self) -> list[str]:
        return own_note(self._context.left_out_rows([self._selected.name]))

    @property
    def _shown_ended(self) -> list[EndedObject]:
        return [*self._destroyed, *self._lost[:LOST_SHOWN]]

    def _chosen_values(self) -> list[ValueColumn]:
        """The values that are shown; none if objects are listed by their times."""
        selection, schemas = self._selection, self._selected.schemas
        if _as_tool(self._context) and not selection.wide and not column_names(selection):
            return []
        values = value_columns(schemas, _shown_columns(self._context, self._selected, selection))
        if selection.columns:
            return values
        # A value that is the same as the index is redundant.
        return [item for item in values if any(_differs_from_index(one, item) for one in self._existing)]

    def _row(self, item: ObjectView) -> tuple[Cell, ...]:
        identity = item.identity
        number = self._context.ids.assign(identity, item.created)
        cells = [value.cell(self._context, item) for value in self._values]
        return (number, Instant(item.created), None, None, identity.index, identity.title, *cells, _agent(item))

    def _ended_row(self, entry: EndedObject) -> tuple[Cell, ...]:
        identity = entry.identity
        ends = (Instant(at) if at else None for at in (entry.destroyed, entry.lost))
        front = (entry.number, Instant(entry.created), *ends, identity.index, identity.title)
        return (*front, *[None] * len(self._values), identity.key.agent_name)

    def _shown_columns(self) -> list[bool]:
        """Which columns are shown, of all that a row has."""
        timed = not self._values
        titled = any(item.identity.title for item in self._existing)
        named = titled and not any(item.column.title == "name" for item in self._values)
        keys = [item.identity.key for item in self._existing] + [one.identity.key for one in self._shown_ended]
        several_agents = len({(key.agent_name, key.broker) for key in keys}) > 1
        times = [timed, timed or bool(self._destroyed), bool(self._lost)]
        return [True, *times, True, named, *[True] * len(self._values), several_agents]

    def _counts(self) -> str:
        selected = self._selected
        if selected.rest is not None:
            return f"more than {plural(len(selected.objects), 'object')}"
        if selected.others is None or not selected.sure:
            return f"first {plural(len(selected.shown), 'object')}"
        counts = [plural(len(selected.objects) + selected.others, "object")]
        for word, ended in (("destroyed", self._destroyed), ("lost", self._lost)):
            counts += [f"{len(ended)} {word}"] if ended else []
        return ", ".join(counts)

    def _omission_notes(self) -> list[str]:
        """How many objects are not shown."""
        selected, lost = self._selected, len(self._lost) - LOST_SHOWN
        left = len(selected.objects) - len(self._existing) + (selected.others or 0)
        words = "" if selected.sure else "up to "
        notes = [f"{words}{left:,} more beyond the limit"] if left else []
        if selected.others is None:
            notes = ["there may be more beyond the limit"]
        return notes + ([f"{lost:,} more are lost: list --lost shows them"] if lost > 0 else [])

    def _records(self) -> Iterator[Record]:
        """What programs get: all values, unless the user chose some, so that it does not depend on what varies now."""
        columns = self._values if self._selection.columns else None
        for item in self._existing:
            yield record_of(self._context, item, columns)
        for item in self._later():
            yield record_of(self._context, item, columns)
        for one in (*self._destroyed, *self._lost):
            times = {"destroyed": one.destroyed} if one.destroyed else {"lost": one.lost}
            yield deleted_record(one.number, one.identity, one.created, **times)


def _differs_from_index(item: ObjectView, column: ValueColumn) -> bool:
    return str(field_value(item, column.field)) != item.identity.index


def _shown_columns(context: Context, selected: SelectedObjects, selection: ParsedSelection) -> list[str]:
    """The values to show."""
    chosen = column_names(selection)
    if selection.columns:
        return chosen
    found = default_columns(context, selected.name, selected.schemas, selected.shown)
    return list(dict.fromkeys([*chosen, *(compound_statistics(selected.schemas) if selection.wide else ()), *found]))


def _headings(values: Sequence[ValueColumn], selection: ParsedSelection) -> list[TableColumn]:
    """The columns of values; those that the user has not named are left out where there is no room for them."""
    named = {name.lower() for name in column_names(selection)}
    columns = []
    for value in values:
        column = value.column_as(CellForm.WIDE if selection.wide else CellForm.BRIEF)
        asked = bool(selection.columns) or value.field.name.lower() in named
        columns.append(attrs.evolve(column, spare=not asked and value.field.element.lower() not in named))
    return columns


def _agent(item: ObjectView) -> str:
    key = item.identity.key
    return f"{key.agent_name} at {key.broker}" if key.broker else key.agent_name


LIST = Command(
    name="list",
    usage=(
        "list [CLASS]",
        "list [CLASS] all|active",
        "list --lost [CLASS]",
        "list [CLASS] ID...",
        "list CLASS [active] [wide] [where CONDITION] [sort [by] NAME [desc]] [columns NAME...] [limit COUNT]",
    ),
    summary="List classes, objects of a class, or objects in full",
    help=(
        "Without arguments, it lists the classes with their current numbers of objects, and how many objects were "
        "destroyed since the session began; list active leaves out those without objects.",
        "With a class, it lists the objects and gives each a short id, which stays the same until you leave. Objects "
        "that you have listed and that were destroyed since then are shown with the time of their end, unless you "
        "write active (or -a). list CLASS all shows all objects in full, as show CLASS does. With the setting lists "
        "qpid-tool, which that command has, objects are listed by the times of their beginning and end, and active "
        "shows the existing ones in full.",
        "With ids or ranges of ids, it shows these objects side by side. After a class, you can write an object's "
        "index instead of an id.",
        "A condition finds words in the names of objects and in the texts of the columns that you choose, and compares "
        "values with = (in any case of letters) == != < <= > >= ~ (a regular expression) and !~. What stands side by "
        "side must all hold; or, not and brackets join, too. has NAME is true if the value exists and is neither "
        "false, nor zero, nor empty. A word in quotes is only a word. index, agent, broker, class, created and updated "
        "can be compared, too. Values may be written 10k, 5Mi, 80%, 250ms and 2024-05-01T12:00, short ids of "
        "referenced objects as in queueRef=#101. The agents get those parts that let them answer with fewer objects; "
        "all of it is tested here.",
        "Objects whose agent is gone, for example because it was killed, are lost: nobody reported their end. They are "
        "shown with the time when that was noticed, unless you write active; -l (--lost) shows all of them, and no "
        "others.",
        "Without columns, the values that you chose by the command `columns` are shown, else the statistics that "
        "matter: first those that differ between the objects, as many as there is room for. columns shows these values "
        "instead; columns all shows all values. Values in the condition and in the order come first.",
        "Numbers are shortened, such as 12.5 MB; -e (--exact) shows every digit. wide (or -w) shows hilo and mma "
        "statistics with their high and low values, minima and maxima. JSON and CSV have all values, exactly.",
    ),
    examples=(
        ("list", "every class with its number of objects"),
        ("list filesystem", "the mounted filesystems"),
        ("list filesystem / /home", "two of them, side by side"),
        ("list filesystem 101-103", "some of them, by range"),
        ("list 101-103", "the same, whatever their classes"),
        ("list org.apache.qpid.broker:queue", "a class whose name several packages have"),
        ('list queue where msgDepth > 100 and name ~ "orders"', "those with many messages"),
        ("list process sort cpuPercent desc columns name, cpuPercent limit 10", "the busiest ten"),
        ("list --lost", "the objects whose agent is gone"),
        ("list queue where orders durable=no", "with a word in the name, and not durable"),
        ("list queue where has msgDepth or created > 10m", "not empty, or created within ten minutes"),
    ),
    parameters=(
        Parameter("CLASS", ParameterKind.CLASS, "a class, or package:class"),
        Parameter(
            "SELECTION",
            ParameterKind.SELECTION,
            "short ids, ranges, indexes; conditions, order, columns",
            repeated=True,
        ),
    ),
    options=(
        Option(("-a", "--active"), "leave out destroyed and lost objects"),
        Option(("-l", "--lost"), "only objects whose agent is gone"),
        Option(("-w", "--wide"), "statistics with their high and low values"),
        EXACT,
        ALL,
    ),
    handler=run,
)
