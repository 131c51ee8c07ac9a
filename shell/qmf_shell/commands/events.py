"""`events`: the events of this session, or new events as they come."""

from __future__ import annotations

import collections
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from qmf.errors import NetworkError, NotFoundError
from qmf.schema import ClassKey, Kind
from qmf.views.cells import Cell, CellForm, Instant, Record
from qmf.views.conditions import Condition
from qmf.views.conditions.parser import parse_words
from qmf.views.event_filter import EventFilter
from qmf.views.events import EventView, LostEvents, event_view, parse_severity, severity_name
from qmf.views.text import plural
from qmf_shell.objects.lookup import find_classes
from qmf_shell.objects.value_cells import event_fields, event_summary
from qmf_shell.parsing.command import ALL, PLAIN, BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.parsing.selection import keyword_of
from qmf_shell.parsing.times import Period, split_period
from qmf_shell.results.result import Result, ResultStream, Role, StreamLine, Table, TableColumn
from qmf_shell.screens.start import screen_of
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_names
from qmf_shell.session.recent import RecentEvents

if TYPE_CHECKING:
    from qmf_shell.screens.state import Page

_WAITING = "`events -w SECONDS` waits for them, `events -f` follows them."
#: Events shown when the user does not say how many.
SHOWN = 20

_COLUMNS = (
    TableColumn("Time", Role.TIME, form=CellForm.BRIEF),
    TableColumn("Severity", Role.SEVERITY),
    TableColumn("Event", Role.NAME),
    TableColumn("Arguments", shortens=True),
    TableColumn("Agent", Role.FAINT, shortens=True, spare=True),
)
#: The same with everything that the events hold.
_WHOLE = (
    TableColumn("Time", Role.TIME),
    *_COLUMNS[1:3],
    TableColumn("Arguments", wraps=True),
    TableColumn("Agent", Role.FAINT, wraps=True),
)


def run(context: Context, args: BoundArguments) -> Result:
    """Show recent events, those of a period, or follow new ones."""
    words, period = split_period(args.words)
    if period is not None:
        return _recorded_events(context, attrs.evolve(args, words=tuple(words)), period)
    wanted = _filter(context, args)
    most = EVENTS.count(args, "number", SHOWN)
    columns = _WHOLE if "long" in args.options else _COLUMNS
    if "follow" in args.options:
        lines = ResultStream(_follow(context, wanted, columns), title="Waiting for events; Ctrl-C ends it")
        return screen_of(context, args, lines, lambda: _page(context, wanted))
    if "wait" in args.options:
        _wait(context, wanted, EVENTS.seconds(args, "wait", 0), most if "number" in args.options else 0)
    return _received_events(context, wanted, columns, most)


def _received_events(context: Context, wanted: EventFilter, columns: tuple[TableColumn, ...], most: int) -> Table:
    """The last events of this session, at most so many; 0 for all."""
    shared = _shared_names(context, _known_classes(context))
    events = [event for event in context.events.recent() if wanted.passes(event) and context.shows_event(event)]
    shown, left = _last(events, most)

    def records() -> Sequence[Record]:
        return [_record(context, event, shared) for event in shown]

    notes = [f"{plural(left, 'earlier one')}; events -n 0 shows all"] if left else []
    notes += [f"not connected to {item.name}" for item in context.backend.statuses if not item.connected]
    return Table(
        columns,
        tuple(_cells(context, event, shared) for event in shown),
        title=_title(shown),
        records=records if any(isinstance(event, LostEvents) for event in shown) else None,
        empty=f"No {'' if wanted == EventFilter() else 'such '}events since this session began; {_WAITING}",
        note="; ".join(notes) or None,
    )


def _last(events: Sequence[EventView], most: int) -> tuple[Sequence[EventView], int]:
    """The last events, at most so many, 0 for all, with those that did not arrive between; how many are left out."""
    places = [place for place, event in enumerate(events) if not isinstance(event, LostEvents)]
    if not most or len(places) <= most:
        return events, 0
    return events[places[-most - 1] + 1 :], len(places) - most


