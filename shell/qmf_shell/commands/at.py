"""`at`: runs a command that reads the bus on the state at an earlier time, from a lake."""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs

from qmf.errors import CallerError
from qmf.views.events import EventView, event_view
from qmf.views.formatting import Formatter
from qmf.views.text import listing
from qmf_shell.commands.help import explain
from qmf_shell.parsing.binding import bind
from qmf_shell.parsing.command import ALL, BoundArguments, Command, Parameter, ParameterKind
from qmf_shell.parsing.times import TimeReference, parse_time
from qmf_shell.results.result import Result
from qmf_shell.session.context import Context
from qmf_shell.session.lake_source import NotRecordedError
from qmf_shell.session.recent import LostIdentities, RecentEvents

#: The commands that make sense on the past.
COMMANDS = ("list", "show", "find", "refs", "tree", "export", "agents", "events", "schema")
#: How far back `at TIME events` looks, in nanoseconds.
_EVENTS_BEFORE = 86_400 * 10**9


class NotInThePastError(CallerError):
    """A command that acts on the present."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(name)

    def __str__(self) -> str:
        return f"{self.name} is not possible in the past; at takes {listing(COMMANDS)}"


def run(context: Context, args: BoundArguments) -> Result:
    """Run the command on the state at the time."""
    at, used = parse_time(args.texts, TimeReference(time.time_ns()))
    words = args.words[used:]
    if not words:
        raise AT.misuse("COMMAND is missing")
    command = context.registry.find(words[0].text)
    if command.name not in COMMANDS:
        raise NotInThePastError(command.name)
    if len(words) > 1 and words[1].text == "--help" and words[1].plain:
        return explain(command)
    past = past_context(context, at)
    if command.name == "events":
        past.events = _events_before(past, at)
    bound = bind(command, words[1:], args.line)
    if ALL in command.options and ALL.key in bound.options:
        past.show_own = True
    return inside(context, past, lambda: command.handler(past, bound))


def past_context(context: Context, at: int) -> Context:
    """The session as of a time: the same ids and settings, another bus.

    Raises:
        NoLakeError: the session has no lake.
        NotRecordedError: its recording begins later.
    """
    # Imported here: most sessions have no lake.
    from qmf_shell.session.history_backend import HistoryBackend

    reader = context.past()
    begin = reader.begin()
    if at < begin:
        raise NotRecordedError(*map(Formatter().instant, (at, begin)))
    backend = HistoryBackend(reader, lambda: at)
    return attrs.evolve(
        context,
        backend=backend,
        deletions=backend.deletions,
        events=RecentEvents(),
        # What is lost now may have existed then, and what existed then may be lost now.
        lost=LostIdentities(),
        warnings=[],
        gap=backend.gap,
    )


def inside(context: Context, past: Context, work: Callable[[], Result]) -> Result:
    """Run something on the past: what is destroyed now stays marked, and gaps in the recording become warnings."""
    destroyed = {entry.identity.key: entry.deleted for entry in context.ids.entries() if entry.deleted}
    try:
        return work()
    finally:
        for key, deleted in destroyed.items():
            context.ids.mark_deleted(key, deleted)
        gap = past.gap()
        if gap is not None:
            context.warnings.append(f"incomplete: {gap[0]} since {Formatter().instant(gap[1])}: values are older")
        context.warnings += past.warnings


def _events_before(past: Context, at: int) -> RecentEvents:
    reader = past.past()
    found = RecentEvents()
    events: list[EventView] = [event_view(item, reader.url) for item in reader.events(at - _EVENTS_BEFORE, at)]
    for event in events:
        found.add(event)
    return found


AT = Command(
    name="at",
    usage=("at TIME COMMAND...",),
    summary="Run list, show, find and others on the state at an earlier time",
    help=(
        "The state comes from a lake, which `qmf-pipeline record` writes: start with --lake DIR, or use a context that "
        "names one. All options and formats of the command apply; objects keep their short ids.",
        "A time is written 14:05 or 14:05:30 (the last one that has passed), 2026-11-22 14:05, yesterday 14:05, -10m "
        "(ten minutes ago; s, h, d and w are understood, too), or now; in this machine's time zone.",
        "Objects have the time of their agent's clock. If nothing was recorded at the time, a warning says since when, "
        "and the values are the last ones before.",
        "events shows those of the day before the time.",
    ),
    examples=(
        ("at 14:05 list queue", "the queues at that time"),
        ("at -10m show queue:orders", "an object ten minutes ago"),
        ("at yesterday 23:00 list queue where msgDepth > 100 sort msgDepth desc", "with all that list can do"),
        ("at 2026-11-22 14:05 export queue then.csv", "to a file"),
    ),
    parameters=(
        Parameter("TIME", ParameterKind.TIME, "14:05, yesterday 14:05, 2026-11-22 14:05, -10m", required=True),
        Parameter(
            "COMMAND",
            ParameterKind.LINE,
            "list, show, find, ...",
            required=True,
            repeated=True,
            choices=tuple((name, "") for name in COMMANDS),
        ),
    ),
    handler=run,
)
