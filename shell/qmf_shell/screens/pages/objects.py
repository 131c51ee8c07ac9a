"""The objects of a class, one per row, with rates beside totals."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Sequence

import attrs

from qmf._natural_order import natural_key
from qmf.console.aio import ChangeKind
from qmf.errors import QmfError
from qmf.schema import TYPES, ClassKey
from qmf.views.cells import CellForm
from qmf.views.columns import important_statistics
from qmf.views.conditions import Field, ObjectFilter, Test, compile_filter, parse_condition
from qmf.views.fields import ObjectField
from qmf.views.objects import ObjectKey, ObjectView, field_value
from qmf.views.text import clean, plural
from qmf_shell.objects.columns import ALL_COLUMNS, default_columns
from qmf_shell.objects.fields import find_field
from qmf_shell.objects.filtering import RATE as RATE_NAME
from qmf_shell.objects.filtering import field_finder
from qmf_shell.objects.selecting import known_schemas, order_of_agents
from qmf_shell.screens.model import RowTest, TableModel
from qmf_shell.screens.pages.object_columns import AGENT, RATE, STATE, ObjectColumns
from qmf_shell.screens.pages.object_row import ObjectRow
from qmf_shell.screens.rows import Mark, Row
from qmf_shell.screens.state import FilterError, Page, PageNote
from qmf_shell.screens.thresholds import limits_of, threshold_key
from qmf_shell.session.backend import ClassName, GoneObject, ObjectChanges, ObjectFeed, ObjectLimit
from qmf_shell.session.context import Context
from qmf_shell.session.own_objects import CONNECTION, SESSION, may_be_own, split_own

#: Seconds for which new objects are marked, and for which deleted ones stay.
NEW_FOR, DELETED_FOR = 10.0, 30.0
#: Agents that publish to all are asked as often as the screen is refreshed only for so many objects at most.
ASKED_OFTEN = 1000
#: Else so often, in seconds.
SELDOM = 30.0
#: Objects of a larger class that are shown before the others are there.
FIRST_ROWS = 500


@attrs.frozen(kw_only=True)
class ObjectsSpec:
    """Which objects a page shows, and how.

    Attributes:
        name: package and name of their class.
        keys: its versions.
        predicate, test: the condition, for the agents and for here.
        columns: names of the values shown; empty for the default.
        more: the default columns are shown after `columns`.
        sort_keys: the values that sort, each with whether the largest comes first; the next one where one is equal.
        by_rate: the growth per second of the first one sorts.
        all_integers: every integer is a counter.
        limit: how many objects are shown, or None.
        form: how much the cells of values say.
        asks: each update asks for all objects, so that it is as new as possible; else they are followed. Those of a
            large class are followed all the same if `by_rate`: its first ones are there sooner.
    """

    name: ClassName
    keys: Sequence[ClassKey]
    predicate: Sequence[object] = ()
    test: Test | None = None
    columns: Sequence[str] = ()
    more: bool = False
    sort_keys: Sequence[tuple[ObjectField, bool]] = ()
    by_rate: bool = False
    all_integers: bool = False
    limit: int | None = None
    form: CellForm = CellForm.BRIEF
    asks: bool = False


@attrs.frozen(eq=False)
class _News:
    """What `ObjectsPage.load` found: with `whole`, all objects; if not `complete`, more are to come."""

    at: float
    changes: ObjectChanges
    failures: Sequence[str] = ()
    whole: bool = False
    complete: bool = True


class ObjectsPage(Page):
    """The objects of a class.

    Attributes:
        now: when it was updated, in seconds of a monotonic clock.
        complete: all objects are there, and not only the first ones.
        expected: how many objects there are, as far as is known.
    """

    empty = "No objects."

    def __init__(
        self,
        context: Context,
        spec: ObjectsSpec,
        interval: float,
        open_object: Callable[[ObjectView], Page],
    ) -> None:
        """Make the page, which is not loaded yet."""
        title = f"{clean(spec.name[0])}:{clean(spec.name[1])}"
        super().__init__(context, title, TableModel(()), interval)
        self.model.limit = spec.limit
        self._spec = spec
        self._open_object = open_object
        self._everything = context.everything
        self._columns: ObjectColumns | None = None
        self._feed: ObjectFeed | None = None
        self._schemas = known_schemas(context, spec.keys)
        self.now = time.monotonic()
        self._update = 0
        self._again = self._others_missing = False
        self.complete = True
        self.expected = 0
        #: Those of the first rows that were not received again since, while objects are missing.
        self._unseen: set[ObjectKey] = set()
        self._own: set[ObjectKey] = set()
        #: An agent that has an object of each index; and True once two objects could not be told apart.
        self._agents: dict[str, tuple[str, str]] = {}
        self._alike = False
        self._moving: dict[ObjectKey, ObjectRow] = {}
        self._marked: dict[ObjectKey, float] = {}
        self.empty = f"No objects of {title}" + (" that match." if spec.predicate or spec.test else ".")

    # -- on the thread that loads

    def load(self) -> object:
        spec = self._spec
        again, self._again = self._again, False
        if again and self._feed is not None:
            self._feed.close()
            self._feed = None
        self.follow_others()
        if self._feed is not None:
            complete = self._feed.complete
            changes = self._feed.take()
            failures = [f"{agent}: {reason}" for agent, reason in self._feed.failures.items()]
            return _News(time.monotonic(), self._select_changes(changes), failures, complete=complete)
        if spec.asks:
            return self._ask()
        found = self.context.backend.objects([spec.name], spec.predicate, self._first)
        complete = found.total is not None and found.total <= len(found.items)
        self.expected = found.total or 0
        self._own = set()
        self._feed = self._follow(often=complete and len(found.items) <= ASKED_OFTEN)
        failures = [f"{agent}: {reason}" for agent, reason in found.failures.items()]
        changes = self._select_changes(ObjectChanges(found.items))
        return _News(time.monotonic(), changes, failures, whole=True, complete=complete)

    def _ask(self) -> _News:
        """Ask for all objects; if `by_rate`, for the first ones at first, and follow them all if there are more."""
        spec, complete = self._spec, True
        if self.loaded or not spec.by_rate or self._first is None:
            found = self.context.objects([spec.name], spec.predicate)
        else:
            first = self.context.first_objects(spec.name, self._first, ObjectFilter(predicate=spec.predicate))
            found, complete = first.objects, first.others == 0
            self.expected = len(found) + (first.others or 0)
            self._others_missing = not complete
        return _News(time.monotonic(), self._select_passing(ObjectChanges(found)), whole=True, complete=complete)

    def follow_others(self) -> None:
        """Follow all objects, if only the first ones were asked for: to be called when these are put together.

        What arrives then needs the interpreter, too.
        """
        if self._others_missing:
            self._others_missing = False
            self._feed = self._follow(often=False)

    def _follow(self, *, often: bool) -> ObjectFeed:
        """Begin to follow the objects; `often` as in `ASKED_OFTEN`."""
        spec = self._spec
        return self.context.backend.follow(
            [spec.name], spec.predicate, interval=self.interval, recheck=self.interval if often else SELDOM
        )

    @functools.cached_property
    def _first(self) -> ObjectLimit | None:
        """What is asked for before the others; None if agents do not send less than all, or have another order."""
        name = self._spec.name
        order = order_of_agents(self._spec.sort_keys)
        if order is None or name == SESSION or not self.context.backend.sends_first(name):
            return None
        return ObjectLimit(FIRST_ROWS, order)

    def _without_own(self, records: Sequence[ObjectView]) -> Sequence[ObjectView]:
        """Leave out what agents and consoles create for themselves, unless everything is shown."""
        if self._everything or not may_be_own(self._spec.name):
            return records
        others, own = split_own(records, lambda: self.context.backend.objects([CONNECTION]).items)
        self._own.update(item.identity.key for item in own)
        return others

    def _select_changes(self, changes: ObjectChanges) -> ObjectChanges:
        changes = attrs.evolve(changes, records=self._without_own(changes.records))
        self._own.difference_update(item.key for item in changes.gone)
        return self._select_passing(changes)

    def _select_passing(self, changes: ObjectChanges) -> ObjectChanges:
        """What the condition lets through; what no longer passes has left."""
        test = self._spec.test
        if test is None:
            return changes
        records, gone = [], list(changes.gone)
        for item in changes.records:
            if test(item):
                records.append(item)
            elif (row := self.model.row(item.identity.key)) is not None and not row.mark.gone:
                gone.append(GoneObject(item.identity.key, ChangeKind.LEFT, time.time_ns()))
        return ObjectChanges(records, gone)

    # -- on the screen's thread

    def apply(self, news: object) -> None:
        assert isinstance(news, _News)
        self.now = news.at
        self._update += 1
        model = self.model
        changed = self._put(news.changes.records, new=self.loaded and not news.whole and self.complete)
        if news.whole:
            model.remove({row.key for row in model.rows} - changed)
        self._count_seen(changed, news)
        self.own_left_out = len(self._own)
        for item in news.changes.gone:
            row = model.row(item.key)
            if isinstance(row, ObjectRow) and row.item.identity.key not in changed:
                row.mark, row.since = Mark(item.kind.value), item.at
                self._marked[item.key] = self.now
                model.put((row,))
        self._forget_marks()
        still = {key: row for key, row in self._moving.items() if self.now - row.at <= 2 * max(row.step, 1.0) + 1}
        if self._columns is not None and (self._columns.sorts_by_rate(model.sort)):
            model.rerank(self._moving.values())
        self._moving = still
        self._set_columns()
        self.notes = tuple(PageNote(f"incomplete: {clean(text)}", bad=True) for text in news.failures[:1])
        if not self.complete:
            self.notes += (PageNote(self.progress),)
        self.loaded = True

    def _count_seen(self, received: Collection[ObjectKey], news: _News) -> None:
        """Note which of the first rows exist no longer, as is known when all objects have been received."""
        if not news.complete:
            self._unseen = set(received) if news.whole else self._unseen.difference(received)
        elif not self.complete:
            self.model.remove(() if news.whole else self._unseen.difference(received))
            self._unseen = set()
        self.complete = news.complete

    @property
    def progress(self) -> str:
        """How many objects are there while others are missing, in words."""
        there = f"{len(self.model):,}"
        of = f" of {self.expected:,}" if self.expected > len(self.model) else ""
        order = ", the first by value" if self._spec.by_rate else ""
        return f"{there}{of} objects{order}; the others are being fetched"

    def object_rows(self) -> list[ObjectRow]:
        """The rows that are shown, in order."""
        return [row for row in self.model.arranged_rows() if isinstance(row, ObjectRow)]

    def _put(self, records: Sequence[ObjectView], *, new: bool) -> set[ObjectKey]:
        rows: list[ObjectRow] = []
        fresh: list[ObjectView] = []
        for record in records:
            row = self.model.row(record.identity.key)
            if not isinstance(row, ObjectRow):
                fresh.append(record)
                continue
            if row.mark.gone:
                row.mark = Mark.NONE
                self._marked.pop(record.identity.key, None)
            # What is followed begins with the objects that were just listed, as they are.
            if not record.updated or record.updated != row.item.updated:
                self._moving[record.identity.key] = row
            row.change(record, self.now, self._update, asked=self._feed is None)
            rows.append(row)
        orders = {id(item): natural_key(item.identity.index) for item in fresh}
        fresh.sort(key=lambda item: (orders[id(item)], item.identity.key.agent_name, item.identity.key.broker))
        for record in fresh:
            identity = record.identity
            number = self.context.ids.assign(identity, record.created)
            search = f"{number} {identity.index} {identity.title} {identity.key.agent_name}".lower()
            order = (orders[id(record)], identity.key.agent_name, identity.key.broker)
            row = ObjectRow(key=identity.key, item=record, order=order, search=search, at=self.now)
            if new:
                row.mark, row.since = Mark.NEW, record.created
                self._marked[identity.key] = self.now
            agent = identity.key.agent_name, identity.key.broker
            self._alike |= self._agents.setdefault(identity.index, agent) != agent
            rows.append(row)
        self.model.put(rows)
        return {row.item.identity.key for row in rows}

    def _forget_marks(self) -> None:
        """Remove marks of new objects and rows of deleted ones after some time."""
        for key, at in list(self._marked.items()):
            row = self.model.row(key)
            age = self.now - at
            if row is None or row.mark is Mark.LEFT or (row.mark is Mark.DELETED and age > DELETED_FOR):
                self.model.remove((key,))
                del self._marked[key]
            elif row.mark is Mark.NEW and age > NEW_FOR:
                row.mark = Mark.NONE
                del self._marked[key]

    def clear_gone(self) -> None:
        super().clear_gone()
        self._marked = {key: at for key, at in self._marked.items() if self.model.row(key) is not None}

    def _set_columns(self) -> None:
        """Make the columns, when the objects or the state of a row need others."""
        model = self.model
        if self._columns is None:
            rows = [row.item for row in model.rows]
            if not rows and not self._schemas:
                return
            self._columns = self._first_columns(rows)
        if self._alike and self._columns.tell_agents():
            model.set_columns(self._columns.columns, [*model.shown, AGENT])
        marked = any(row.mark.gone for row in map(model.row, self._marked) if row is not None)
        if marked != (STATE in model.shown):
            model.shown = [*model.shown, STATE] if marked else [key for key in model.shown if key != STATE]

    def _first_columns(self, rows: Sequence[ObjectView]) -> ObjectColumns:
        """Make the columns for the first objects; shows those that were asked for, in their order."""
        model, spec = self.model, self._spec
        schemas = self._schemas or list({id(item.schema): item.schema for item in rows}.values())
        columns = ObjectColumns(self.context, schemas, self._present, all_integers=spec.all_integers, form=spec.form)
        try:
            wanted = list(spec.columns)
            if spec.more or not wanted:
                wanted += default_columns(self.context, spec.name, schemas, rows)
            if spec.asks and not wanted:
                wanted += ALL_COLUMNS[:1]
            shown = columns.default(wanted)
        except QmfError as error:
            shown = columns.default(important_statistics(schemas, (row.values for row in rows)))
            self.notes = (PageNote(str(error), bad=True),)
        model.set_columns(columns.columns, shown)
        self._sort(columns)
        return columns

    def _present(self) -> tuple[float, int]:
        return self.now, self._update

    def _sort(self, columns: ObjectColumns) -> None:
        """Sort as the user wants, by a column that is shown if there is one for the first value."""
        model, spec = self.model, self._spec
        further = list(spec.sort_keys)
        key = columns.key_of(further[0][0].name, rate=spec.by_rate) if further else None
        if key is not None:
            # By rate, those without one are ordered by their values.
            _, descending = further[0] if spec.by_rate else further.pop(0)
            if key not in model.shown and not spec.asks:
                model.set_columns(model.columns, [*model.shown, key])
            model.sort_by(key, descending=descending)
        model.further = [(functools.partial(_value_of, field), last) for field, last in further]

    def toggle_own(self) -> bool | None:
        if not may_be_own(self._spec.name):
            return None
        self._everything = not self._everything
        self._again = True
        return self._everything

    def open(self, row: Row) -> Page | object | None:
        assert isinstance(row, ObjectRow)
        return self._open_object(row.item)

    def test_of(self, text: str) -> RowTest:
        """See `Page.test_of`: a condition, as after `where`."""
        known = field_finder(self._schemas, self.context.ids, lambda row: row.item)

        def find(name: str) -> Field:
            return self._rate(name) or known(name)

        try:
            test = compile_filter(parse_condition(text.removeprefix("where ")), find, lambda row: row.search).test
        except QmfError as error:
            raise FilterError(str(error)) from None
        return test or super().test_of("")

    def _rate(self, name: str) -> Field | None:
        """The growth of a counter per second, if `name` means one."""
        counter = name[: -len(RATE_NAME)]
        if not name.lower().endswith(RATE_NAME):
            return None
        field = find_field(self._schemas, counter)
        if not (field.counter or (self._spec.all_integers and field.is_number)):
            raise FilterError(f"{clean(field.name)} is no counter: it has no rate")
        return Field(name=name, read=lambda row: row.rate(field, self.now), type=TYPES["double"])

    @property
    def summary(self) -> str:
        gone = sum(row is not None and row.mark.gone for row in map(self.model.row, self._marked))
        text = plural(len(self.model) - gone, "object")
        return f"{text}, {gone:,} gone" if gone else text

    def next_rates(self) -> str:
        if self._columns is None:
            return ""
        shown, text = self._columns.next_rates(self.model.shown)
        self.model.shown = shown
        return text

    def thresholds(self, key: str) -> Sequence[float]:
        try:
            field = find_field(self._schemas, key)
        except QmfError:
            return ()
        return limits_of(field, self._spec.name[1], self.context.settings.thresholds)

    def set_thresholds(self, key: str, limits: Sequence[float]) -> None:
        name = key.removesuffix(RATE)
        self.context.settings.thresholds[threshold_key(self._spec.name[1], name)] = tuple(limits)

    def columns_chosen(self) -> None:
        """See `Page.columns_chosen`: they are remembered for the class, in `list` as well."""
        if self._columns is not None:
            names = self._columns.names(self.model.shown_columns)
            if names:
                self.context.columns.choose(self._spec.name, tuple(names))

    def close(self) -> None:
        if self._feed is not None:
            self._feed.close()


def _value_of(field: ObjectField, row: Row) -> object:
    return field_value(row.item, field)
