"""The table of all agents, page by page: there may be ten thousand."""

from __future__ import annotations

import time

import attrs
from nicegui import ui

from qmf.views.text import plural
from qmf.web.pages.screens.data_table import DataTable
from qmf.web.pages.screens.open_page import OpenPage
from qmf.web.pages.screens.pager import Pager
from qmf.web.pages.views.overview import AGENT_COLUMNS, agent_rows
from qmf.web.pages.views.page_urls import DEFAULT_SIZE, AgentsUrl
from qmf.web.pages.views.paging import PageOf, page_of


async def agents_screen(visit: OpenPage, url: AgentsUrl) -> None:
    """Build the table."""
    site = visit.site
    current = url
    with visit.page("Agents", "Programs that publish objects and events, with their heartbeats."):
        with ui.element("div").classes("qmf-bar"):
            box = ui.input("Filter", value=url.filter).props("dense outlined clearable debounce=200")
            box.classes("qmf-filter")
        table = DataTable("Agents", AGENT_COLUMNS, empty="No such agent.")
        with ui.element("div").classes("qmf-bar"):
            count = ui.label().classes("qmf-count").props('role="status"')
            ui.element("div").classes("qmf-grow")
            pager = Pager(lambda step: show(attrs.evolve(current, page=shown.number + step)))
    shown: PageOf[str] = page_of((), 1, DEFAULT_SIZE)

    def update() -> None:
        nonlocal shown
        text = current.filter.lower()
        names = [name for name in site.agents.names() if text in name.lower()]
        shown = page_of(names, current.page, DEFAULT_SIZE)
        table.show(agent_rows(site, shown.items, time.time()))
        count.set_text(plural(len(names), "agent"))
        pager.show(shown.number, shown.pages)

    def show(changed: AgentsUrl) -> None:
        nonlocal current
        current = changed
        visit.show_address(str(changed))
        update()

    box.on_value_change(lambda: show(AgentsUrl((box.value or "").strip())))
    visit.on_update(update, counts=True)
    update()
