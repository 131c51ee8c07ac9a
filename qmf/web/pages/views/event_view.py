"""Events as rows, filtered by severity, class, text and agent; and which events are about an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import attrs

from qmf.console.aio import ObjectId, RemoteEvent, RemoteObject
from qmf.views.events import is_severe, severity_name
from qmf.views.names import reference_text, title_text
from qmf.views.text import clean
from qmf.web.own_objects import is_own_event
from qmf.web.pages.live.event_log import LoggedEvent
from qmf.web.pages.views.page_urls import EventsUrl, agent_url, object_url
from qmf.web.pages.views.value_texts import instant_text, object_index, value_text

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
    key = event.class_key
    return EventRow(
        logged.number,
        instant_text(event.timestamp),
        severity_name(event.severity),
        clean(key.name) if key else "event",
        clean(key.package) if key else "",
        clean(event.agent.name),
        agent_url(event.agent.name),
        tuple(_arguments(event)),
        clean(event.schema.desc or "") if event.schema else "",
    )


def _arguments(event: RemoteEvent) -> Iterator[EventArgument]:
    if event.object_id is not None:
        yield EventArgument("object", reference_text(event.object_id), object_url(event.object_id))
    known = {item.name: item for item in event.schema.arguments} if event.schema else {}
    for name, value in event.arguments.items():
        if value in (None, "", {}, []):
            continue
        item = known.get(name)
        if isinstance(value, ObjectId):
            if value.object_name:
                yield EventArgument(clean(name), reference_text(value), object_url(value))
            continue
        text = value_text(item.type if item else None, value, item.unit if item else None, measured=True)
        yield EventArgument(clean(name), text)


def passes(event: RemoteEvent, url: EventsUrl) -> bool:
    """True if an event is one of those that an address asks for."""
    if not is_severe(event.severity, url.severity):
        return False
    key = event.class_key
    name = f"{key.package}:{key.name}".lower() if key else "event"
    wanted = url.classes.lower().replace(",", " ").split()
    if wanted and not any(item in name for item in wanted):
        return False
    if url.agent.lower() not in event.agent.name.lower():
        return False
    if not url.own and is_own_event(event):
        return False
    words = url.text.lower().split()
    if not words:
        return True
    text = " ".join(
        [name, severity_name(event.severity), *(f"{key}={value}" for key, value in event.arguments.items())]
    ).lower()
    return all(word in text for word in words)


def event_rows(events: Iterable[LoggedEvent], url: EventsUrl, most: int = MOST_SHOWN) -> list[EventRow]:
    """Those of the events that an address asks for, in the order given, `most` of them at most."""
    return [event_row(item) for item in islice((item for item in events if passes(item.event, url)), most)]


def is_about(event: RemoteEvent, obj: RemoteObject) -> bool:
    """True if an event is about an object: it names it, an argument refers to it, or is its index or name."""
    object_id = obj.object_id
    if event.object_id is not None and _same(event.object_id, object_id):
        return True
    names = {object_index(obj), object_id.object_name}
    if obj.schema is not None:
        names.add(title_text(obj.schema, obj.data.values))
    names.discard("")
    for value in event.arguments.values():
        if isinstance(value, ObjectId):
            if _same(value, object_id):
                return True
        elif isinstance(value, str) and value in names:
            return True
    return False


def _same(one: ObjectId, other: ObjectId) -> bool:
    return one.object_name == other.object_name and one.agent_name in (None, other.agent_name)


def events_about(events: Iterable[LoggedEvent], obj: RemoteObject, most: int) -> list[EventRow]:
    """Those of the events that are about an object, `most` of them at most."""
    return [event_row(item) for item in islice((item for item in events if is_about(item.event, obj)), most)]
