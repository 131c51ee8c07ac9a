"""`diff`: what changed between two times, from a lake."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

import attrs

from qmf._natural_order import natural_key
from qmf.errors import NotFoundError
from qmf.schema import ClassKey
from qmf.views.cells import Cell, Duration, Quantity
from qmf.views.conditions.words import Word
from qmf.views.fields import ObjectField, fields_of
from qmf.views.objects import ObjectKey, ObjectView
from qmf.views.rates import counter_growth
from qmf.views.text import clean
from qmf.views.units import is_number
from qmf.views.value_cells import value_cell
from qmf_shell.commands.at import inside, past_context
from qmf_shell.objects.fields import find_field
from qmf_shell.objects.lookup import GoneError, find_object, matching_classes
from qmf_shell.objects.selecting import known_schemas, select_objects
from qmf_shell.parsing.command import ALL, EXACT, BoundArguments, Command, Parameter, ParameterKind
from qmf_shell.parsing.selection import ParsedSelection, parse_selection
from qmf_shell.parsing.times import PeriodError, TimeReference, parse_time
from qmf_shell.results.result import Result, Role, Table, TableColumn, in_one
from qmf_shell.session.backend import ClassName
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name, class_names

_COLUMNS = (
    TableColumn("Change"),
    TableColumn("ID", Role.ID),
    TableColumn("Index", Role.NAME, wraps=True),
    TableColumn("Value"),
    TableColumn("Before", Role.NUMBER, wraps=True),
    TableColumn("After", Role.NUMBER, wraps=True),
    TableColumn("Difference", Role.NUMBER),
)

Objects = Mapping[ObjectKey, ObjectView]


def run(context: Context, args: BoundArguments) -> Result:
    """Compare the states at both times."""
    clock = TimeReference(time.time_ns())
    first, used = parse_time(args.texts, clock)
    words = args.words[used:]
    last, used = _second(words, clock, first)
    words = words[used:]
    before, after = past_context(context, first), past_context(context, last)
    for past in (before, after):
        past.show_own = context.show_own
    comparison = _Comparison(context, before, after, "exact" in args.options)
    return inside(context, after, lambda: inside(context, before, lambda: comparison.run(words)))


def _second(words: Sequence[Word], clock: TimeReference, first: int) -> tuple[int, int]:
    texts = [word.text for word in words]
    if not texts:
        raise DIFF.misuse("the second TIME is missing")
    last, used = parse_time(texts, clock, after=first)
    if last > clock.now:
        last, used = parse_time(texts, clock)
    if last < first:
        raise PeriodError("the first time", " ".join(texts[:used]))
    return last, used


@attrs.frozen
class _Comparison:
    """Two states of the bus."""

    context: Context
    before: Context
    after: Context
    exact: bool

    def run(self, words: Sequence[Word]) -> Result:
        """The differences of what the words select."""
        keys: Sequence[ClassKey]
        if not words:
            keys = self.after.object_classes()
            selection = ParsedSelection()
        else:
            keys = matching_classes(self.after, words[0].text)
            selection = parse_selection(words[1:] if keys else words)
        if not keys:
            return self._of_objects(selection)
        tables = [
            self._table([key for key in keys if (key.package, key.name) == name], name, selection)
            for name in class_names(keys)
        ]
        return in_one([table for table in tables if table.rows] or tables[:1])

    def _of_objects(self, selection: ParsedSelection) -> Result:
        """The differences of objects that are named."""
        found: dict[ClassName, set[ObjectKey]] = {}
        for text in selection.ids:
            identity = self._find(text).identity
            found.setdefault(class_name(identity), set()).add(identity.key)
        tables = []
        for name, wanted in found.items():
            keys = [key for key in self.after.classes() if (key.package, key.name) == name]
            pairs = [
                {
                    item.identity.key: item
                    for item in past.objects([name], everything=True)
                    if item.identity.key in wanted
                }
                for past in (self.before, self.after)
            ]
            tables.append(self._differences(keys, name, selection, *pairs))
        return in_one(tables)

    def _find(self, text: str) -> ObjectView:
        try:
            return find_object(self.after, text)
        except (NotFoundError, GoneError):
            return find_object(self.before, text)

    def _table(self, keys: Sequence[ClassKey], name: ClassName, selection: ParsedSelection) -> Table:
        # What a condition selects at one of the times is compared with its state at the other.
        chosen = attrs.evolve(selection, limit=None, sort_keys=(), columns=())
        pairs: list[dict[ObjectKey, ObjectView]] = []
        wanted: set[ObjectKey] = set()
        for past in (self.before, self.after):
            everything = past.objects([name])
            pairs.append({item.identity.key: item for item in everything})
            if chosen.where is None and not chosen.ids:
                wanted.update(item.identity.key for item in everything)
                continue
            try:
                for selected in select_objects(past, keys, chosen):
                    wanted.update(item.identity.key for item in selected.objects)
            except NotFoundError:
                if past is self.after and not wanted:
                    raise
        kept = [{key: item for key, item in one.items() if key in wanted} for one in pairs]
        return self._differences(keys, name, selection, *kept)

    def _change(
        self, item: ObjectView, old: ObjectView | None, new: ObjectView | None, columns: set[str]
    ) -> tuple[str, list[tuple[Cell, ...]]]:
        """What happened to an object, and the rows about it: none if nothing has changed."""
        number = self.context.ids.assign(item.identity, item.created)
        front = (number, item.identity.index or item.identity.title)
        if old is None or new is None:
            change = "came" if old is None else "went"
            return change, [(change, *front, None, None, None, None)]
        return "changed", [("changed", *front, *cells) for cells in self._values(old, new, columns)]

    def _differences(
        self, keys: Sequence[ClassKey], name: ClassName, selection: ParsedSelection, before: Objects, after: Objects
    ) -> Table:
        schemas = known_schemas(self.after, keys)
        columns = {find_field(schemas, text).name for text in selection.columns if text not in ("all", "*")}
        everything = [*before.values(), *(item for key, item in after.items() if key not in before)]
        everything.sort(key=lambda item: natural_key(item.identity.index))
        counts = {"came": 0, "went": 0, "changed": 0}
        rows: list[tuple[Cell, ...]] = []
        left = 0
        for item in everything:
            change, found = self._change(item, before.get(item.identity.key), after.get(item.identity.key), columns)
            if found and selection.limit is not None and sum(counts.values()) >= selection.limit:
                left += 1
            elif found:
                counts[change] += 1
                rows += found
        package, own = map(clean, name)
        summary = ", ".join(f"{count:,} {change}" for change, count in counts.items() if count)
        return Table(
            _COLUMNS,
            tuple(rows),
            title=f"{package}:{own}, {summary}",
            empty=f"No differences of {package}:{own}.",
            note=f"{left:,} more beyond the limit" if left else None,
            exact=self.exact,
        )

    def _values(self, old: ObjectView, new: ObjectView, columns: set[str]) -> Iterator[tuple[Cell, ...]]:
        """The values of an object that are different: name, before, after, and by how much."""
        for field in fields_of(new.schema).values():
            if not field.is_main if not columns else field.name not in columns:
                continue
            one, two = old.values.get(field.name), new.values.get(field.name)
            if one == two:
                continue
            reference = self.after.ids.reference_cell
            cells = [
                value_cell(field.type, value, field.unit, measured=field.statistic, reference=reference)
                for value in (one, two)
            ]
            yield field.name, *cells, _difference(field, old, new)


def _difference(field: ObjectField, old: ObjectView, new: ObjectView) -> Cell:
    one, two = old.values.get(field.name), new.values.get(field.name)
    if not is_number(one) or not is_number(two):
        return None
    if field.counter:
        again = old.identity.key.agent_epoch != new.identity.key.agent_epoch or old.created != new.created
        grown = two if again else counter_growth(field.type, one, two)
    else:
        grown = two - one
    if field.is_time:
        return Duration(int(grown))
    return Quantity(round(grown, 6) if isinstance(grown, float) else grown, field.unit)


DIFF = Command(
    name="diff",
    usage=("diff TIME TIME [CLASS] [ID...] [where CONDITION] [columns NAME...] [limit COUNT]",),
    summary="Show what came, went and changed between two times",
    help=(
        "The states come from a lake; times are written as for at. Objects that exist only at the second time came, "
        "those that exist only at the first went. Of the others, every value that is different is shown, with the "
        "difference: of counters the growth, from zero if the counter was reset or its agent restarted.",
        "A condition selects objects that fulfil it at one of the times.",
    ),
    examples=(
        ("diff 14:00 14:05 queue", "the queues"),
        ("diff -10m now queue where msgDepth > 100 columns msgDepth", "some of them, one value"),
        ("diff yesterday 12:00 now", "everything"),
        ("diff -1h now broker:amqp-broker", "one object"),
    ),
    parameters=(
        Parameter("TIME", ParameterKind.TIME, "the first time, e.g. 14:00 or -10m", required=True),
        Parameter("TIME", ParameterKind.TIME, "the second time, e.g. 14:05 or now", required=True),
        Parameter("CLASS", ParameterKind.TARGET, "a class, or an object"),
        Parameter("SELECTION", ParameterKind.SELECTION, "ids; conditions, columns, a limit", repeated=True),
    ),
    options=(ALL, EXACT),
    handler=run,
)
