"""A page of the table of a class: its rows and columns as values for the browser."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.console.aio import ObjectId, RemoteObject
from qmf.errors import NotFoundError
from qmf.schema import TYPES, ClassSchema
from qmf.views.conditions import ConditionError, Field, Test, compile_filter, parse_condition
from qmf.views.fields import COMMON_FIELDS, find_field
from qmf.views.names import reference_text
from qmf.views.objects import ObjectView, object_view
from qmf.views.text import clean
from qmf.views.units import rate_text
from qmf.web.own_objects import OwnObjects
from qmf.web.pages.live.followed import LiveObjects, remote_object
from qmf.web.pages.live.shared_state import SharedState
from qmf.web.pages.views.data_rows import Cell, DataColumn, DataRow, cut, page_of
from qmf.web.pages.views.first_rows import FirstPages
from qmf.web.pages.views.object_order import ObjectOrder, OrderSpec
from qmf.web.pages.views.page_columns import PageColumn, chosen_columns, columns_of, default_columns
from qmf.web.pages.views.page_texts import ABSENT, heard_text, value_text
from qmf.web.pages.views.page_urls import ObjectsUrl, agent_url, object_url


def object_test(
    text: str,
    schemas: Sequence[ClassSchema],
    columns: Mapping[str, PageColumn],
    objects: LiveObjects,
    broker: str,
    search_text: Callable[[ObjectView], str],
) -> Test | None:
    """The test for a condition on objects of a class; None if all pass.

    Args:
        text: the condition.
        columns: what can be compared, by name.
        objects: measure the rates.
        broker: the broker's URL.
        search_text: the text of an object that words are searched for in.

    Raises:
        ConditionError: it cannot be understood.
        NotFoundError: it compares what the class does not have.
    """
    own = schemas[0].name if schemas else "object"
    known = {name.lower(): column for name, column in columns.items()}
    everywhere = {"class": own, "broker": broker}

    def find(name: str) -> Field:
        field = find_field(schemas, name)
        column = known.get(name.lower()) or (None if field is None else columns.get(field.name))
        if column is not None:
            return _field(column, objects)
        if field is None:
            raise NotFoundError(f"value of {clean(own)}", clean(name), [*columns, *everywhere])
        value = everywhere[field.name]
        return Field(name=field.name, read=lambda _: value, type=field.type)

    return compile_filter(parse_condition(text), find, search_text).test


def _field(column: PageColumn, objects: LiveObjects) -> Field:
    if column.rate:
        objects.track_rate(column.rate)

        def rate(obj: ObjectView) -> float | None:
            return objects.rate(column.rate, remote_object(obj).object_id)

        return Field(name=column.name, read=rate, type=TYPES["double"])

    def read(obj: ObjectView) -> object:
        value = column.read(obj)
        # A reference to nothing has an empty name.
        return None if isinstance(value, ObjectId) and not value.object_name else value

    return Field(name=column.name, read=read, type=column.field.type, unit=column.field.unit)


#: Orders of one class that are kept for the browsers that look at it.
MOST_ORDERS = 20


@attrs.frozen
class ObjectTableRow(DataRow):
    """The row of an object; its key is the object's id as text, which is unique."""

    object_id: ObjectId = attrs.field(kw_only=True)


@attrs.frozen
class TablePage:
    """A page of a table.

    Attributes:
        columns, rows: what is shown.
        total: objects that pass the condition.
        page, pages: which page it is, and how many there are, from 1.
        all_objects: objects of the class.
        own: objects of agents and consoles that are left out.
        complete: False while objects are still being fetched.
        agents: the agents that have objects of the class.
        problem: why the condition cannot be applied; empty if it can.
        failures: what agents did not answer, in words.
    """

    columns: tuple[DataColumn, ...] = ()
    rows: tuple[ObjectTableRow, ...] = ()
    total: int = 0
    page: int = 1
    pages: int = 1
    all_objects: int = 0
    own: int = 0
    complete: bool = False
    problem: str = ""
    agents: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


