"""`quit`: leave."""

from __future__ import annotations

from qmf_shell.parsing.command import Command, Given
from qmf_shell.results.result import Quit
from qmf_shell.session.context import Context


def run(context: Context, given: Given) -> Quit:
    """Say that the user wants to leave."""
    del context, given
    return Quit()


QUIT = Command(
    name="quit",
    usage=("quit",),
    summary="Leave (so does Ctrl-D)",
    aliases=("exit",),
    handler=run,
)
