"""`--print-completion SHELL` of all commands: a script by which bash or zsh completes their options.

The script is made by the library shtab from the command's own parser; it is loaded when it is asked for.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from qmf._extras import install_hint

SHELLS = ("bash", "zsh")

#: What stands for the value of an option, and what it is completed with.
_FILES = {"FILE", "SCRIPT", "SCHEMA.xml", "<file>", "<cert>", "<key>"}
_FOLDERS = {"DIR"}

_CONTEXTS = "_qmf_contexts"

#: The names of the contexts in the settings file, without starting a program.
_SETTINGS = '"${XDG_CONFIG_HOME:-$HOME/.config}/qmf-shell/config.toml"'
_LIST_CONTEXTS = rf"sed -n 's/^\[contexts\.\([^].]*\)\].*/\1/p' {_SETTINGS} 2>/dev/null"

_PREAMBLE = {
    "bash": f'{_CONTEXTS}() {{\n  compgen -W "$({_LIST_CONTEXTS})" -- "$1"\n}}\n',
    "zsh": f'{_CONTEXTS}() {{\n  local -a names\n  names=(${{(f)"$({_LIST_CONTEXTS})"}})\n  compadd -a names\n}}\n',
}


def add_completion_option(parser: argparse.ArgumentParser) -> None:
    """Add `--print-completion`."""
    parser.add_argument(
        "--print-completion",
        choices=SHELLS,
        metavar="SHELL",
        action=_PrintCompletion,
        help=f"print a script that completes this command in {' or '.join(SHELLS)}",
    )


class _PrintCompletion(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,  # noqa: ARG002
        values: str | Sequence[Any] | None,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        try:
            import shtab
        except ImportError:
            parser.error(f"--print-completion needs the library shtab: {install_hint('completion')}")
        for action in _actions(parser):
            metavar = action.metavar
            if action.dest == "context":
                action.complete = dict.fromkeys(SHELLS, _CONTEXTS)  # type: ignore[attr-defined]
            elif metavar in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            elif metavar in _FOLDERS:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        called = Path(sys.argv[0]).name
        if called.startswith(("qmf-", "qpid-")):
            parser.prog = called  # a command may have several names
        print(shtab.complete(parser, str(values), preamble=_PREAMBLE[str(values)]))
        parser.exit()


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options and arguments of a parser and of its subcommands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in dict.fromkeys(action.choices.values()):
                yield from _actions(command)
