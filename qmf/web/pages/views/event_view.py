"""Events as rows, filtered by severity, class, condition and agent; and which events are about an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import attrs

from qmf.console.aio import ObjectId
from qmf.errors import QmfError
from qmf.views.conditions import parse_condition
from qmf.views.event_filter import EventFilter
from qmf.views.events import EventView, LostEvents, severity_name
from qmf.views.names import reference_text
from qmf.views.objects import ObjectView
from qmf.views.text import clean
from qmf.web.pages.live.event_log import LoggedEvent
from qmf.web.pages.views.data_rows import Cell, DataColumn, DataRow, Part
from qmf.web.pages.views.page_texts import instant_text, object_title, value_text
from qmf.web.pages.views.page_urls import EventsUrl, agent_url, object_url

#: Events that a page shows at most.
MOST_SHOWN = 300


EVENT_COLUMNS = (
    DataColumn("time", "Time"),
    DataColumn("severity", "Severity"),
    DataColumn("event", "Event"),
    DataColumn("arguments", "Arguments"),
    DataColumn("agent", "Agent"),
)


def event_row(logged: LoggedEvent) -> DataRow:
    """An event as a row; its key is the number of the event in the log."""
    event = logged.event
    severity = severity_name(event.severity)
    return DataRow(
        str(logged.number),
        (
            Cell(instant_text(event.timestamp), kind="dim nowrap"),
            Cell(severity, kind=severity),
            Cell(clean(event.short_name), kind="strong"),
            Cell(str(event), whole=True) if isinstance(event, LostEvents) else Cell(parts=tuple(_arguments(event))),
            Cell(clean(event.agent), agent_url(event.agent), "dim"),
        ),
    )


def _arguments(event: EventView) -> Iterator[Part]:
    if event.object_id is not None:
        yield Part("object", reference_text(event.object_id), object_url(event.object_id))
    known = {item.name: item for item in event.schema.arguments} if event.schema else {}
    for name, value in event.values.items():
        if value in (None, "", {}, []):
            continue
        item = known.get(name)
        if isinstance(value, ObjectId):
            if value.object_name:
                yield Part(clean(name), reference_text(value), object_url(value))
            continue
        text = value_text(item.type if item else None, value, item.unit if item else None, measured=True)
        yield Part(clean(name), text)


def event_filter(url: EventsUrl) -> tuple[EventFilter, str]:
    """The filter of an address, and why its text is no condition; empty if it is one. Then it hides nothing."""
    classes = [f"*{name}*" for name in url.classes.replace(",", " ").split()]
    wanted = EventFilter(severity=url.severity, classes=classes, agent=url.agent)
    try:
        return attrs.evolve(wanted, condition=parse_condition(url.text)), ""
    except QmfError as error:
        return wanted, str(error)


def event_rows(events: Iterable[LoggedEvent], url: EventsUrl, most: int = MOST_SHOWN) -> list[DataRow]:
    """Those of the events that an address asks for, in the order given, `most` of them at most."""
    passes = event_filter(url)[0].passes
    wanted = (item for item in events if passes(item.event) and (url.own or not item.event.is_own))
    return [event_row(item) for item in islice(wanted, most)]


def events_about(events: Iterable[LoggedEvent], obj: ObjectView, most: int) -> list[DataRow]:
    """Those of the events that are about an object, `most` of them at most."""
    key, names = obj.identity.key, {*obj.names, object_title(obj)}
    return [event_row(item) for item in islice((item for item in events if item.event.is_about(key, names)), most)]
