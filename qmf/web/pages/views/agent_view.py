"""The page of an agent: what it says of itself, how it lives, and which classes it has."""

from __future__ import annotations

from collections.abc import Iterable

from qmf.schema import ClassKey, Kind
from qmf.views.agents import path_text
from qmf.views.text import clean, one_line
from qmf.web.pages.live.catalogue import ClassSummary
from qmf.web.pages.live.presence import AgentPresence
from qmf.web.pages.views.data_rows import Cell, DataColumn, DataRow
from qmf.web.pages.views.page_texts import ABSENT, heard_text, instant_text
from qmf.web.pages.views.page_urls import EventsUrl, ObjectsUrl

CLASS_COLUMNS = (
    DataColumn("name", "Class"),
    DataColumn("objects", "Objects", right=True),
    DataColumn("package", "Package"),
    DataColumn("kind", "Kind"),
    DataColumn("desc", "Description"),
)


def agent_facts(presence: AgentPresence, now: float) -> list[tuple[str, str]]:
    """What is known of an agent, as names and texts."""
    info = presence.agent.info
    interval = info.heartbeat_interval
    state = presence.health(now).value
    facts = [
        ("State", f"{state}: {presence.reason}" if presence.gone else state),
        ("Vendor", clean(info.vendor) or ABSENT),
        ("Product", clean(info.product) or ABSENT),
        ("Instance", clean(info.instance) or ABSENT),
        ("Start number", str(info.epoch) if info.epoch else ABSENT),
        ("Reached by", path_text(presence.agent.path) or "the connected broker"),
        (
            "Last heartbeat",
            heard_text(now - presence.heartbeat, stale=bool(presence.cut)) if presence.heartbeat else ABSENT,
        ),
        ("Interval of heartbeats", f"{interval:g}s" if interval else ABSENT),
        ("Known since", instant_text(int(presence.found * 1e9))),
        ("Restarts since then", str(presence.restarts)),
    ]
    if presence.gone:
        facts.append(("Gone since", instant_text(int(presence.gone * 1e9))))
    return facts


def agent_classes(classes: Iterable[ClassSummary], used: Iterable[ClassKey], agent: str) -> list[DataRow]:
    """The classes of an agent: those of which it has objects, and those that it uses.

    Args:
        classes: the classes of the bus.
        used: the keys of the classes that the agent uses, as far as it told.
        agent: its name.
    """
    names = {(key.kind, key.package, key.name) for key in used}
    return [
        _row_of_agent(item, agent)
        for item in classes
        if (item.kind, item.package, item.name) in names or (item.counts or {}).get(agent)
    ]


def class_row(item: ClassSummary, href: str, objects: str) -> DataRow:
    """A class as a row of `CLASS_COLUMNS`, with the page that it leads to and how many objects there are."""
    data = item.kind is Kind.DATA
    versions = f" ({len(item.keys)} versions)" if len(item.keys) > 1 else ""
    return DataRow(
        f"{item.kind.value} {item.package}:{item.name}",
        (
            Cell(clean(item.title), href, "strong"),
            Cell(objects),
            Cell(clean(item.package), kind="dim"),
            Cell(("objects" if data else "events") + versions, kind="dim"),
            Cell(one_line(item.desc), whole=True),
        ),
    )


def _row_of_agent(item: ClassSummary, agent: str) -> DataRow:
    if item.kind is not Kind.DATA:
        return class_row(item, str(EventsUrl(classes=f"{item.package}:{item.name}", agent=agent)), "")
    objects = ABSENT if item.counts is None else f"{item.counts.get(agent, 0):,}"
    return class_row(item, str(ObjectsUrl(item.package, item.name, agent=agent)), objects)
