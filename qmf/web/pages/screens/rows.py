"""Values of the views as rows of tables in the browser."""

from __future__ import annotations

from qmf.web.pages.screens.data_table import Cell, Column, Part, Row
from qmf.web.pages.views.event_view import EventRow
from qmf.web.pages.views.overview import AgentRow, AlertRow

AGENT_COLUMNS = (
    Column("name", "Agent"),
    Column("health", "State", desc="By its heartbeats"),
    Column("heartbeat", "Heartbeat", desc="How long ago the last one was"),
    Column("interval", "Interval", desc="Between heartbeats", right=True),
    Column("objects", "Objects", right=True),
    Column("since", "Since", desc="When it was found, or found to be gone"),
    Column("notes", "Notes"),
)


def agent_cells(row: AgentRow) -> Row:
    """An agent."""
    return Row(
        row.name,
        (
            Cell(row.name, row.href, "strong"),
            Cell(row.health.value, kind=row.health.name.lower()),
            Cell(row.heartbeat, kind="stale nowrap" if row.health.name == "CUT" else "dim nowrap", quiet=True),
            Cell(row.interval, kind="dim"),
            Cell(row.objects),
            Cell(row.since, kind="dim nowrap"),
            Cell(", ".join(filter(None, ("the broker's own" if row.broker else "", row.notes)))),
        ),
        "gone" if row.health.name == "GONE" else "",
    )


ALERT_COLUMNS = (
    Column("subject", "Subject"),
    Column("severity", "Severity"),
    Column("message", "What happened"),
    Column("since", "Raised"),
    Column("by", "Acknowledged by"),
)


def alert_cells(row: AlertRow) -> Row:
    """An open alert."""
    return Row(
        row.href,
        (
            Cell(row.subject, row.href),
            Cell(row.severity, kind=row.severity),
            Cell(row.message, whole=True),
            Cell(row.since, kind="dim nowrap"),
            Cell(row.acknowledged),
        ),
    )


EVENT_COLUMNS = (
    Column("time", "Time"),
    Column("severity", "Severity"),
    Column("event", "Event"),
    Column("arguments", "Arguments"),
    Column("agent", "Agent"),
)


def event_cells(row: EventRow) -> Row:
    """An event."""
    return Row(
        str(row.number),
        (
            Cell(row.time, kind="dim nowrap"),
            Cell(row.severity, kind=row.severity),
            Cell(row.name, kind="strong"),
            Cell(parts=tuple(Part(item.name, item.text, item.href) for item in row.arguments)),
            Cell(row.agent, row.agent_href, "dim"),
        ),
    )
