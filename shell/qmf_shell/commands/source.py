"""`source`: runs the commands in a file."""

from __future__ import annotations

from pathlib import Path

from qmf_shell.parsing.command import BoundArguments, Command, Parameter, ParameterKind
from qmf_shell.results.result import ScriptRequest
from qmf_shell.session.context import Context


def run(context: Context, args: BoundArguments) -> ScriptRequest:
    """Run a file."""
    del context
    return ScriptRequest(Path(args.texts[0]).expanduser())


SOURCE = Command(
    name="source",
    usage=("source FILE",),
    summary="Run the commands in a file",
    help=("One or several per line; # begins a comment. After a failure the next one runs.",),
    aliases=(".",),
    examples=(("source nightly.qmf", "the commands of a file"),),
    parameters=(Parameter("FILE", ParameterKind.FILE, "the file", required=True),),
    handler=run,
)
