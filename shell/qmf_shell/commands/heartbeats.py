"""`heartbeats`: the latest heartbeat of each agent, or new ones as they come."""

from __future__ import annotations

import time
from collections.abc import Iterator

from qmf_shell.parsing.command import BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.results.cells import Cell, Duration, Instant
from qmf_shell.results.result import Result, ResultStream, Role, StreamLine, Table, TableColumn
from qmf_shell.session.context import Context
from qmf_shell.text import plural

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
#: An agent is late when its last heartbeat is older than so many intervals.
_LATE = 1.5


def run(context: Context, args: BoundArguments) -> Result:
    """Show the latest heartbeat of each agent, or follow new ones."""
    wanted = (args.text(0) or "").lower()
    if "follow" in args.options:
        return ResultStream(_follow(context, wanted), title="Waiting for heartbeats; Ctrl-C ends it")
    rows = _rows(context, wanted)
    return Table(_COLUMNS, tuple(rows), title=plural(len(rows), "agent"), empty="No agent has answered yet.")


def _rows(context: Context, wanted: str) -> list[tuple[Cell, ...]]:
    now = time.time_ns()
    latest = dict(context.heartbeats.latest())
    rows: list[tuple[Cell, ...]] = []
    agents = context.agents()
    present = {(item.name, item.broker) for item in agents}
    for agent in agents:
        if wanted not in agent.name.lower():
            continue
        every = Duration(round(agent.heartbeat * 1e9)) if agent.heartbeat else None
        found = latest.get((agent.name, agent.broker))
        if found is None:
            rows.append((agent.name, None, None, every, 0, "no heartbeat yet", agent.broker))
            continue
        last, count = found
        age = max(0, now - last.received)
        late = bool(agent.heartbeat) and age > agent.heartbeat * _LATE * 1e9
        state = "late" if late else "alive"
        rows.append((agent.name, Instant(last.received), _age(age), every, count, state, agent.broker))
    for key, (last, count) in sorted(latest.items()):
        if key not in present and wanted in last.agent.lower():
            every = Duration(round(last.interval * 1e9)) if last.interval else None
            age = max(0, now - last.received)
            rows.append((last.agent, Instant(last.received), _age(age), every, count, "gone", last.broker))
    return rows


def _age(nanoseconds: int) -> Duration:
    return Duration(nanoseconds // 100_000_000 * 100_000_000)


def _follow(context: Context, wanted: str) -> Iterator[StreamLine]:
    for item in context.heartbeats.follow():
        if wanted in item.agent.lower():
            every = Duration(round(item.interval * 1e9)) if item.interval else None
            yield StreamLine(_LINE, (Instant(item.received), item.agent, every, Instant(item.timestamp), item.broker))


HEARTBEATS = Command(
    name="heartbeats",
    usage=("heartbeats [-f] [AGENT]",),
    summary="Show the last heartbeat of each agent, or follow new ones",
    help=(
        "late: no heartbeat for one and a half intervals. gone: the agent is considered lost, after three intervals.",
        "With -f, heartbeats are printed as they come until Ctrl-C; Clock is the time by the agent's clock.",
    ),
    examples=(("heartbeats", "the latest of each agent"), ("heartbeats -f qpidd", "those of brokers, as they come")),
    parameters=(Parameter("AGENT", ParameterKind.TEXT, "only agents whose name contains this"),),
    options=(Option(("-f", "--follow"), "print heartbeats as they come, until Ctrl-C"),),
    handler=run,
)
