"""The list of all commands."""

from __future__ import annotations

from qmf_shell.commands.access import MAY, WHY
from qmf_shell.commands.agents import AGENTS
from qmf_shell.commands.at import AT
from qmf_shell.commands.call import CALL
from qmf_shell.commands.columns import COLUMNS
from qmf_shell.commands.connect import CONNECT, USE
from qmf_shell.commands.diff import DIFF
from qmf_shell.commands.events import EVENTS
from qmf_shell.commands.export import EXPORT
from qmf_shell.commands.find import FIND
from qmf_shell.commands.heartbeats import HEARTBEATS
from qmf_shell.commands.help import HELP
from qmf_shell.commands.history import HISTORY
from qmf_shell.commands.list import LIST
from qmf_shell.commands.plot import PLOT
from qmf_shell.commands.refs import REFS
from qmf_shell.commands.replay import REPLAY
from qmf_shell.commands.schema import SCHEMA
from qmf_shell.commands.set import ALIAS, CLEAR, QUIT, RECORD, SET, SOURCE
from qmf_shell.commands.setprop import SETPROP
from qmf_shell.commands.show import SHOW
from qmf_shell.commands.top import TOP
from qmf_shell.commands.tree import TREE
from qmf_shell.commands.watch import WATCH

_LOOKING = (AGENTS, LIST, SHOW, SCHEMA, FIND, TREE, REFS)
_FOLLOWING = (WATCH, TOP, PLOT, EVENTS, HEARTBEATS)
_PAST = (AT, DIFF, HISTORY, REPLAY)
_ACTING = (CALL, SETPROP, WHY, MAY, EXPORT)
_SESSION = (CONNECT, USE, SET, COLUMNS, ALIAS, RECORD, SOURCE, CLEAR, HELP, QUIT)

#: All commands, in the order in which `help` shows them.
COMMANDS = (*_LOOKING, *_FOLLOWING, *_PAST, *_ACTING, *_SESSION)
