"""`help`: lists and explains the commands."""

from __future__ import annotations

from qmf_shell.parsing.command import AnyCommand, BoundArguments, Command, Parameter, ParameterKind
from qmf_shell.results.result import Notice, Result, ResultGroup, Role, Table, TableColumn
from qmf_shell.session.context import Context

_USAGE = (TableColumn("Command", Role.NAME), TableColumn("What it does", wraps=True))


def run(context: Context, args: BoundArguments) -> Result:
    """List all commands, or explain one."""
    name = args.text(0)
    if name is None:
        return _summary(tuple(context.registry))
    return explain(context.registry.find(name))


def _summary(commands: tuple[AnyCommand, ...]) -> Table:
    rows = tuple((command.name, command.summary) for command in commands)
    return Table(
        _USAGE,
        rows,
        title="Commands",
        note="`help COMMAND` or `COMMAND --help` explains one. Tab completes what you type. Every command takes "
        "--json, --csv, --yaml or --table; | PROGRAM, > FILE and >> FILE take its output; ; separates commands.",
    )


def explain(command: AnyCommand) -> ResultGroup:
    """The help of one command: usage, description, arguments, options, examples."""
    parts: list[Result] = [
        Notice("\n".join([f"Usage: {command.usage[0]}", *(f"       {line}" for line in command.usage[1:])])),
        Notice("\n".join([command.summary + ".", *command.help])),
    ]
    takes = [(item.name, item.help) for item in command.parameters]
    takes += [(", ".join(item.names) + (f" {item.value}" if item.value else ""), item.help) for item in command.options]
    if takes:
        parts.append(Table((TableColumn("Argument", Role.NAME), TableColumn("Meaning", wraps=True)), tuple(takes)))
    if command.examples:
        parts.append(
            Table((TableColumn("Example", Role.NAME), TableColumn("What it does", wraps=True)), command.examples)
        )
    if command.aliases:
        parts.append(Notice(f"Other names: {', '.join(command.aliases)}"))
    return ResultGroup(tuple(parts))


HELP = Command(
    name="help",
    usage=("help [COMMAND]",),
    summary="Explain the commands",
    aliases=("?",),
    examples=(("help", "all commands"), ("help call", "how to call a method")),
    parameters=(Parameter("COMMAND", ParameterKind.COMMAND, "a command"),),
    handler=run,
)
