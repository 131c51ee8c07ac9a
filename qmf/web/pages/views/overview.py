"""The overview: brokers, agents with their heartbeats, how much there is, how many events come, and open alerts."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from qmf.console.aio import StillFindingAgents
from qmf.schema import Kind, Severity
from qmf.views.agents import AgentHealth, path_text
from qmf.views.events import severity_name
from qmf.views.objects import ObjectView
from qmf.views.text import clean, plural
from qmf.web.pages.live.presence import AgentPresence, BrokerState
from qmf.web.pages.live.shared_state import SharedState
from qmf.web.pages.views.data_rows import Cell, DataColumn, DataRow
from qmf.web.pages.views.page_texts import ABSENT, ago_text, heard_text, instant_text, object_title
from qmf.web.pages.views.page_urls import agent_url, object_url
from qmf.web.pages.views.plots import SparkLine, spark_line

#: Alerts and agents that the overview shows at most.
MOST_ALERTS = 50
MOST_AGENTS = 25


AGENT_COLUMNS = (
    DataColumn("name", "Agent"),
    DataColumn("health", "State", desc="By its heartbeats"),
    DataColumn("heartbeat", "Heartbeat", desc="How long ago the last one was"),
    DataColumn("interval", "Interval", desc="Between heartbeats", right=True),
    DataColumn("objects", "Objects", right=True),
    DataColumn("since", "Since", desc="When it was found, or found to be gone"),
    DataColumn("notes", "Notes"),
)
ALERT_COLUMNS = (
    DataColumn("subject", "Subject"),
    DataColumn("severity", "Severity"),
    DataColumn("message", "What happened"),
    DataColumn("since", "Raised"),
    DataColumn("by", "Acknowledged by"),
)
BROKER_COLUMNS = (
    DataColumn("name", "Broker"),
    DataColumn("state", "State"),
    DataColumn("since", "Since"),
    DataColumn("agent", "Agent"),
)


@attrs.frozen
class Overview:
    """What the overview shows.

    Attributes:
        agents: the first of them, also of those that are late or gone.
        all_agents: how many there are with these.
        alive, late, cut, gone: how many of all; `cut` are those of which nothing is heard since the broker was lost.
        classes, event_classes, packages: how many.
        objects: how many objects there are; None before they were counted.
        counted: how long ago they were counted, in words.
        events_per_minute: of the last minutes, as a small plot; None if there were none.
        events_last_minute, events_last_hour: how many events came.
        severities: how many events of each severity came in the last hour, without those that did not.
    """

    agents: tuple[DataRow, ...]
    all_agents: int
    alive: int
    late: int
    cut: int
    gone: int
    classes: int
    event_classes: int
    packages: int
    objects: int | None
    counted: str
    events_per_minute: SparkLine | None
    events_last_minute: int
    events_last_hour: int
    severities: tuple[tuple[str, int], ...]


def agent_row(presence: AgentPresence, objects: int | None, now: float) -> DataRow:
    """An agent as a row; `objects` is None before they were counted."""
    agent = presence.agent
    interval = agent.info.heartbeat_interval
    health = presence.health(now)
    heard = heard_text(now - presence.heartbeat, stale=bool(presence.cut)) if presence.heartbeat else ABSENT
    notes = []
    if agent.is_broker:
        notes.append("the broker's own")
    if agent.path:
        notes.append(f"by {path_text(agent.path)}")
    if presence.restarts:
        notes.append(f"restarted {plural(presence.restarts, 'time')}")
    if presence.gone:
        notes.append(f"gone: {presence.reason}")
    name = clean(agent.name)
    return DataRow(
        name,
        (
            Cell(name, agent_url(agent.name), "strong"),
            Cell(health.value, kind=health.name.lower()),
            Cell(heard, kind="stale nowrap" if health is AgentHealth.CUT else "dim nowrap", quiet=True),
            Cell(f"{interval:g}s" if interval else ABSENT, kind="dim"),
            Cell(ABSENT if objects is None else f"{objects:,}"),
            Cell(instant_text(int((presence.gone or presence.found) * 1e9)), kind="dim nowrap"),
            Cell(", ".join(notes)),
        ),
        "gone" if health is AgentHealth.GONE else "",
    )


def agent_rows(site: SharedState, names: Iterable[str], now: float) -> list[DataRow]:
    """The agents with these names as rows."""
    counts = site.catalogue.counts()
    counted = site.catalogue.counted_at is not None
    found = (site.agents.get(name) for name in names)
    return [agent_row(item, counts.get(item.agent.name, 0) if counted else None, now) for item in found if item]


def overview(site: SharedState, now: float, most: int = MOST_AGENTS) -> Overview:
    """What there is now, with so many agents at most."""
    counted_at = site.catalogue.counted_at
    names = site.agents.names()
    tally = site.agents.tally(now)
    classes = site.catalogue.classes()
    data = sum(item.kind is Kind.DATA for item in classes)
    per_minute = site.events.per_minute(now)
    points = [(now - 60.0 * (len(per_minute) - at), float(count)) for at, count in enumerate(per_minute)]
    return Overview(
        tuple(agent_rows(site, names[:most], now)),
        len(names),
        tally.get(AgentHealth.ALIVE, 0) + tally.get(AgentHealth.UNKNOWN, 0),
        tally.get(AgentHealth.LATE, 0),
        tally.get(AgentHealth.CUT, 0),
        tally.get(AgentHealth.GONE, 0),
        data,
        len(classes) - data,
        len({item.package for item in classes}),
        None if counted_at is None else site.catalogue.total,
        "" if counted_at is None else ago_text(now - counted_at),
        spark_line(points, now, 3600.0) if any(per_minute) else None,
        per_minute[-1] + per_minute[-2],
        sum(per_minute),
        tuple((item.schema_name, count) for item, count in site.events.by_severity(now).items() if count),
    )


def alert_rows(alerts: Iterable[ObjectView]) -> list[DataRow]:
    """Open alerts, the most severe first, then the newest."""

    def rank(obj: ObjectView) -> tuple[int, int]:
        severity, raised = obj.values.get("severity"), obj.values.get("raisedAt")
        return (
            severity if isinstance(severity, int) else int(Severity.DEBUG),
            -raised if isinstance(raised, int) else 0,
        )

    return [_alert_row(item) for item in sorted(alerts, key=rank)[:MOST_ALERTS]]


def _alert_row(obj: ObjectView) -> DataRow:
    values = obj.values
    number, raised = values.get("severity"), values.get("raisedAt")
    severity = severity_name(number) if isinstance(number, int) else ABSENT
    href = object_url(obj.identity.key)
    return DataRow(
        href,
        (
            Cell(clean(str(values.get("subject", ""))), href),
            Cell(severity, kind=severity),
            Cell(clean(str(values.get("message", ""))), whole=True),
            Cell(instant_text(raised) if isinstance(raised, int) else ABSENT, kind="dim nowrap"),
            Cell(clean(str(values.get("acknowledgedBy") or ""))),
        ),
    )


def broker_rows(site: SharedState, brokers: Iterable[ObjectView], now: float) -> list[DataRow]:
    """The brokers: the connected one, and those that agents describe; `now`: seconds since 1970."""
    state = site.connection
    own = site.client.broker
    found = [(item, item.identity.key) for item in brokers]
    href = next((object_url(key) for _, key in found if own and key.agent_name == own.name), "")
    text, since = "connected" if state.connected else "not connected", int(state.since * 1e9)
    rows = [_broker_row(clean(state.url), text, since, href, own.name if own else "", healthy=state.connected)]
    for item, key in found:
        presence = site.agents.get(key.agent_name)
        if presence is not None and not (own and key.agent_name == own.name):
            health = presence.health(now)
            healthy = health is AgentHealth.ALIVE
            title, href = object_title(item), object_url(key)
            rows.append(_broker_row(title, health.value, item.created, href, key.agent_name, healthy=healthy))
    return rows


def _broker_row(name: str, state: str, since: int, href: str, agent: str, *, healthy: bool) -> DataRow:
    return DataRow(
        name,
        (
            Cell(name, href, "strong"),
            Cell(state, kind="alive" if healthy else "gone"),
            Cell(instant_text(since), kind="dim nowrap"),
            Cell(clean(agent), agent_url(agent)) if agent else Cell(ABSENT),
        ),
    )


def finding_text(search: StillFindingAgents | None) -> str:
    """How far the search for agents is, as a sentence; empty when all are known."""
    return "" if search is None else f"S{str(search)[1:]}. What is shown is not complete yet."


def connection_text(state: BrokerState, now: float) -> str:
    """The state of the connection to the broker in one line; empty while there is one."""
    if state.connected:
        return ""
    text = f"There is no connection to {clean(state.url)} yet"
    if state.losses:
        text = f"The connection to {clean(state.url)} was lost {ago_text(now - state.since)}"
    text += f": {clean(state.reason)}." if state.reason else "."
    if state.retry_at is not None:
        wait = state.retry_at - now
        text += f" Next attempt {'now' if wait < 1 else f'in {wait:.0f} s'}."
    return f"{text} What is shown is from before that." if state.losses else text
