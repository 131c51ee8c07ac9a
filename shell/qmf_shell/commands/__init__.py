"""The commands, one module each."""

from __future__ import annotations

from collections.abc import Sequence

from qmf_shell.parsing.command import Command
from qmf_shell.parsing.registry import Registry
from qmf_shell.session.context import Context


def standard() -> Registry[Context]:
    """All commands; their modules are loaded when the first one is needed."""
    return Registry(_load)


def _load() -> Sequence[Command[Context]]:
    from qmf_shell.commands.catalogue import COMMANDS

    return COMMANDS
