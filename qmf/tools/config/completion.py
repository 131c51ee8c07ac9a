"""Completion of `qpid-config` in shells: scripts that ask the program itself, which asks the broker for names."""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Sequence

from qmf.client.objects import is_own
from qmf.errors import QmfError
from qmf.tools.config.options import COMMANDS, EXCHANGE_TYPES, build_parser, with_bindings_flag
from qmf.tools.connecting import access_of

#: Seconds that the broker has: nobody waits longer for the Tab key.
WAIT_LIMIT = 2.0

#: Classes that ``list``, ``add`` and ``del`` are often used with.
_CLASSES = (
    *("binding", "broker", "connection", "domain", "exchange", "incoming", "link", "outgoing", "queue", "session"),
    "subscription",
)

_SCRIPTS = {
    "bash": """\
_qpid_config() {
    local IFS=$'\\n'
    COMPREPLY=($(compgen -W "$(qpid-config --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" \\
        -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _qpid_config qpid-config""",
    "zsh": """\
#compdef qpid-config
_qpid_config() {
    local -a found
    found=("${(@f)$(qpid-config --complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    compadd -a found || _files
}
compdef _qpid_config qpid-config""",
    "fish": """\
function __qpid_config
    set -l words (commandline -opc) (commandline -ct)
    qpid-config --complete $words[2..-1] 2>/dev/null
end
complete -c qpid-config -a '(__qpid_config)'""",
}


def completion_script(shell: str) -> str:
    """The script for bash, zsh or fish; the shell runs it at its start."""
    return _SCRIPTS[shell]


def candidates(words: Sequence[str]) -> list[str]:
    """What may follow; `words`: the arguments so far; the last one is what is being typed, perhaps empty."""
    typed = words[-1] if words else ""
    parser = build_parser()
    before = list(words[:-1])
    if before and (action := _option(parser, before[-1])) is not None and action.nargs != 0:
        return _beginning(typed, [str(choice) for choice in action.choices or ()])
    if typed.startswith("-"):
        return _beginning(typed, sorted(parser._option_string_actions))
    options = _parse(parser, before)
    return [] if options is None else _beginning(typed, _words(options))


def _beginning(typed: str, found: Sequence[str]) -> list[str]:
    return [item for item in found if item.startswith(typed)]


def _option(parser: argparse.ArgumentParser, word: str) -> argparse.Action | None:
    return parser._option_string_actions.get(word)


def _parse(parser: argparse.ArgumentParser, before: Sequence[str]) -> argparse.Namespace | None:
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
        return parser.parse_intermixed_args(with_bindings_flag(before))
    return None


def _words(options: argparse.Namespace) -> list[str]:
    """Candidates for the next word of the command."""
    match options.words:
        case []:
            return list(COMMANDS)
        case ["add" | "del" | "list"]:
            return list(_CLASSES)
        case ["add", "exchange"]:
            return list(EXCHANGE_TYPES)
        case ["exchanges"] | ["del", "exchange"] | ["bind" | "unbind"]:
            return _names(options, "exchange")
        case ["queues"] | ["del", "queue"] | ["bind" | "unbind", _]:
            return _names(options, "queue")
        case ["unbind", exchange, queue]:
            return _keys(options, exchange, queue)
        case ["bind", _, _, _]:
            return ["all", "any"]
    return []


def _nobody(question: str) -> None:
    """Nobody is asked for a password while they type."""
    del question


def _names(options: argparse.Namespace, kind: str) -> list[str]:
    try:
        with access_of(options, ask=_nobody).connect(WAIT_LIMIT) as broker:
            found = [item for item in broker.list(kind) if options.all or not is_own(item)]
            return sorted(name for item in found if (name := str(item.get("name", ""))))
    except QmfError:
        return []


def _keys(options: argparse.Namespace, exchange: str, queue: str) -> list[str]:
    try:
        with access_of(options, ask=_nobody).connect(WAIT_LIMIT) as broker:
            bindings = broker.getAllBindings()
    except QmfError:
        return []
    return sorted(str(item.bindingKey) for item in bindings if (item.exchangeRef, item.queueRef) == (exchange, queue))
