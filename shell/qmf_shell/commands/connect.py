"""`connect`, `use`: go on with other brokers, by URL or by the name of a context."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from qmf.bus.url import parse_url
from qmf.connecting import BrokerTarget, ConnectionContext, PasswordFinder, TlsFiles, targets_of, targets_of_context
from qmf.errors import CallerError
from qmf.views.text import clean, listing, plural
from qmf_shell.parsing.command import BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.results.result import Notice, NoticeLevel, Result, ResultGroup, Role, Table, TableColumn
from qmf_shell.session.context import Context

_BROKERS = (
    TableColumn("Broker", Role.NAME, wraps=True),
    TableColumn("State"),
    TableColumn("Reason", wraps=True),
)
_CONTEXTS = (
    TableColumn("Context", Role.NAME),
    TableColumn("In use"),
    TableColumn("Brokers", wraps=True),
    TableColumn("User"),
)


class NoSwitchError(CallerError):
    """The session cannot go on with other brokers."""

    def __str__(self) -> str:
        return "this session has a lake and no broker: start qmf-shell with -b URL or --context NAME"


def run_connect(context: Context, args: BoundArguments) -> Result:
    """Go on with the brokers of some URLs; without any, show the connections."""
    urls = args.texts
    if not urls:
        rows = tuple(
            (item.name or item.url, "connected" if item.connected else "not connected", item.reason or None)
            for item in context.backend.statuses
        )
        return Table(_BROKERS, rows, title="Connections")
    options, notes = args.options, list[str]()
    files = {name: Path(options[name]).expanduser() for name in ("ca", "cert", "key") if name in options}
    targets = targets_of(
        urls,
        user=options.get("user"),
        tls=TlsFiles(**files, insecure="insecure" in options),
        domain=options.get("domain"),
        passwords=_passwords(context, notes),
    )
    if any(parse_url(url).password for url in urls):
        notes.append("A password in a URL stays in the history; with --user NAME you are asked for it.")
    return _switch(context, targets, None, notes)


def run_use(context: Context, args: BoundArguments) -> Result:
    """Go on with the brokers of a context; without a name, show the contexts."""
    contexts = context.settings.contexts
    name = args.text(0)
    if name is None:
        used = context.connection.name if context.connection is not None else None
        rows = tuple(
            (item.name, "yes" if item.name == used else None, ", ".join(item.urls), item.user)
            for item in contexts.by_name.values()
        )
        return Table(_CONTEXTS, rows, title="Contexts", empty="No contexts: the settings file defines them.")
    found = contexts.find(name)
    notes: list[str] = []
    return _switch(context, targets_of_context(found, _passwords(context, notes)), found, notes)


def _passwords(context: Context, notes: list[str]) -> PasswordFinder:
    """Finds passwords; what it warns of is added to `notes`."""
    prompter = context.prompter

    def ask(question: str) -> str | None:
        return None if prompter is None else prompter.secret(question)

    return PasswordFinder(os.environ, ask=ask, warn=notes.append)


def _switch(
    context: Context, targets: Sequence[BrokerTarget], connection: ConnectionContext | None, notes: Sequence[str]
) -> Result:
    if context.switch is None:
        raise NoSwitchError
    context.report(f"connecting to {listing(map(str, targets), 'and')}")
    context.switch(targets, connection)
    backend = context.backend
    for item in backend.statuses:
        if not item.connected:
            context.warnings.append(f"no connection to {item.url} yet: {item.reason}; it is retried")
    where = listing([clean(item.url) for item in backend.statuses if item.connected], "and")
    agents = plural(len(backend.agents()), "agent")
    done = Notice(f"Connected to {where}, {agents}. Short ids and events begin anew.", NoticeLevel.GOOD)
    return ResultGroup((*(Notice(note, NoticeLevel.WARNING) for note in notes), done)) if notes else done


CONNECT = Command(
    name="connect",
    usage=("connect", "connect [--user NAME] [--ca FILE] [--cert FILE] [--key FILE] [--insecure] URL..."),
    summary="Go on with another broker, or show the connections",
    help=(
        "Short ids and events begin anew. If no connection can be made, the session stays where it is. You are asked "
        "for the password of a user.",
    ),
    examples=(
        ("connect amqp://mq2", "another broker"),
        ("connect --user ann --ca ca.pem amqps://mq2", "with TLS and a user"),
        ("connect", "the connections and their state"),
    ),
    parameters=(Parameter("URL", ParameterKind.TEXT, "one or several brokers", repeated=True),),
    options=(
        Option(("-u", "--user"), "whom to log in as", "NAME"),
        Option(("--ca",), "file with the authorities that are trusted", "FILE"),
        Option(("--cert",), "file with your certificate", "FILE"),
        Option(("--key",), "file with its key", "FILE"),
        Option(("--insecure",), "do not check the identity of the broker"),
        Option(("--domain",), "QMF domain", "NAME"),
    ),
    handler=run_connect,
)
USE = Command(
    name="use",
    usage=("use [CONTEXT]",),
    summary="Go on with the brokers of a named context, or show the contexts",
    help=("The settings file defines contexts, see docs/shell.md. Short ids and events begin anew.",),
    examples=(("use lab", "the brokers of the context lab"), ("use", "all contexts")),
    parameters=(Parameter("CONTEXT", ParameterKind.CONTEXT, "the name of a context"),),
    handler=run_use,
)
