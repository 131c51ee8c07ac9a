"""`quit`: leaves the shell."""

from __future__ import annotations

from qmf_shell.parsing.command import BoundArguments, Command
from qmf_shell.results.result import QuitRequest
from qmf_shell.session.context import Context


def run(context: Context, args: BoundArguments) -> QuitRequest:
    """Leave the shell."""
    del context, args
    return QuitRequest()


QUIT = Command(
    name="quit",
    usage=("quit",),
    summary="Leave; the same as Ctrl-D",
    aliases=("exit",),
    handler=run,
)
