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
from qmf.web.pages.views.page_urls import agent_url, object_url
from qmf.web.pages.views.sparkline import SparkLine, spark_line
from qmf.web.pages.views.value_texts import ABSENT, ago_text, heard_text, instant_text, object_title

#: Alerts and agents that the overview shows at most.
MOST_ALERTS = 50
MOST_AGENTS = 25


@attrs.frozen
class AgentSummary:
    """An agent.

    Attributes:
        name: of the agent.
        health: its state.
        heartbeat: how long ago its last heartbeat was, in words.
        interval: between its heartbeats, in words.
        objects: how many it has, as text.
        since: since when it is known, or gone.
        notes: more in words, such as restarts.
        broker: it is the agent of the connected broker.
        href: its page.
    """

    name: str
    health: AgentHealth
    heartbeat: str
    interval: str
    objects: str
    since: str
    notes: str
    broker: bool
    href: str


@attrs.frozen
class AlertSummary:
    """An open alert: severity and message as text, since when, who acknowledged it, and its page."""

    severity: str
    subject: str
    message: str
    since: str
    acknowledged: str
    href: str


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

    agents: tuple[AgentSummary, ...]
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


def agent_row(presence: AgentPresence, objects: int | None, now: float) -> AgentSummary:
    """An agent as a row; `objects` is None before they were counted."""
    agent = presence.agent
    interval = agent.info.heartbeat_interval
    notes = []
    if agent.path:
        notes.append(f"by {path_text(agent.path)}")
    if presence.restarts:
        notes.append(f"restarted {plural(presence.restarts, 'time')}")
    if presence.gone:
        notes.append(f"gone: {presence.reason}")
    return AgentSummary(
        clean(agent.name),
        presence.health(now),
        heard_text(now - presence.heartbeat, stale=bool(presence.cut)) if presence.heartbeat else ABSENT,
        f"{interval:g}s" if interval else ABSENT,
        ABSENT if objects is None else f"{objects:,}",
        instant_text(int((presence.gone or presence.found) * 1e9)),
        ", ".join(notes),
        agent.is_broker,
        agent_url(agent.name),
    )


def agent_rows(site: SharedState, names: Iterable[str], now: float) -> list[AgentSummary]:
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


def alert_rows(alerts: Iterable[ObjectView]) -> list[AlertSummary]:
    """Open alerts, the most severe first, then the newest."""

    def rank(obj: ObjectView) -> tuple[int, int]:
        severity, raised = obj.values.get("severity"), obj.values.get("raisedAt")
        return (
            severity if isinstance(severity, int) else int(Severity.DEBUG),
            -raised if isinstance(raised, int) else 0,
        )

    return [_alert_row(item) for item in sorted(alerts, key=rank)[:MOST_ALERTS]]


def _alert_row(obj: ObjectView) -> AlertSummary:
    values = obj.values
    severity = values.get("severity")
    raised = values.get("raisedAt")
    return AlertSummary(
        severity_name(severity) if isinstance(severity, int) else ABSENT,
        clean(str(values.get("subject", ""))),
        clean(str(values.get("message", ""))),
        instant_text(raised) if isinstance(raised, int) else ABSENT,
        clean(str(values.get("acknowledgedBy") or "")),
        object_url(obj.identity.key),
    )


@attrs.frozen
class BrokerRow:
    """A broker.

    Attributes:
        name, state, since: what is shown.
        href: its page, or empty.
        healthy: the state is as it should be.
        agent, agent_href: its agent and the page of that, or empty.
    """

    name: str
    state: str
    since: str
    href: str
    healthy: bool
    agent: str = ""
    agent_href: str = ""


def broker_rows(site: SharedState, brokers: Iterable[ObjectView], now: float) -> list[BrokerRow]:
    """The brokers: the connected one, and those that agents describe.

    Args:
        site: knows the connection.
        brokers: objects of the class of brokers.
        now: seconds since 1970.
    """
    state = site.connection
    own = site.client.broker
    found = list(brokers)
    keys = [item.identity.key for item in found]
    href = next((object_url(key) for key in keys if own and key.agent_name == own.name), "")
    rows = [
        BrokerRow(
            clean(state.url),
            "connected" if state.connected else "not connected",
            instant_text(int(state.since * 1e9)),
            href,
            state.connected,
            clean(own.name) if own else ABSENT,
            agent_url(own.name) if own else "",
        )
    ]
    for item, key in zip(found, keys, strict=True):
        presence = site.agents.get(key.agent_name)
        if presence is not None and not (own and key.agent_name == own.name):
            health = presence.health(now)
            rows.append(
                BrokerRow(
                    object_title(item),
                    health.value,
                    instant_text(item.created),
                    object_url(key),
                    health is AgentHealth.ALIVE,
                    clean(key.agent_name),
                    agent_url(key.agent_name),
                )
            )
    return rows


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
