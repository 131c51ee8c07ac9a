"""`agents`: the agents on the bus."""

from __future__ import annotations

from qmf.views.agents import path_text
from qmf.views.cells import Cell, Duration
from qmf.views.text import plural
from qmf_shell.parsing.command import BoundArguments, Command
from qmf_shell.results.result import Role, Table, TableColumn
from qmf_shell.session.context import Context

_COLUMNS = (
    TableColumn("Agent", Role.NAME, shortens=True),
    TableColumn("Vendor", spare=True),
    TableColumn("Product", spare=True),
    TableColumn("Instance", shortens=True, spare=True),
    TableColumn("Epoch", Role.NUMBER),
    TableColumn("Heartbeat", Role.NUMBER),
    TableColumn("Broker", Role.FAINT, shortens=True),
)
_VIA = TableColumn("Via", Role.FAINT, shortens=True)


def run(context: Context, args: BoundArguments) -> Table:
    """List the agents."""
    del args
    agents = context.agents()
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            agent.name,
            agent.vendor,
            agent.product,
            agent.instance,
            agent.epoch or None,
            Duration(round(agent.heartbeat * 1e9)) if agent.heartbeat else None,
            agent.broker,
        )
        for agent in agents
    )
    columns: tuple[TableColumn, ...] = _COLUMNS
    if any(agent.path for agent in agents):  # most buses are those of one broker
        columns = (*_COLUMNS, _VIA)
        rows = tuple((*row, path_text(agent.path)) for row, agent in zip(rows, agents, strict=True))
    return Table(columns, rows, title=plural(len(agents), "agent"), empty="No agent has answered yet.")


AGENTS = Command(
    name="agents",
    usage=("agents",),
    summary="List the agents",
    help=(
        "Epoch counts the starts of an agent; Heartbeat is the interval between its heartbeats. If there are agents "
        "behind other brokers, Via names the brokers by which they are reached, the nearest one first.",
    ),
    handler=run,
)
