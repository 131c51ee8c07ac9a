"""`set`, `alias`, `record`, `source`, `clear`, `quit`: settings, aliases, transcripts, scripts, end of the session."""

from __future__ import annotations

from pathlib import Path

from qmf.errors import NotFoundError
from qmf.views.conditions.words import split_line
from qmf_shell.parsing.command import BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.parsing.statements import split_statements
from qmf_shell.results.result import (
    ClearRequest,
    Notice,
    QuitRequest,
    Result,
    Role,
    ScriptRequest,
    Table,
    TableColumn,
    TranscriptRequest,
)
from qmf_shell.session.context import Context
from qmf_shell.settings import SETTINGS, SettingsError, check_alias, find_setting

_SETTINGS = (
    TableColumn("Setting", Role.NAME),
    TableColumn("Value"),
    TableColumn("Values", wraps=True, spare=True),
    TableColumn("Meaning", wraps=True),
)
_ALIASES = (TableColumn("Alias", Role.NAME), TableColumn("Stands for", wraps=True))


def run_set(context: Context, args: BoundArguments) -> Result:
    """Show settings, or change one."""
    name, value = args.text(0), args.text(1)
    if name is not None and value is not None:
        context.settings.change(name, value)
        return Notice(f"{find_setting(name).name} is {context.settings[find_setting(name).name]}")
    shown = SETTINGS if name is None else (find_setting(name),)
    rows = tuple(
        (item.name, context.settings[item.name], ", ".join(item.values) or "number", item.help) for item in shown
    )
    return Table(_SETTINGS, rows, title="Settings")


def run_alias(context: Context, args: BoundArguments) -> Result:
    """Show aliases, or define or delete one."""
    aliases = context.settings.aliases
    name = args.text(0)
    if name is None:
        return Table(_ALIASES, tuple(sorted(aliases.items())), title="Aliases", empty="No aliases.")
    if "delete" in args.options:
        if name not in aliases:
            raise NotFoundError("alias", name, aliases)
        del aliases[name]
        return Notice(f"alias {name} deleted")
    if len(args.words) == 1 and "=" not in name:
        if name not in aliases:
            raise NotFoundError("alias", name, aliases)
        return Table(_ALIASES, ((name, aliases[name]),))
    # One word may be in quotes, which keeps ; | and > in it for later.
    text = args.texts[1] if len(args.words) == 2 else args.line[args.words[0].end :].strip()
    check_alias(name, text)
    if context.registry.get(name) is not None:
        raise SettingsError(f"{name} is a command: an alias needs another name")
    for statement in split_statements(text):
        context.registry.find(split_line(statement.command)[0].text)
    aliases[name] = text
    return Notice(f"{name} stands for: {text}")


def run_record(context: Context, args: BoundArguments) -> TranscriptRequest:
    """Start or stop the transcript."""
    del context
    word = args.texts[0].lower()
    path = args.text(1)
    if word == "off" and path is None:
        return TranscriptRequest(None)
    if word == "on" and path is not None:
        return TranscriptRequest(Path(path).expanduser())
    raise SettingsError("write record on FILE, or record off")


def run_source(context: Context, args: BoundArguments) -> ScriptRequest:
    """Run a file."""
    del context
    return ScriptRequest(Path(args.texts[0]).expanduser())


def run_clear(context: Context, args: BoundArguments) -> ClearRequest:
    """Clear the screen."""
    del context, args
    return ClearRequest()


def run_quit(context: Context, args: BoundArguments) -> QuitRequest:
    """Leave the shell."""
    del context, args
    return QuitRequest()


SET = Command(
    name="set",
    usage=("set", "set NAME VALUE"),
    summary="Show the settings, or change one",
    help=(
        "Changes last until you leave. To keep them, write them to the configuration file, see docs/shell.md.",
        "time-format short shows only the time of day, as the manual of qpid-tool does.",
    ),
    examples=(("set", "all settings"), ("set time-format short", "times without their date")),
    parameters=(
        Parameter("NAME", ParameterKind.SETTING, "a setting"),
        Parameter("VALUE", ParameterKind.SETTING_VALUE, "its new value"),
    ),
    handler=run_set,
)
ALIAS = Command(
    name="alias",
    usage=("alias [NAME [COMMAND...]]", "alias -d NAME"),
    summary="Show aliases, or define a word for the beginning of a command",
    help=(
        "The rest of the line is appended to the text that the word stands for. Text with ; or | must be in quotes.",
    ),
    examples=(
        ("alias waiting 'list queue where has msgDepth | sort -k3'", "with a program"),
        ("alias full list queue where msgDepth > 1000", "then `full` lists them, `full limit 3` three of them"),
        ("alias", "all aliases"),
    ),
    parameters=(
        Parameter("NAME", ParameterKind.TEXT, "a word"),
        Parameter("COMMAND", ParameterKind.TEXT, "what it stands for", repeated=True),
    ),
    options=(Option(("-d", "--delete"), "remove it"),),
    options_first=True,
    handler=run_alias,
)
RECORD = Command(
    name="record",
    usage=("record on FILE", "record off"),
    summary="Write commands and their results to a file, too",
    help=("Commands and results are appended to the file as text without colours.",),
    examples=(("record on /tmp/incident.txt", "start"), ("record off", "stop")),
    parameters=(
        Parameter(
            "on|off", ParameterKind.CHOICE, "start or stop", required=True, choices=(("on", "start"), ("off", "stop"))
        ),
        Parameter("FILE", ParameterKind.FILE, "the file"),
    ),
    handler=run_record,
)

SOURCE = Command(
    name="source",
    usage=("source FILE",),
    summary="Run the commands in a file",
    help=("One or several per line; # begins a comment. After a failure the next one runs.",),
    aliases=(".",),
    examples=(("source nightly.qmf", "the commands of a file"),),
    parameters=(Parameter("FILE", ParameterKind.FILE, "the file", required=True),),
    handler=run_source,
)

CLEAR = Command(
    name="clear",
    usage=("clear",),
    summary="Empty the screen; the same as Ctrl-L",
    handler=run_clear,
)

QUIT = Command(
    name="quit",
    usage=("quit",),
    summary="Leave; the same as Ctrl-D",
    aliases=("exit",),
    handler=run_quit,
)
