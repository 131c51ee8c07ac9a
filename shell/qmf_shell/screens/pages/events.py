"""Events as they come, the latest first; and one event in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from qmf.errors import QmfError
from qmf.views.cells import Instant
from qmf.views.conditions import parse_condition
from qmf.views.event_filter import EventFilter
from qmf.views.events import EventView, LostEvents, severity_name
from qmf.views.formatting import Formatter
from qmf.views.objects import ObjectKey, ObjectView
from qmf.views.text import plural
from qmf_shell.objects.value_cells import argument_cells, event_summary
from qmf_shell.results.result import Role
from qmf_shell.screens.fixed import FixedPage, TextPage
from qmf_shell.screens.model import RowTest, TableModel
from qmf_shell.screens.rows import Row, ScreenColumn
from qmf_shell.screens.state import FilterError, Page
from qmf_shell.session.context import Context

#: Events that a page keeps at most.
KEPT = 10_000

EventTest = Callable[[EventView], bool]


def _event_columns(context: Context) -> list[ScreenColumn]:
    return [
        ScreenColumn(
            "time", "Time", lambda row: Instant(row.item.timestamp), lambda row: row.key, Role.TIME, fixed=True
        ),
        ScreenColumn(
            "severity",
            "Severity",
            lambda row: severity_name(row.item.severity),
            lambda row: row.item.severity,
            Role.SEVERITY,
            fixed=True,
        ),
        ScreenColumn("event", "Event", lambda row: row.item.short_name, role=Role.NAME),
        ScreenColumn(
            "arguments",
            "Arguments",
            lambda row: event_summary(context, row.item),
            lambda row: row.search,
            desc="values",
        ),
        ScreenColumn("agent", "Agent", lambda row: row.item.agent, role=Role.FAINT, spare=True),
        ScreenColumn("package", "Package", lambda row: row.item.package, role=Role.FAINT, spare=True),
        ScreenColumn("broker", "Broker", lambda row: row.item.broker, role=Role.FAINT, spare=True),
    ]


@attrs.frozen(eq=False)
class _News:
    """What `EventsPage.load` found: events, how many more are of agents and consoles, and whether these are all."""

    events: Sequence[EventView]
    left_out: int
    again: bool


class EventsPage(Page):
    """Events as they come."""

    empty = "No such events yet."
    at_once = True

    def __init__(
        self,
        context: Context,
        passes: EventTest,
        interval: float,
        open_key: Callable[[ObjectKey], Page | None],
        *,
        title: str = "events",
    ) -> None:
        """Make the page, without events; `passes`: True for the events that are wanted."""
        model = TableModel(
            _event_columns(context), {"time", "severity", "event", "arguments", "agent"}, sort="time", descending=True
        )
        super().__init__(context, title, model, interval)
        self._passes = passes
        self._everything = context.everything
        self._open_key = open_key
        self._seen = 0
        self._again = False
        self._number = 0
        self._lost: dict[int, int] = {}  # how many events did not arrive, by row
        self._text = Formatter(short=True).text

    def load(self) -> object:
        again, self._again = self._again, False
        items, self._seen = self.context.events.since(0 if again else self._seen)
        passing = [item for item in items if self._passes(item)]
        wanted = passing if self._everything else [item for item in passing if not item.is_own]
        return _News(wanted, len(passing) - len(wanted), again) if passing or again else None

    def apply(self, news: object) -> None:
        assert isinstance(news, _News)
        if news.again:
            self.model.remove([row.key for row in self.model.rows])
            self.own_left_out = 0
            self._lost = {}
        self.own_left_out += news.left_out
        rows = []
        for event in news.events:
            self._number += 1
            if isinstance(event, LostEvents):
                self._lost[self._number] = event.count
            arguments = self._text(event_summary(self.context, event)).lower()
            rows.append(Row(self._number, event, order=self._number, search=arguments))
        self.model.put(rows)
        last = self._number - KEPT
        self.model.remove(range(max(1, last - len(rows)), last + 1))
        self._lost = {number: count for number, count in self._lost.items() if number > last}
        self.loaded = True

    def test_of(self, text: str) -> RowTest:
        """See `Page.test_of`: a condition, as after `where`."""
        try:
            passes = EventFilter(condition=parse_condition(text.removeprefix("where "))).passes
        except QmfError as error:
            raise FilterError(str(error)) from None
        return lambda row: passes(row.item)

    def toggle_own(self) -> bool | None:
        self._everything = not self._everything
        self._again = True
        return self._everything

    def open(self, row: Row) -> Page | object | None:
        return EventPage(self.context, row.item, self._open_key)

    @property
    def summary(self) -> str:
        lost = sum(self._lost.values())
        events = plural(len(self.model) - len(self._lost), "event")
        return f"{events}, {lost:,} did not arrive" if lost else events


class EventPage(FixedPage):
    """One event in full."""

    chooses = False

    def __init__(self, context: Context, event: EventView, open_key: Callable[[ObjectKey], Page | None]) -> None:
        columns = (
            ScreenColumn("name", "Argument", lambda row: row.item[0], lambda row: row.order, Role.NAME, fixed=True),
            ScreenColumn("value", "Value", lambda row: row.item[1], lambda row: row.order),
            ScreenColumn(
                "meaning", "Meaning", lambda row: row.item[2] or None, lambda row: row.item[2], Role.FAINT, prose=True
            ),
        )
        schema = event.schema
        meanings = {item.name: " ".join((item.desc or "").split()) for item in schema.arguments} if schema else {}
        if isinstance(event, LostEvents):
            meanings["count"] = "events that did not arrive"
        cells = argument_cells(context, schema.arguments if schema else (), event.values)
        about = (
            ("time", Instant(event.timestamp), ""),
            ("severity", severity_name(event.severity), ""),
            ("event", event.name, " ".join((schema.desc or "").split()) if schema else ""),
            ("agent", event.agent, ""),
            ("broker", event.broker, ""),
        )
        entries = [*((name, cell, meanings.get(name, "")) for name, cell in cells.items()), *about]
        rows = [Row(number, entry, order=number, search=str(entry[0]).lower()) for number, entry in enumerate(entries)]
        super().__init__(context, event.short_name, columns, rows)
        self._event = event
        self._open_key = open_key

    def open(self, row: Row) -> Page | object | None:
        """The object that an argument refers to, or the whole text of a value."""
        name, cell, _ = row.item
        value = self._event.values.get(name)
        if isinstance(value, ObjectKey) and value.object_name:
            return self._open_key(value)
        return TextPage(self.context, name, Formatter().text(cell))


def event_test(records: Sequence[ObjectView]) -> EventTest:
    """The test for events about some objects."""
    known = [(item.identity.key, item.names) for item in records]
    return lambda event: any(event.is_about(key, names) for key, names in known)
