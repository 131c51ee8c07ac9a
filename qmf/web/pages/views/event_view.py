"""Events as rows, filtered by severity, class, condition and agent; and which events are about an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import attrs

from qmf.console.aio import ObjectId
from qmf.errors import QmfError
from qmf.views.conditions import parse_condition
from qmf.views.event_filter import EventFilter
from qmf.views.events import EventView, severity_name
from qmf.views.names import reference_text
from qmf.views.objects import ObjectView
from qmf.views.text import clean
from qmf.web.pages.live.event_log import LoggedEvent
from qmf.web.pages.views.page_urls import EventsUrl, agent_url, object_url
from qmf.web.pages.views.value_texts import instant_text, object_title, value_text

#: Events that a page shows at most.
MOST_SHOWN = 300


@attrs.frozen
class EventArgument:
    """An argument of an event: its name, its text, and the page of the object that it refers to, or empty."""

    name: str
    text: str
    href: str = ""


@attrs.frozen
class EventRow:
    """An event.

    Attributes:
        number: its number in the log.
        time, severity, name, package, agent: what is shown.
        agent_href: the page of the agent.
        arguments: those that say something.
        desc: description of its class, or empty.
    """

    number: int
    time: str
    severity: str
    name: str
    package: str
    agent: str
    agent_href: str
    arguments: tuple[EventArgument, ...]
    desc: str


def event_row(logged: LoggedEvent) -> EventRow:
    """An event as a row."""
    event = logged.event
    return EventRow(
        logged.number,
        instant_text(event.timestamp),
        severity_name(event.severity),
        clean(event.short_name),
        clean(event.package),
        clean(event.agent),
        agent_url(event.agent),
        tuple(_arguments(event)),
        clean(event.schema.desc or "") if event.schema else "",
    )


def _arguments(event: EventView) -> Iterator[EventArgument]:
    if event.object_id is not None:
        yield EventArgument("object", reference_text(event.object_id), object_url(event.object_id))
    known = {item.name: item for item in event.schema.arguments} if event.schema else {}
    for name, value in event.values.items():
        if value in (None, "", {}, []):
            continue
        item = known.get(name)
        if isinstance(value, ObjectId):
            if value.object_name:
                yield EventArgument(clean(name), reference_text(value), object_url(value))
            continue
        text = value_text(item.type if item else None, value, item.unit if item else None, measured=True)
        yield EventArgument(clean(name), text)


def event_filter(url: EventsUrl) -> tuple[EventFilter, str]:
    """The filter of an address, and why its text is no condition; empty if it is one. Then it hides nothing."""
    classes = [f"*{name}*" for name in url.classes.replace(",", " ").split()]
    wanted = EventFilter(severity=url.severity, classes=classes, agent=url.agent)
    try:
        return attrs.evolve(wanted, condition=parse_condition(url.text)), ""
    except QmfError as error:
        return wanted, str(error)


def event_rows(events: Iterable[LoggedEvent], url: EventsUrl, most: int = MOST_SHOWN) -> list[EventRow]:
    """Those of the events that an address asks for, in the order given, `most` of them at most."""
    passes = event_filter(url)[0].passes
    wanted = (item for item in events if passes(item.event) and (url.own or not item.event.is_own))
    return [event_row(item) for item in islice(wanted, most)]


def events_about(events: Iterable[LoggedEvent], obj: ObjectView, most: int) -> list[EventRow]:
    """Those of the events that are about an object, `most` of them at most."""
    key, names = obj.identity.key, {*obj.names, object_title(obj)}
    return [event_row(item) for item in islice((item for item in events if item.event.is_about(key, names)), most)]
