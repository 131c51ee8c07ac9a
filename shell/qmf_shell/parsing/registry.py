"""All commands by name. The registry is built from an explicit list; importing a module registers nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Generic

from qmf.errors import NotFoundError
from qmf_shell.parsing.command import Command, ContextT


class UnknownCommandError(NotFoundError):
    """There is no command of this name; the message mentions `help`."""

    def __str__(self) -> str:
        return super().__str__() + ("" if self.near else "; `help` lists them")


class Registry(Generic[ContextT]):
    """Commands by name, in the order of their list, which is loaded when it is first needed."""

    def __init__(self, load: Callable[[], Iterable[Command[ContextT]]] = tuple) -> None:
        """Make a registry, whose commands are not loaded yet.

        Args:
            load: returns the commands; by default there are none.
        """
        self._load = load

    @functools.cached_property
    def _commands(self) -> tuple[Command[ContextT], ...]:
        return tuple(self._load())

    @functools.cached_property
    def _by_name(self) -> dict[str, Command[ContextT]]:
        found: dict[str, Command[ContextT]] = {}
        for command in self._commands:
            for name in (command.name, *command.aliases):
                if name in found:
                    raise ValueError(f"two commands are called {name!r}")
                found[name] = command
        return found

    def __iter__(self) -> Iterator[Command[ContextT]]:
        return iter(self._commands)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of a command, aliases included."""
        return tuple(self._by_name)

    def get(self, name: str) -> Command[ContextT] | None:
        """The command called `name`, in any case of letters, or None."""
        return self._by_name.get(name.lower())

    def find(self, name: str) -> Command[ContextT]:
        """The command called `name`, in any case of letters.

        Raises:
            UnknownCommandError: there is none.
        """
        command = self.get(name)
        if command is None:
            raise UnknownCommandError("command", name, self.names)
        return command
