"""`agents`: the agents on the bus."""

from __future__ import annotations

from qmf_shell.parsing.command import BoundArguments, Command
from qmf_shell.results.cells import Duration
from qmf_shell.results.result import Column, Role, Table
from qmf_shell.session.context import Context
from qmf_shell.text import plural

_COLUMNS = (
    Column("Agent", Role.NAME, wraps=True),
    Column("Vendor", spare=True),
    Column("Product", spare=True),
    Column("Instance", wraps=True, spare=True),
    Column("Epoch", Role.NUMBER),
    Column("Heartbeat", Role.NUMBER),
    Column("Broker", Role.FAINT, wraps=True),
)


def run(context: Context, args: BoundArguments) -> Table:
    """List the agents."""
    del args
    agents = context.agents()
    rows = tuple(
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
    return Table(_COLUMNS, rows, title=plural(len(agents), "agent"), empty="No agent has answered yet.")


AGENTS = Command(
    name="agents",
    usage=("agents",),
    summary="List the agents",
    help=("Epoch counts the starts of an agent; Heartbeat is the interval between its heartbeats.",),
    handler=run,
)