def _title(events: Sequence[EventView]) -> str:
    lost = [event.count for event in events if isinstance(event, LostEvents)]
    title = plural(len(events) - len(lost), "event")
    return f"{title}, {sum(lost):,} did not arrive" if lost else title


def _wait(context: Context, wanted: EventFilter, seconds: float, most: int) -> None:
    """Wait for events: so many seconds, or until there are as many as the user wants (0: no number)."""
    end = time.monotonic() + seconds
    count = seen = 0
    while not most or count < most:
        new, seen = context.events.since(seen)
        arrived = [event for event in new if not isinstance(event, LostEvents)]
        count += sum(wanted.passes(event) and context.shows_event(event) for event in arrived)
        if (not most or count < most) and not context.events.wait(seen, end - time.monotonic()):
            return


def _recorded_events(context: Context, args: BoundArguments, period: Period) -> Table:
    """The events of a period, from the lake."""
    # Imported here: most sessions have no lake.
    from qmf_shell.session.history_backend import HistoryBackend

    for option in ("follow", "wait"):
        if option in args.options:
            raise EVENTS.misuse(f"--{option} is for new events: write no from and to")
    reader = context.past()
    past = attrs.evolve(context, backend=HistoryBackend(reader, lambda: period.last), events=RecentEvents())
    wanted = _filter(past, args)
    most = EVENTS.count(args, "number", SHOWN)
    kept: collections.deque[EventView] = collections.deque(maxlen=most or None)
    count = 0
    for item in reader.events(period.first, period.last):
        event = event_view(item, reader.url)
        if wanted.passes(event) and context.shows_event(event):
            kept.append(event)
            count += 1
    shared = _shared_names(past, _known_classes(past))
    left = count - len(kept)
    return Table(
        _WHOLE if "long" in args.options else _COLUMNS,
        tuple(_cells(past, event, shared) for event in kept),
        title=plural(len(kept), "event"),
        empty="No such events were recorded in this period.",
        note=f"{plural(left, 'earlier one')}; events -n 0 shows all" if left else None,
    )


def _page(context: Context, wanted: EventFilter) -> Page:
    from qmf_shell.screens.opening import PageFactory

    return PageFactory(context, context.settings.interval).events(wanted.passes)


def _follow(context: Context, wanted: EventFilter, columns: tuple[TableColumn, ...]) -> Iterator[StreamLine]:
    shared = _shared_names(context, _known_classes(context))
    for event in context.events.follow():
        if wanted.passes(event) and context.shows_event(event):
            record = _record(context, event, shared) if isinstance(event, LostEvents) else None
            yield StreamLine(columns, _cells(context, event, shared), record)


def _filter(context: Context, args: BoundArguments) -> EventFilter:
    words = list(args.words)
    classes: set[str] = set()
    while words and keyword_of(words[0]) is None:
        classes |= _class(context, words.pop(0).text)
    condition: Condition | None = None
    if words:
        if keyword_of(words[0]) != "where" or len(words) == 1:
            reason = "only `where CONDITION` may follow the classes"
            raise EVENTS.misuse(reason)
        condition, _ = parse_words(words[1:])
    severity = args.options.get("severity")
    return EventFilter(
        classes=classes,
        severity=7 if severity is None else parse_severity(severity),
        agent=args.options.get("agent", ""),
        condition=condition,
    )


def _known_classes(context: Context) -> Sequence[ClassKey] | None:
    """The classes; None while there is no connection, since events that were received can be shown all the same."""
    try:
        return context.classes()
    except NetworkError:
        return None


def _shared_names(context: Context, known: Sequence[ClassKey] | None) -> set[str]:
    """Names that events of several packages have: these are shown with their package."""
    names = set(class_names(key for key in known or () if key.kind is Kind.EVENT))
    if known is None:
        names = {(item.package, item.short_name) for item in context.events.recent()}
    return {name for name, count in collections.Counter(name for _, name in names).items() if count > 1}


