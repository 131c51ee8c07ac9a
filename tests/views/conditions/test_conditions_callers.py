"""The shell, the web console and REST find the same objects and events by the same text, and refuse the same."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from qmf_shell.commands import standard
from qmf_shell.objects.filtering import object_filter
from qmf_shell.session.context import Context
from qmf_shell.session.short_ids import ShortIds
from shell.fakes import FakeBackend
from shell.looked import Looked
from support.waiting import until
from web.pages.world import world

from qmf.console.aio import EventRaised, RemoteEvent
from qmf.errors import CallerError
from qmf.protocol import matches
from qmf.views.conditions import parse_condition
from qmf.views.event_filter import EventFilter
from qmf.views.events import event_view
from qmf.views.objects import ObjectView, object_view
from qmf.web.management.event_routes import event_filter as event_selection
from qmf.web.pages.views.event_view import event_filter, event_rows
from qmf.web.pages.views.object_table import ClassTable
from qmf.web.pages.views.page_urls import EventsUrl, ObjectsUrl

CLASS = "org.example.store", "shelf"
#: The numbers of the shelves that each text finds; None if it is refused.
ANSWERS: dict[str, list[int] | None] = {
    "": [0, 1, 2],
    "a/1": [1],
    "A/1": [1],
    "orders": [],
    "-a/1": [0, 2],
    "a/1 open": [],
    "sold": [],
    "open": [],
    "sold>5 or sold=0": [0, 1, 2],
    "not open=yes": [0, 1, 2],
    "(a/1 or a/2) sold>15": [2],
    "sold > 5": [1, 2],
    "sold==10": [1],
    "sold~1": [1],
    "sold>1.5": [1, 2],
    "sold<0xB": [0, 1],
    "sold<1e1": [0],
    "limit>1Ki": [0, 1, 2],
    "limit>1ki": [0, 1, 2],
    "limit=9223372036854775809": [1],
    "'sold>5'": [],
    "name=A/1": [1],
    "name==A/1": [],
    "name==a/1": [1],
    "name<a/1": [0],
    "label!=x": [0, 1, 2],
    "label!~x": [0, 1, 2],
    "has label": [],
    "has sold": [1, 2],
    "storeRef=main": [0, 1, 2],
    "storeRef=store:MAIN": [0, 1, 2],
    "storeRef==main": [],
    "open=no": [0, 1, 2],
    "built>2020-01-01": [0, 1, 2],
    "built>5m": [],
    "updated>5m": [0, 1, 2],
    "class=shelf": [0, 1, 2],
    "agent~store:1$": [0, 1, 2],
    "broker~nowhere": [],
    "index=A/2": [2],
    "waiting>5": [],
    "open=maybe": None,
    "sold>1%": None,
    "sold>x": None,
    "storeRef>x": None,
    "nothing=5": None,
    "has nothing": None,
    "name~[": None,
    "'sold' > 5": None,
    "sold>": None,
    "or": None,
    "(a": None,
    "'a": None,
}


async def _web(table: ClassTable, text: str) -> list[str] | None:
    page = await table.page(ObjectsUrl(*CLASS, filter=text))
    return None if page.problem else [row.cells[0].text for row in page.rows]


def _shell(records: Sequence[ObjectView], text: str) -> list[str] | None:
    try:
        found = object_filter(parse_condition(text), [records[0].schema], ShortIds())
    except CallerError:
        return None
    answered = [item for item in records if matches(found.predicate, item.values)]
    return [item.identity.index for item in answered if found.test is None or found.test(item)]


async def test_the_same_text_means_the_same() -> None:
    wanted = {text: None if found is None else [f"a/{at}" for at in found] for text, found in ANSWERS.items()}
    async with world(shelves=3) as opened:
        objects, _ = opened.site.follow_class(*CLASS)
        await until(lambda: len(objects) == 3 and objects.complete)
        table = ClassTable(opened.site, objects, *CLASS)
        records = sorted(map(object_view, objects), key=lambda item: item.identity.index)
        assert {text: await _web(table, text) for text in ANSWERS} == wanted
        assert {text: _shell(records, text) for text in ANSWERS} == wanted


#: The events that each text finds; None if it is refused.
EVENTS: dict[str, list[str] | None] = {
    "": ["sale", "broken"],
    "SALE": ["sale"],
    "a/1": ["sale"],
    "store:1": ["sale", "broken"],
    "error": ["broken"],
    "count=3 a/1": ["sale"],
    "count>3": [],
    "shelf~^a": ["sale", "broken"],
    "severity>=warn": ["broken"],
    "class=org.example.store:sale or severity=error": ["sale", "broken"],
    "-sale": ["broken"],
    "count": [],
    "has count": ["sale"],
    "count=": None,
    "shelf~[": None,
}


async def test_the_same_text_finds_the_same_events() -> None:
    context = Context(FakeBackend([]), standard())

    def on_page(url: EventsUrl) -> list[str] | None:
        rows = event_rows(opened.site.events.since(0), url)
        return None if event_filter(url)[1] else [row.cells[2].text for row in rows]

    def on_screen(text: str) -> list[str] | None:
        try:
            test = looked.navigator.page.test_of(text)
        except CallerError:
            return None
        return [
            row.item.short_name for row in sorted(looked.navigator.page.model.rows, key=attrgetter("key")) if test(row)
        ]

    def after_where(text: str) -> list[str] | None:
        try:
            wanted = EventFilter(condition=parse_condition(text))
        except CallerError:
            return None
        return [event.short_name for event in context.events.recent() if wanted.passes(event)]

    async with world(shelves=3) as opened:
        seen: list[RemoteEvent] = []
        opened.client.listen(lambda item: seen.append(item.event) if isinstance(item, EventRaised) else None)
        opened.agent.raise_event("sale", shelf="a/1", count=3)
        opened.agent.raise_event("broken", shelf="a/2")
        await opened.agent.publish()
        await until(lambda: opened.site.events.total == 2)
        for event in seen:
            context.events.add(event_view(event))
        looked = Looked(context, "events -f")
        assert {text: on_page(EventsUrl(text=text)) for text in EVENTS} == EVENTS
        assert {text: on_screen(text) for text in EVENTS} == EVENTS
        assert {text: after_where(text) for text in EVENTS} == EVENTS


def test_streams_look_where_the_others_do() -> None:
    event = {"package": "org.example.store", "class": "sale", "agent": "shop", "severity": "notice"}
    data = {**event, "arguments": {"shelf": "a/1", "count": 3}}

    def passes(**query: str) -> bool:
        return event_selection(**query)(data)

    assert all(passes(text=text) for text in ("SALE", "a/1", "shop", "notice", "example.store"))
    assert not any(passes(text=text) for text in ("count", "a/1 sale", "shelf=a/1"))
    assert passes(name="S*", package="org.example.store", agent="shop", severity="warning") is False
    assert passes(name="S*", package="org.example.store", agent="shop", severity="info")
    assert not passes(agent="sho")
    assert not passes(package="org.example")
    assert not passes(name="example*")
