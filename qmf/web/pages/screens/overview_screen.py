"""The overview."""

from __future__ import annotations

import html
import time

from nicegui import ui

from qmf.views.text import clean
from qmf.web.pages.live.followed import LiveObjects
from qmf.web.pages.live.shared_state import ALERT
from qmf.web.pages.screens.data_table import DataTable
from qmf.web.pages.screens.open_page import OpenPage, show_text
from qmf.web.pages.views.event_view import EVENT_COLUMNS, event_rows
from qmf.web.pages.views.overview import (
    AGENT_COLUMNS,
    ALERT_COLUMNS,
    BROKER_COLUMNS,
    Overview,
    alert_rows,
    broker_rows,
    overview,
)
from qmf.web.pages.views.page_urls import EventsUrl, class_url
from qmf.web.pages.views.plots import HEIGHT, WIDTH

#: Events that the overview shows.
LATEST_EVENTS = 10
BROKER = ("org.apache.qpid.broker", "broker")


async def overview_screen(visit: OpenPage) -> None:
    """Build the overview."""
    site = visit.site
    with visit.page("Overview", heading=False):
        tiles = ui.html("", sanitize=False)
        alerts_title = ui.html("<h2>Open alerts</h2>", sanitize=False)
        alerts = DataTable("Open alerts", ALERT_COLUMNS, empty="No alert is open.")
        ui.html("<h2>Brokers</h2>", sanitize=False)
        brokers = DataTable("Brokers", BROKER_COLUMNS)
        ui.html('<h2><a href="/agents">Agents</a></h2>', sanitize=False)
        agents = DataTable("Agents", AGENT_COLUMNS, empty="No agent has announced itself.")
        more = ui.label().classes("qmf-note")
        ui.html('<h2><a href="/events">Latest events</a></h2>', sanitize=False)
        events = DataTable("Latest events", EVENT_COLUMNS, empty="No event was received yet.")

    followed: dict[tuple[str, str], LiveObjects] = {}

    def follow(name: tuple[str, str]) -> None:
        if name not in followed and any(key.name == name[1] for key in site.client.known_classes(name[0])):
            followed[name] = visit.follow_class(*name)

    def update() -> None:
        now = time.time()
        follow(ALERT)
        follow(BROKER)
        found = overview(site, now)
        open_alerts = alert_rows(followed[ALERT].views()) if ALERT in followed else []
        tiles.set_content(_tiles(found, len(followed[ALERT]) if ALERT in followed else None))
        alerts_title.set_visibility(ALERT in followed)
        alerts.set_visibility(ALERT in followed)
        alerts.show(open_alerts)
        known = followed[BROKER].views() if BROKER in followed else ()
        brokers.show(broker_rows(site, known, now))
        agents.show(found.agents)
        left = found.all_agents - len(found.agents)
        show_text(more, f"{left:,} more agents are in the table of agents." if left > 0 else "")
        events.show(event_rows(site.events.newest_first(), EventsUrl(), LATEST_EVENTS))

    visit.on_update(update, counts=True)
    await visit.wait_for_count()
    update()


def _tile(label: str, value: str, note: str = "", href: str = "", more: str = "") -> str:
    inner = f"<span>{html.escape(label)}</span><b>{html.escape(value)}</b>{more}"
    inner += f"<span>{html.escape(note)}</span>" if note else ""
    return f'<a class="qmf-tile" href="{href}">{inner}</a>' if href else f'<div class="qmf-tile">{inner}</div>'


def _tiles(found: Overview, alerts: int | None) -> str:
    notes = [
        f"{count:,} {what}"
        for count, what in ((found.late, "late"), (found.cut, "not known"), (found.gone, "gone"))
        if count
    ]
    plot = ""
    if found.events_per_minute is not None:
        plot = (
            f'<svg class="qmf-spark" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
            'aria-label="Events per minute in the last hour"><polyline points='
            f'"{found.events_per_minute.points}"/></svg>'
        )
    severities = ", ".join(f"{count:,} {clean(name)}" for name, count in found.severities)
    tiles = [
        _tile("Agents", f"{found.alive + found.late + found.cut:,}", ", ".join(notes) or "all alive", "/agents"),
        _tile(
            "Objects",
            "counting…" if found.objects is None else f"{found.objects:,}",
            f"counted {found.counted}" if found.counted else "",
            "/classes",
        ),
        _tile(
            "Classes", f"{found.classes:,}", f"{found.event_classes:,} of events, {found.packages} packages", "/classes"
        ),
        _tile("Events in the last hour", f"{found.events_last_hour:,}", severities or "none", "/events", plot),
        _tile(
            "Events in the last minutes", f"{found.events_last_minute:,}", "this minute and the one before", "/events"
        ),
    ]
    if alerts is not None:
        tiles.append(_tile("Open alerts", f"{alerts:,}", "", class_url(*ALERT)))
    return f'<div class="qmf-tiles">{"".join(tiles)}</div>'