def _class(context: Context, text: str) -> set[str]:
    """Full names of the event classes that a text names."""
    seen = {event.name for event in context.events.recent()}
    known = _known_classes(context)
    if known is None:
        wanted = text.lower()
        return {name for name in map(str.lower, seen) if wanted in (name, name.rpartition(":")[2])} or {wanted}
    try:
        keys = find_classes(known, text, Kind.EVENT)
    except NotFoundError:
        # An event may come from an agent that has not sent its schema.
        found = {name.lower() for name in seen if text.lower() in (name.lower(), name.lower().rpartition(":")[2])}
        if found:
            return found
        raise
    return {f"{key.package}:{key.name}".lower() for key in keys}


def _cells(context: Context, event: EventView, shared: set[str]) -> tuple[Cell, ...]:
    severity = severity_name(event.severity)
    whole = event.short_name in shared or isinstance(event, LostEvents)  # no event has this one
    name = event.name if whole else event.short_name
    return Instant(event.timestamp), severity, name, event_summary(context, event), event.agent


def _record(context: Context, event: EventView, shared: set[str]) -> Record:
    """What programs get of an event: of those that did not arrive as well, in place of a sentence."""
    record = dict(zip((column.key for column in _COLUMNS), _cells(context, event, shared), strict=True))
    return record | {"arguments": event_fields(context, event)}


EVENTS = Command(
    name="events",
    usage=(
        "events [-f] [-w SECONDS] [-p] [-l] [-n COUNT] [-s SEVERITY] [-a AGENT] [CLASS...] [where CONDITION]",
        "events [-l] [-n COUNT] [-s SEVERITY] [-a AGENT] [CLASS...] [where CONDITION] from TIME [to TIME]",
    ),
    summary="Show the latest events, or follow them as they come",
    help=(
        "Events are collected from the moment when this program connected. The last 1000 are kept. A single command "
        "(qmf-shell -c events) has just connected, so it has seen none: -w waits so many seconds for them, or until "
        "there are as many as -n says.",
        "Where events of an agent did not arrive, since a broker dropped them, a line qmf:lost of severity warn says "
        "how many, whatever the severity, class or condition that is wanted. It is not counted as an event.",
        "An event is one line: on a narrow terminal its arguments are shortened, and empty ones left out. -l shows "
        "everything.",
        "With -f, they fill the terminal as they come, the latest first: a table to scroll, sort, filter and pause; "
        "Enter shows an event in full, and from there the objects that it names. In a file, in a pipe, or with -p they "
        "are printed as they come. Ctrl-C or q ends it.",
        "With from or to, those that were recorded in a lake in that period are shown; times are written as for at.",
        "A condition is written as in `list`; it compares arguments of events, and severity, class and agent. "
        "Severities are emerg, alert, crit, error, warn, notice, inform and debug.",
    ),
    examples=(
        ("events", "the latest 20"),
        ("events -n 0", "all that are kept"),
        ("events -f filesystemFull", "wait for events of one class"),
        ("events -s warn", "warnings and worse"),
        ("events -w 60 -n 1 queueDelete", "wait a minute at most for one event"),
        ("events -n 0 from yesterday 23:00 to 01:00", "all that were recorded"),
        ('events -f where user ~ "^ops" and severity >= notice', "by their arguments"),
    ),
    parameters=(
        Parameter("CLASS", ParameterKind.EVENT_CLASS, "only events of these classes; a condition", repeated=True),
    ),
    options=(
        Option(("-f", "--follow"), "show events as they come, until q or Ctrl-C"),
        Option(("-l", "--long"), "all arguments as they are, on several lines if necessary"),
        Option(("-n", "--number"), "how many to show; 0 means all", "COUNT"),
        Option(("-s", "--severity"), "only events of at least this severity", "SEVERITY"),
        Option(("-a", "--agent"), "only from agents whose name contains this", "AGENT"),
        Option(("-w", "--wait"), "wait so long for events, or until there are COUNT", "SECONDS"),
        ALL,
        PLAIN,
    ),
    handler=run,
)
