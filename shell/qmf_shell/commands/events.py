"""`events`: what happened since the session began, and what happens now."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator

from qmf.errors import NotFoundError
from qmf.schema import Kind, Severity
from qmf_shell.describe import event_fields
from qmf_shell.registry import Command, Given, Option, Parameter, Takes, UsageError
from qmf_shell.results import Cell, Column, Instant, Line, Result, Role, Stream, Table
from qmf_shell.session.context import Context
from qmf_shell.session.lookup import class_names, find_classes
from qmf_shell.session.source import Event
from qmf_shell.text import plural

#: Events shown when the user does not say how many.
SHOWN = 20

_COLUMNS = (
    Column("Time", Role.TIME),
    Column("Severity", Role.SEVERITY),
    Column("Event", Role.NAME),
    Column("Arguments", wraps=True),
    Column("Agent", Role.FAINT, wraps=True),
)


def run(context: Context, given: Given) -> Result:
    """Recent events, or events as they come."""
    wanted = _class_filter(context, given.text(0))
    if "follow" in given.options:
        return Stream(_follow(context, wanted), title="Waiting for events; Ctrl-C ends it")
    most = _count(given)
    shared = _shared_names(context)
    events = [event for event in context.events.recent() if wanted is None or event.name.lower() in wanted]
    shown = events[-most:] if most else events
    note = f"{len(events) - len(shown)} earlier ones; events -n 0 shows all" if len(shown) < len(events) else None
    return Table(
        _COLUMNS,
        tuple(_cells(context, event, shared) for event in shown),
        title=plural(len(shown), "event"),
        empty="No events since this session began; `events -f` waits for them.",
        note=note,
    )


def _follow(context: Context, wanted: set[str] | None) -> Iterator[Line]:
    shared = _shared_names(context)
    for event in context.events.follow():
        if wanted is None or event.name.lower() in wanted:
            yield Line(_COLUMNS, _cells(context, event, shared))


def _shared_names(context: Context) -> set[str]:
    """Names that events of several packages have: only these are shown with their package."""
    names = class_names(key for key in context.classes() if key.kind is Kind.EVENT)
    return {name for name, count in collections.Counter(name for _, name in names).items() if count > 1}


def _class_filter(context: Context, text: str | None) -> set[str] | None:
    """Names of the events to show, or None for all."""
    if text is None:
        return None
    seen = {event.name for event in context.events.recent()}
    try:
        keys = find_classes(context.classes(), text, Kind.EVENT)
    except NotFoundError:
        # An event may come from an agent that has not told its schema.
        found = {name.lower() for name in seen if text.lower() in (name.lower(), name.lower().rpartition(":")[2])}
        if found:
            return found
        raise
    return {f"{key.package}:{key.name}".lower() for key in keys}


def _count(given: Given) -> int:
    text = given.options.get("number", str(SHOWN))
    if not re.fullmatch("[0-9]{1,9}", text):
        raise UsageError("events", f"option -n needs a number, not {text!r}", EVENTS.usage[0])
    return int(text)


def _cells(context: Context, event: Event, shared: set[str]) -> tuple[Cell, ...]:
    severity = Severity(event.severity).word if 0 <= event.severity <= 7 else str(event.severity)
    short = event.name.rpartition(":")[2]
    name = event.name if short in shared else short
    return Instant(event.timestamp), severity, name, event_fields(context, event), event.agent


EVENTS = Command(
    name="events",
    usage=("events [-f] [-n COUNT] [CLASS]",),
    summary="Show the latest events, or follow them as they come",
    help=(
        "Events are collected from the moment this program connected. The last 1000 are kept.",
        "With -f, events are printed as they come until Ctrl-C.",
    ),
    examples=(
        ("events", "the latest 20"),
        ("events -n 0", "all that are kept"),
        ("events -f filesystemFull", "wait for events of one class"),
    ),
    parameters=(Parameter("CLASS", Takes.EVENT_CLASS, "only events of this class"),),
    options=(
        Option(("-f", "--follow"), "print events as they come, until Ctrl-C"),
        Option(("-n", "--number"), "how many to show; 0 means all", "COUNT"),
    ),
    handler=run,
)