class ClassTable:
    """Makes pages of the table of one class, for all browsers."""

    def __init__(self, site: SharedState, objects: LiveObjects, package: str, name: str) -> None:
        self.objects = objects
        """The objects of the class."""
        self._site = site
        self._objects = objects
        self._name = package, name
        self._orders: dict[OrderSpec, ObjectOrder] = {}
        self._default: list[PageColumn] = []
        self._default_of = -1
        self._own = OwnObjects(site.connection_object)
        self._first = FirstPages(site, self._own.is_own)
        self._agents_of = -1
        self._known_agents: tuple[str, ...] = ()

    def take_first(self, first: FirstPages) -> None:
        """The first rows are asked for already."""
        self._first = first

    async def first_page(self, url: ObjectsUrl) -> TablePage | None:
        """The page that an address names while objects are being fetched; None when they are there, and if agents were
        not asked for it."""
        if self._objects.complete:
            self._first.close()
            return None
        first = await self._first.get(url)
        if not first.objects or self._objects.complete:
            return None
        shown = self.shown_columns(url, first.objects)
        now = time.time()
        total = first.total or len(first.objects)
        return TablePage(
            tuple(map(_heading, shown)),
            tuple(self._row(obj.object_id, object_view(obj), shown, now) for obj in first.objects),
            total=total,
            page=url.page,
            pages=max(url.page, -(-total // url.size)),
            all_objects=total,
            agents=tuple(sorted({obj.agent for obj in first.objects})),
            failures=self._failures(),
        )

    @property
    def columns(self) -> dict[str, PageColumn]:
        """Every column that can be chosen."""
        return columns_of(self._site.catalogue.versions(*self._name))

    def shown_columns(self, url: ObjectsUrl, first: Sequence[RemoteObject] = ()) -> list[PageColumn]:
        """The columns that an address names, or those that matter, in the first objects if only these are there."""
        columns = self.columns
        if url.columns:
            return chosen_columns(columns, url.columns)
        # Chosen once when the objects are there: columns shall not move while somebody reads them.
        if self._default_of < 0 or len(self._default) < 2:
            objects = first or list(self._objects)[:500]
            self._default = default_columns(columns, self._site.catalogue.versions(*self._name), objects)
            if objects and not first and self._objects.complete:
                self._default_of = len(objects)
        return self._default

    async def page(self, url: ObjectsUrl) -> TablePage:
        """The page that an address names; the last one if there are fewer."""
        columns = self.columns
        shown = self.shown_columns(url)
        sort = columns.get(url.sort) or columns["index"]
        for column in (*shown, sort):
            if column.rate:
                counter = columns.get(column.rate)
                self._objects.track_rate(column.rate, None if counter is None else counter.field.type)
        problem = ""
        try:
            order = self._order(url, columns, shown, sort)
        except (ConditionError, NotFoundError) as error:
            problem = str(error)
            order = self._order(attrs.evolve(url, filter=""), columns, shown, sort)
        await order.refresh()
        page = page_of(order.ids, url.page, url.size)
        now = time.time()
        rows = [self._row(item, view, shown, now) for item in page.items if (view := self._objects.view(item))]
        return TablePage(
            tuple(map(_heading, shown)),
            tuple(rows),
            len(order.ids),
            page.number,
            page.pages,
            len(self._objects),
            order.own_left_out,
            self._objects.complete,
            problem,
            self._agents(),
            self._failures(),
        )

    def _failures(self) -> tuple[str, ...]:
        if not self._site.connection.connected:
            return ()  # they all say what the bar says
        return tuple(clean(f"{agent}: {error}") for agent, error in self._objects.failures.items())

    def _agents(self) -> tuple[str, ...]:
        """The agents that have objects of the class, found again only when objects came or went."""
        if self._agents_of != self._objects.membership:
            self._agents_of = self._objects.membership
            self._known_agents = tuple(sorted({obj.agent for obj in self._objects}))
        return self._known_agents

    def _order(
        self, url: ObjectsUrl, columns: dict[str, PageColumn], shown: Sequence[PageColumn], sort: PageColumn
    ) -> ObjectOrder:
        searched = tuple(column.name for column in shown if not column.is_number) if url.filter.strip() else ()
        spec = OrderSpec(url.filter.strip(), sort.name, url.descending, url.agent, url.own, searched)
        found = self._orders.get(spec)
        if found is None:

            def search_text(obj: ObjectView) -> str:
                return "\n".join(value_text(item.field.type, item.read(obj)) for item in shown if item.name in searched)

            schemas = self._site.catalogue.versions(*self._name)
            test = object_test(spec.filter, schemas, columns, self._objects, self._site.client.url, search_text)
            found = self._orders[spec] = ObjectOrder(self._objects, spec, sort, test, self._own.is_own)
            if len(self._orders) > MOST_ORDERS:
                del self._orders[min(self._orders, key=lambda item: self._orders[item].used)]
        return found

    def _row(self, object_id: ObjectId, obj: ObjectView, columns: Sequence[PageColumn], now: float) -> ObjectTableRow:
        agent = object_id.agent_name or ""
        key = f"{agent}|{object_id.object_name}|{object_id.agent_epoch}"
        cells = tuple(self._cell(obj, object_id, column, now) for column in columns)
        return ObjectTableRow(key, cells, object_id=object_id)

    def _cell(self, obj: ObjectView, object_id: ObjectId, column: PageColumn, now: float) -> Cell:
        if column.rate:
            rate = self._objects.rate(column.rate, object_id)
            return Cell(ABSENT if rate is None else rate_text(rate, column.field.unit).removeprefix("+"))
        value = column.read(obj)
        if column.name == "index":
            return Cell(str(value), object_url(object_id))
        if column.field is COMMON_FIELDS["agent"]:
            agent = str(value)
            return Cell(clean(agent), agent_url(agent))
        if column.field is COMMON_FIELDS["updated"]:
            stale = not self._site.connection.connected
            text = heard_text(now - value / 1e9, stale=stale) if isinstance(value, int) else ABSENT
            return Cell(text, kind="stale nowrap" if stale else "dim nowrap", quiet=True)
        if isinstance(value, ObjectId):
            return Cell(reference_text(value), object_url(value)) if value.object_name else Cell(ABSENT)
        field = column.field
        text = value_text(field.type, value, field.unit, measured=field.statistic, brief=True)
        return Cell(text, kind=column.marks.get(text, ""))


def place_text(row: ObjectTableRow) -> str:
    """An object with its agent, to be chosen from a list."""
    return f"{cut(row.cells[0].text)} at {cut(clean(row.object_id.agent_name or ''))}"


def _heading(column: PageColumn) -> DataColumn:
    return DataColumn(column.name, column.title, column.unit_text, column.desc, column.is_number)


class ClassTables:
    """The tables of all classes that are looked at, shared by all browsers."""

    def __init__(self, site: SharedState) -> None:
        self._site = site
        self._tables: dict[tuple[str, str], ClassTable] = {}

    def of(self, package: str, name: str, objects: LiveObjects) -> ClassTable:
        """The table of a class whose objects these are."""
        self._tables = {
            key: item for key, item in self._tables.items() if item.objects is self._site.followed_class(*key)
        }
        found = self._tables.get((package, name))
        if found is None or found.objects is not objects:
            found = self._tables[package, name] = ClassTable(self._site, objects, package, name)
        return found
