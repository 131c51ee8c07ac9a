"""`heartbeats`: the latest heartbeat of each agent, or new ones as they come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qmf.views.cells import Cell, Duration, Instant
from qmf.views.text import plural
from qmf_shell.objects.heartbeat_states import heartbeat_states
from qmf_shell.parsing.command import PLAIN, BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.results.result import Result, ResultStream, Role, StreamLine, Table, TableColumn
from qmf_shell.screens.start import screen_of
from qmf_shell.session.context import Context

if TYPE_CHECKING:
    from qmf_shell.screens.state import Page

_COLUMNS = (
    TableColumn("Agent", Role.NAME, shortens=True),
    TableColumn("Last", Role.TIME, spare=True),
    TableColumn("Ago", Role.NUMBER),
    TableColumn("Every", Role.NUMBER),
    TableColumn("Seen", Role.NUMBER, spare=True),
    TableColumn("State"),
    TableColumn("Broker", Role.FAINT, shortens=True, spare=True),
)
_LINE = (
    TableColumn("Time", Role.TIME),
    TableColumn("Agent", Role.NAME),
    TableColumn("Every", Role.NUMBER),
    TableColumn("Clock", Role.FAINT),
    TableColumn("Broker", Role.FAINT),
)


def run(context: Context, args: BoundArguments) -> Result:
    """Show the latest heartbeat of each agent, or follow new ones."""
    wanted = (args.text(0) or "").lower()
    if "follow" in args.options:
        lines = ResultStream(_follow(context, wanted), title="Waiting for heartbeats; Ctrl-C ends it")
        return screen_of(context, args, lines, lambda: _page(context, wanted))
    rows = _rows(context, wanted)
    return Table(_COLUMNS, tuple(rows), title=plural(len(rows), "agent"), empty="No agent has answered yet.")


def _rows(context: Context, wanted: str) -> list[tuple[Cell, ...]]:
    rows: list[tuple[Cell, ...]] = []
    for item in heartbeat_states(context, list(context.agents()), wanted):
        every = Duration(round(item.interval * 1e9)) if item.interval else None
        last = None if item.last is None else Instant(item.last.received)
        age = None if item.last is None else Duration(item.age // 100_000_000 * 100_000_000)
        rows.append((item.agent, last, age, every, item.count, item.state, item.broker))
    return rows


def _page(context: Context, wanted: str) -> Page:
    from qmf_shell.screens.opening import PageFactory

    return PageFactory(context, context.settings.interval).heartbeats(wanted)


def _follow(context: Context, wanted: str) -> Iterator[StreamLine]:
    for item in context.heartbeats.follow():
        if wanted in item.agent.lower():
            every = Duration(round(item.interval * 1e9)) if item.interval else None
            yield StreamLine(_LINE, (Instant(item.received), item.agent, every, Instant(item.timestamp), item.broker))


HEARTBEATS = Command(
    name="heartbeats",
    usage=("heartbeats [-f] [-p] [AGENT]",),
    summary="Show the last heartbeat of each agent, or follow new ones",
    help=(
        "late: no heartbeat for one and a half intervals. gone: the agent is considered lost, after three intervals.",
        "With -f, the agents fill the terminal with the age of their heartbeats; Enter shows those of one agent. In a "
        "file, in a pipe, or with -p heartbeats are printed as they come; Clock is the time by the agent's clock. "
        "Ctrl-C or q ends it.",
    ),
    examples=(("heartbeats", "the latest of each agent"), ("heartbeats -f qpidd", "those of brokers, as they come")),
    parameters=(Parameter("AGENT", ParameterKind.TEXT, "only agents whose name contains this"),),
    options=(Option(("-f", "--follow"), "show heartbeats as they come, until q or Ctrl-C"), PLAIN),
    handler=run,
)
