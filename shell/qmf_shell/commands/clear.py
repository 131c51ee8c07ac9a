"""`clear`: empties the screen."""

from __future__ import annotations

from qmf_shell.parsing.command import BoundArguments, Command
from qmf_shell.results.result import ClearRequest
from qmf_shell.session.context import Context


def run(context: Context, args: BoundArguments) -> ClearRequest:
    """Clear the screen."""
    del context, args
    return ClearRequest()


CLEAR = Command(
    name="clear",
    usage=("clear",),
    summary="Empty the screen; the same as Ctrl-L",
    handler=run,
)
