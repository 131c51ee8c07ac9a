"""The page of an object: values that change as they change, references both ways, its events, its methods."""

from __future__ import annotations

import asyncio
import html
import time

from nicegui import ui

from qmf.console.aio import ObjectId
from qmf.schema import Access
from qmf.views.objects import ObjectView
from qmf.views.text import clean, one_line, plural
from qmf.web.access.rules import SET_PROPERTIES
from qmf.web.pages.live.followed import LiveObjects
from qmf.web.pages.live.series import TooManySeriesError
from qmf.web.pages.screens.data_table import DataTable
from qmf.web.pages.screens.method_dialog import open_method_dialog, open_properties_dialog
from qmf.web.pages.screens.open_page import OpenPage, cut_html, show_text
from qmf.web.pages.views.data_rows import Cell, DataColumn, DataRow, cut
from qmf.web.pages.views.event_view import EVENT_COLUMNS, events_about
from qmf.web.pages.views.method_effects import is_dangerous
from qmf.web.pages.views.object_view import (
    PROPERTY_COLUMNS,
    STATISTIC_COLUMNS,
    property_rows,
    recorded_names,
    statistic_rows,
)
from qmf.web.pages.views.page_texts import ago_text, class_title, instant_text, object_title
from qmf.web.pages.views.page_urls import GraphUrl, PlotsUrl, PlottedValue, agent_url, class_url, object_url

#: Objects that refer to this one, and its events, that are shown.
MOST_REFERRERS = 100
MOST_EVENTS = 20
#: Seconds between two searches for objects that refer to this one.
REFERENCE_PAUSE = 10.0

_REFERENCE_COLUMNS = (
    DataColumn("object", "Object"),
    DataColumn("class", "Class"),
    DataColumn("property", "By its property"),
)
#: How the values of objects come here; they are asked for otherwise.
_SOURCES = {"subscription": "published to this console", "indications": "published by its agent"}


async def object_screen(visit: OpenPage, object_id: ObjectId) -> None:
    """Build the page."""
    objects = visit.follow_object(object_id)
    await visit.until(lambda: bool(len(objects)) or objects.complete)
    obj = objects.current
    title = f"{class_title(obj)} {object_title(obj)}" if obj is not None else clean(object_id.object_name)
    with visit.page(title, heading=False):
        head = ui.html("", sanitize=False)
        body = ui.element("div")
    built = False

    async def update() -> None:
        nonlocal built
        found = objects.current
        head.set_content(_head(visit, objects, object_id, found))
        if found is None:
            return
        if not built:
            built = True
            with body:
                page.build(found)
        await page.update(found)

    page = _ObjectPage(visit)
    visit.on_update(update)
    await update()


class _ObjectPage:
    """The parts of the page that exist once the object is known."""

    def __init__(self, visit: OpenPage) -> None:
        self._visit = visit
        self._finder = visit.references()
        self._next_search = 0.0
        self._events_seen = -1
        self._obj: ObjectView | None = None

    def build(self, obj: ObjectView) -> None:
        visit = self._visit
        self._obj = obj
        try:
            visit.record([(obj.identity.key.object_id, name) for name in recorded_names(obj.schema)])
        except TooManySeriesError as error:
            ui.label(str(error)).classes("qmf-problem")
        self._methods(obj)
        ui.html("<h2>Properties</h2>", sanitize=False)
        self._properties = DataTable("Properties", PROPERTY_COLUMNS, marked=True, empty="It has no properties.")
        if obj.schema.statistics:
            ui.html("<h2>Statistics</h2>", sanitize=False)
        self._statistics = DataTable("Statistics", STATISTIC_COLUMNS, marked=True, on_act=self._plot)
        self._statistics.set_visibility(bool(obj.schema.statistics))
        self._referrers_title = ui.html("<h2>Referred to by</h2>", sanitize=False)
        self._referrers = DataTable("Referred to by", _REFERENCE_COLUMNS, empty="Nothing refers to it.")
        self._more = ui.label().classes("qmf-note")
        self._more.set_visibility(False)
        ui.html("<h2>Its events</h2>", sanitize=False)
        self._events = DataTable("Its events", EVENT_COLUMNS, empty="None of the events received so far is about it.")

    def _methods(self, obj: ObjectView) -> None:
        visit, methods = self._visit, obj.schema.methods
        settable = any(item.access is Access.RW for item in obj.schema.properties)
        if not methods and not settable:
            return
        with ui.element("div").classes("qmf-methods").props('role="group" aria-label="Methods"'):
            for method in methods:
                button = ui.button(
                    clean(method.name), on_click=lambda method=method: open_method_dialog(visit, self._object(), method)
                )
                button.props("outline dense no-caps").set_enabled(visit.may_call(obj, method.name))
                if is_dangerous(method):
                    button.props("color=negative icon=warning")
                if method.desc:
                    button.tooltip(one_line(method.desc))
            if settable:
                setter = ui.button("Set properties", on_click=lambda: open_properties_dialog(visit, self._object()))
                setter.props("outline dense no-caps icon=edit").set_enabled(visit.may_call(obj, SET_PROPERTIES))

    def _object(self) -> ObjectView:
        assert self._obj is not None
        return self._obj

    async def update(self, obj: ObjectView) -> None:
        self._obj = obj
        site = self._visit.site
        self._properties.show(property_rows(obj))
        self._statistics.show(statistic_rows(obj, site.series, connected=site.connection.connected))
        if self._events_seen != site.events.total:
            self._events_seen = site.events.total
            found = events_about(site.events.newest_first(), obj, MOST_EVENTS)
            self._events.show(found)
        if time.monotonic() >= self._next_search:
            await self._search(obj)

    async def _search(self, obj: ObjectView) -> None:
        start = time.monotonic()
        self._next_search = start + REFERENCE_PAUSE
        found = await self._finder.to(obj)
        if not self._finder.complete:
            await asyncio.sleep(0.1)
            self._next_search = 0.0
        self._referrers.show(
            [
                DataRow(
                    f"{item.object.identity.key.object_name} {item.name}",
                    (
                        Cell(object_title(item.object), object_url(item.object.identity.key), "strong"),
                        Cell(class_title(item.object), kind="dim"),
                        Cell(clean(item.name), kind="dim"),
                    ),
                )
                for item in found[:MOST_REFERRERS]
            ],
            busy=not self._finder.complete,
            empty="Nothing refers to it." if self._finder.complete else "Looking…",
        )
        left = len(found) - MOST_REFERRERS
        show_text(self._more, f"{plural(left, 'more object')} not shown." if left > 0 else "")

    @staticmethod
    def _plot(text: str) -> None:
        value = PlottedValue.parse(text)
        if value is not None:
            ui.navigate.to(str(PlotsUrl((value,))))


