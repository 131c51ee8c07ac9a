"""The commands, one module each, and the list of them."""

from __future__ import annotations

from qmf_shell.commands.agents import AGENTS
from qmf_shell.commands.call import CALL
from qmf_shell.commands.events import EVENTS
from qmf_shell.commands.help import HELP
from qmf_shell.commands.list import LIST
from qmf_shell.commands.quit import QUIT
from qmf_shell.commands.schema import SCHEMA
from qmf_shell.commands.show import SHOW
from qmf_shell.registry import Registry


def standard() -> Registry:
    """All commands, in the order in which `help` shows them."""
    return Registry([AGENTS, LIST, SHOW, SCHEMA, CALL, EVENTS, HELP, QUIT])
