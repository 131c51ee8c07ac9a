"""The commands, one module each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmf_shell.parsing.command import Registry

if TYPE_CHECKING:
    from qmf_shell.parsing.command import Command


def standard() -> Registry:
    """All commands, loaded when the first is wanted."""
    return Registry(_load)


def _load() -> Sequence[Command]:
    from qmf_shell.commands.catalogue import COMMANDS

    return COMMANDS