def _head(visit: OpenPage, objects: LiveObjects, object_id: ObjectId, obj: ObjectView | None) -> str:
    """The beginning of the page, as HTML: what the object is and how current it is shown, or why it is not shown."""
    if obj is None:
        return _absence(visit, objects, object_id)
    key, own = obj.identity.class_key, obj.identity.key
    where = f'<a href="{class_url(key.package, key.name)}">{html.escape(clean(key.package))}</a>' if key.name else ""
    desc = html.escape(one_line(obj.schema.desc or ""))
    facts = [
        f"agent {_agent_link(own.agent_name)}",
        f"created {instant_text(obj.created)}" if obj.created else "",
        *_currency(visit, objects, obj),
        f'<a href="{html.escape(str(GraphUrl(own.object_id)))}">graph</a>',
    ]
    return (
        f"<h1>{html.escape(class_title(obj))} {cut_html(object_title(obj))}</h1>"
        f'<p class="qmf-desc">{" · ".join(filter(None, (desc, where)))}</p>'
        f'<p class="qmf-note">{" · ".join(filter(None, facts))}</p>{"" if len(objects) else _loss(obj)}'
    )


def _absence(visit: OpenPage, objects: LiveObjects, object_id: ObjectId) -> str:
    """The beginning of the page where the object is not known: why."""
    failures = "; ".join(clean(f"{at}: {error}") for at, error in objects.failures.items())
    if not objects.complete:
        reason = "The object is being fetched"
    elif visit.site.agents.get(object_id.agent_name or "") is None:
        reason = "Its agent is not there"
    else:
        reason = "It could not be fetched" if failures else "There is no such object"
    if not visit.site.connection.connected:
        reason, failures = "It cannot be asked for while there is no broker", ""
    agent = _agent_link(object_id.agent_name or "")
    return (
        f"<h1>{cut_html(clean(object_id.object_name))}</h1>"
        f'<p class="qmf-problem">{reason}: agent {agent}. {html.escape(failures)}</p>'
    )


def _currency(visit: OpenPage, objects: LiveObjects, obj: ObjectView) -> tuple[str, str]:
    """How old the values are, and how they come here."""
    age = f"as of {ago_text(time.time() - obj.updated / 1e9)}" if obj.updated else ""
    if not visit.site.connection.connected:
        return f'<span class="qmf-stale">stale{age and f", {age}"}</span>', ""
    return age, _SOURCES.get(objects.source_of(obj.identity.key.agent_name), "asked for regularly") if len(
        objects
    ) else ""


def _loss(obj: ObjectView) -> str:
    """What is known of an object that is not there any more."""
    reason = "It is gone, or its agent is"
    if obj.deleted:
        reason = f"It was deleted at {instant_text(obj.deleted)}"
    return f'<p class="qmf-problem" role="status">{reason}. What is shown is its last state.</p>'


def _agent_link(name: str) -> str:
    full = clean(name)
    return f'<a href="{agent_url(name)}" title="{html.escape(full)}">{html.escape(cut(full))}</a>'
