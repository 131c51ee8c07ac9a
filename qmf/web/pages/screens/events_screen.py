"""The stream of events, with filters and a pause."""

from __future__ import annotations

import attrs
from nicegui import ui

from qmf.schema import Severity
from qmf.views.text import plural
from qmf.web.pages.screens.data_table import DataTable
from qmf.web.pages.screens.open_page import OpenPage, show_text
from qmf.web.pages.views.event_view import EVENT_COLUMNS, MOST_SHOWN, event_filter, event_rows
from qmf.web.pages.views.page_urls import EventsUrl


async def events_screen(visit: OpenPage, url: EventsUrl) -> None:
    """Build the stream."""
    site = visit.site
    choices = {item.schema_name: f"{item.schema_name} and worse" for item in reversed(Severity)}
    choices[Severity.DEBUG.schema_name] = "all"
    with visit.page("Events", "What happened at agents, the newest first."):
        with ui.element("div").classes("qmf-bar"):
            text = ui.input("Text", value=url.text).props("dense outlined clearable debounce=200").classes("qmf-filter")
            severity = ui.select(choices, value=url.severity.schema_name, label="Severity")
            severity.props("dense outlined options-dense")
            classes = ui.input("Class", value=url.classes).props("dense outlined clearable debounce=200")
            agent = ui.input("Agent", value=url.agent).props("dense outlined clearable debounce=200")
            own = ui.checkbox("own", value=url.own).props("dense")
            own.tooltip("With events about what agents and consoles create on the broker for themselves")
            pause = ui.button("Pause", on_click=lambda: toggle()).props("outline dense no-caps id=qmf-pause")
        count = ui.label().classes("qmf-count").props('role="status"')
        problem = ui.label().classes("qmf-problem").props('role="status"')
        table = DataTable("Events", EVENT_COLUMNS, empty="No event passes the filters.")

    current = url
    seen = -1
    paused = False

    def update() -> None:
        nonlocal seen
        log = site.events
        if not paused and seen != log.total:
            seen = log.total
            table.show(event_rows(log.newest_first(), current))
        waiting = log.total - seen
        words = f"{log.total - log.gaps:,} events received, up to {MOST_SHOWN} shown"
        words += f"; {plural(log.lost, 'event')} did not arrive" if log.lost else ""
        count.set_text(f"{words}. Paused; {waiting:,} came since." if paused else f"{words}.")

    def on_changed() -> None:
        nonlocal current, seen
        current = attrs.evolve(
            current,
            severity=next(item for item in Severity if item.schema_name == severity.value),
            classes=(classes.value or "").strip(),
            text=(text.value or "").strip(),
            agent=(agent.value or "").strip(),
            own=own.value,
        )
        visit.show_address(str(current))
        show_problem()
        table.show(event_rows(site.events.newest_first(), current))
        seen = site.events.total
        update()

    def show_problem() -> None:
        show_text(problem, event_filter(current)[1])

    def toggle() -> None:
        nonlocal paused
        paused = not paused
        pause.set_text("Go on" if paused else "Pause")
        pause.props(f'aria-pressed="{str(paused).lower()}"')
        update()

    for box in (text, severity, classes, agent, own):
        box.on_value_change(on_changed)
    visit.on_update(update)
    show_problem()
    update()
