"""`events`: the events of this session, or new events as they come."""

from __future__ import annotations

import collections
from collections.abc import Iterator

from qmf.errors import NotFoundError
from qmf.schema import Kind, Severity
from qmf_shell.objects.event_filter import EventFilter, parse_severity
from qmf_shell.objects.lookup import find_classes
from qmf_shell.objects.value_cells import event_fields
from qmf_shell.parsing.command import BoundArguments, Command, Option, Parameter, ParameterKind, UsageError
from qmf_shell.parsing.common_options import ALL
from qmf_shell.parsing.condition_parser import parse_condition
from qmf_shell.parsing.conditions import Condition
from qmf_shell.parsing.option_numbers import count_option
from qmf_shell.parsing.selection import keyword_of
from qmf_shell.results.cells import Cell, Instant
from qmf_shell.results.result import Result, ResultStream, Role, StreamLine, Table, TableColumn
from qmf_shell.session.backend import EventRecord
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_names
from qmf_shell.text import plural

#: Events shown when the user does not say how many.
SHOWN = 20

_COLUMNS = (
    TableColumn("Time", Role.TIME),
    TableColumn("Severity", Role.SEVERITY),
    TableColumn("Event", Role.NAME),
    TableColumn("Arguments", wraps=True),
    TableColumn("Agent", Role.FAINT, wraps=True),
)


def run(context: Context, args: BoundArguments) -> Result:
    """Show recent events, or follow new ones."""
    wanted = _filter(context, args)
    most = count_option(EVENTS, args, "number", SHOWN)
    if "follow" in args.options:
        return ResultStream(_follow(context, wanted), title="Waiting for events; Ctrl-C ends it")
    shared = _shared_names(context)
    events = [event for event in context.events.recent() if wanted.passes(event) and context.shows_event(event)]
    shown = events[-most:] if most else events
    note = f"{len(events) - len(shown)} earlier ones; events -n 0 shows all" if len(shown) < len(events) else None
    return Table(
        _COLUMNS,
        tuple(_cells(context, event, shared) for event in shown),
        title=plural(len(shown), "event"),
        empty="No events since this session began; `events -f` waits for them."
        if wanted == EventFilter()
        else "No such events since this session began.",
        note=note,
    )


def _follow(context: Context, wanted: EventFilter) -> Iterator[StreamLine]:
    shared = _shared_names(context)
    for event in context.events.follow():
        if wanted.passes(event) and context.shows_event(event):
            yield StreamLine(_COLUMNS, _cells(context, event, shared))


def _filter(context: Context, args: BoundArguments) -> EventFilter:
    words = list(args.words)
    classes: set[str] = set()
    while words and keyword_of(words[0]) is None:
        classes |= _class(context, words.pop(0).text)
    condition: Condition | None = None
    if words:
        if keyword_of(words[0]) != "where" or len(words) == 1:
            reason = "only `where CONDITION` may follow the classes"
            raise UsageError("events", reason, EVENTS.usage[0])
        condition, used = parse_condition(words[1:])
        if used < len(words) - 1:
            raise UsageError("events", f"{words[used + 1].text!r} is one word too many", EVENTS.usage[0])
    severity = args.options.get("severity")
    return EventFilter(
        classes=frozenset(classes),
        severity=7 if severity is None else parse_severity(severity),
        agent=args.options.get("agent", ""),
        condition=condition,
    )


def _shared_names(context: Context) -> set[str]:
    """Names that events of several packages have: these are shown with their package."""
    names = class_names(key for key in context.classes() if key.kind is Kind.EVENT)
    return {name for name, count in collections.Counter(name for _, name in names).items() if count > 1}


def _class(context: Context, text: str) -> set[str]:
    """Full names of the event classes that a text names."""
    seen = {event.name for event in context.events.recent()}
    try:
        keys = find_classes(context.classes(), text, Kind.EVENT)
    except NotFoundError:
        # An event may come from an agent that has not sent its schema.
        found = {name.lower() for name in seen if text.lower() in (name.lower(), name.lower().rpartition(":")[2])}
        if found:
            return found
        raise
    return {f"{key.package}:{key.name}".lower() for key in keys}


def _cells(context: Context, event: EventRecord, shared: set[str]) -> tuple[Cell, ...]:
    severity = Severity(event.severity).schema_name if 0 <= event.severity <= 7 else str(event.severity)
    short = event.name.rpartition(":")[2]
    name = event.name if short in shared else short
    return Instant(event.timestamp), severity, name, event_fields(context, event), event.agent


EVENTS = Command(
    name="events",
    usage=("events [-f] [-n COUNT] [-s SEVERITY] [-a AGENT] [CLASS...] [where CONDITION]",),
    summary="Show the latest events, or follow them as they come",
    help=(
        "Events are collected from the moment when this program connected. The last 1000 are kept.",
        "With -f, events are printed as they come until Ctrl-C.",
        "A condition is written as in `list`; it compares arguments of events, and severity, class and agent. "
        "Severities are emerg, alert, crit, error, warn, notice, inform and debug.",
    ),
    examples=(
        ("events", "the latest 20"),
        ("events -n 0", "all that are kept"),
        ("events -f filesystemFull", "wait for events of one class"),
        ("events -s warn", "warnings and worse"),
        ('events -f where user ~ "^ops" and severity >= notice', "by their arguments"),
    ),
    parameters=(
        Parameter("CLASS", ParameterKind.EVENT_CLASS, "only events of these classes; a condition", repeated=True),
    ),
    options=(
        Option(("-f", "--follow"), "print events as they come, until Ctrl-C"),
        Option(("-n", "--number"), "how many to show; 0 means all", "COUNT"),
        Option(("-s", "--severity"), "only events of at least this severity", "SEVERITY"),
        Option(("-a", "--agent"), "only from agents whose name contains this", "AGENT"),
        ALL,
    ),
    handler=run,
)
