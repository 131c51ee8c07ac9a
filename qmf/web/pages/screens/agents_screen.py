"""The table of all agents, page by page: there may be ten thousand; and the page of one."""

from __future__ import annotations

import time
from collections.abc import Sequence

import attrs
from nicegui import ui

from qmf.errors import QmfError
from qmf.schema import ClassKey
from qmf.views.text import clean, plural
from qmf.web.pages.screens.data_table import DataTable, Pager
from qmf.web.pages.screens.open_page import OpenPage, show_text
from qmf.web.pages.views.agent_view import CLASS_COLUMNS, agent_classes, agent_facts
from qmf.web.pages.views.data_rows import Cell, DataColumn, DataRow, PageOf, page_of
from qmf.web.pages.views.event_view import EVENT_COLUMNS, event_rows
from qmf.web.pages.views.overview import AGENT_COLUMNS, agent_rows
from qmf.web.pages.views.page_urls import DEFAULT_SIZE, AgentsUrl, EventsUrl


async def agents_screen(visit: OpenPage, url: AgentsUrl) -> None:
    """Build the table."""
    site = visit.site
    current = url
    with visit.page("Agents", "Programs that publish objects and events, with their heartbeats."):
        with ui.element("div").classes("qmf-bar"):
            box = ui.input("Filter", value=url.filter).props("dense outlined clearable debounce=200")
            box.classes("qmf-filter")
        table = DataTable("Agents", AGENT_COLUMNS, empty="No such agent.")
        pager = Pager(lambda step: show(attrs.evolve(current, page=shown.number + step)))
    shown: PageOf[str] = page_of((), 1, DEFAULT_SIZE)

    def update() -> None:
        nonlocal shown
        text = current.filter.lower()
        names = [name for name in site.agents.names() if text in name.lower()]
        shown = page_of(names, current.page, DEFAULT_SIZE)
        table.show(agent_rows(site, shown.items, time.time()))
        pager.show(plural(len(names), "agent"), shown.number, shown.pages)

    def show(changed: AgentsUrl) -> None:
        nonlocal current
        current = changed
        visit.show_address(str(changed))
        update()

    box.on_value_change(lambda: show(AgentsUrl((box.value or "").strip())))
    visit.on_update(update, counts=True)
    update()


#: Its latest events that are shown.
MOST_EVENTS = 20
#: Seconds between two questions for its classes.
CLASSES_PAUSE = 30.0

_FACT_COLUMNS = (DataColumn("name", "About it"), DataColumn("value", "Value"))


async def agent_screen(visit: OpenPage, name: str) -> None:
    """Build the page of the agent of this name."""
    site = visit.site
    with visit.page(f"Agent {clean(name)}", "A program that publishes objects and events."):
        problem = ui.label().classes("qmf-problem").props('role="status"')
        facts = DataTable("About it", _FACT_COLUMNS, empty="Nothing is known of it.")
        ui.html("<h2>Classes</h2>", sanitize=False)
        classes = DataTable("Classes", CLASS_COLUMNS, empty="No class of it is known.")
        events_title = ui.element("h2")
        with events_title:
            ui.link("Latest events", str(EventsUrl(agent=name)))
        events = DataTable("Latest events", EVENT_COLUMNS, empty="No event of it was received yet.")
    used: Sequence[ClassKey] = ()
    failure = ""
    next_ask = 0.0

    async def ask() -> None:
        nonlocal used, failure, next_ask
        if time.monotonic() < next_ask or not site.connection.connected:
            return
        next_ask = time.monotonic() + CLASSES_PAUSE
        try:
            used, failure = (await site.client.classes(agent=name)).items, ""
        except QmfError as error:
            failure = f"Its classes could not be asked for: {clean(str(error))}"

    async def update() -> None:
        now = time.time()
        presence = site.agents.get(name)
        show_text(problem, "There is no such agent." if presence is None else failure if not presence.gone else "")
        facts.show([] if presence is None else [_fact(*item) for item in agent_facts(presence, now)])
        classes.show(agent_classes(site.catalogue.classes(), used, name))
        raised = (item for item in site.events.newest_first() if item.event.agent == name)
        events.show(event_rows(raised, EventsUrl(), MOST_EVENTS))
        if presence is not None and not presence.gone:
            await ask()

    visit.on_update(update, counts=True)
    await update()


def _fact(name: str, text: str) -> DataRow:
    return DataRow(name, (Cell(name, kind="strong"), Cell(text, kind="value", quiet=True)))
