"""Values of the views as rows of tables in the browser."""

from __future__ import annotations

from qmf.web.pages.screens.data_table import Cell, DataColumn, DataRow, Part
from qmf.web.pages.views.event_view import EventRow
from qmf.web.pages.views.overview import AgentSummary, AlertSummary

AGENT_COLUMNS = (
    DataColumn("name", "Agent"),
    DataColumn("health", "State", desc="By its heartbeats"),
    DataColumn("heartbeat", "Heartbeat", desc="How long ago the last one was"),
    DataColumn("interval", "Interval", desc="Between heartbeats", right=True),
    DataColumn("objects", "Objects", right=True),
    DataColumn("since", "Since", desc="When it was found, or found to be gone"),
    DataColumn("notes", "Notes"),
)


def agent_cells(row: AgentSummary) -> DataRow:
    """An agent."""
    return DataRow(
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
    DataColumn("subject", "Subject"),
    DataColumn("severity", "Severity"),
    DataColumn("message", "What happened"),
    DataColumn("since", "Raised"),
    DataColumn("by", "Acknowledged by"),
)


def alert_cells(row: AlertSummary) -> DataRow:
    """An open alert."""
    return DataRow(
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
    DataColumn("time", "Time"),
    DataColumn("severity", "Severity"),
    DataColumn("event", "Event"),
    DataColumn("arguments", "Arguments"),
    DataColumn("agent", "Agent"),
)


def event_cells(row: EventRow) -> DataRow:
    """An event."""
    return DataRow(
        str(row.number),
        (
            Cell(row.time, kind="dim nowrap"),
            Cell(row.severity, kind=row.severity),
            Cell(row.name, kind="strong"),
            Cell(parts=tuple(Part(item.name, item.text, item.href) for item in row.arguments)),
            Cell(row.agent, row.agent_href, "dim"),
        ),
    )
