"""What a command is, and the table of all commands.

A command is a frozen value. The registry is built from an explicit list (`commands.catalogue`); importing a module
registers nothing.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from qmf.errors import CallerError, NotFoundError
from qmf_shell.parsing.words import Word

if TYPE_CHECKING:
    from qmf_shell.results.result import Result
    from qmf_shell.session.context import Context


class UsageError(CallerError):
    """A command was given too much, too little or an unknown option.

    Attributes:
        command: its name.
        reason: what is wrong.
        usage: how it is used.
    """

    def __init__(self, command: str, reason: str, usage: str) -> None:
        self.command = command
        self.reason = reason
        self.usage = usage
        super().__init__(command, reason, usage)

    def __str__(self) -> str:
        return f"{self.command}: {self.reason} (usage: {self.usage})"


class UnknownCommandError(NotFoundError):
    """No command is called so; tells where to look."""

    def __str__(self) -> str:
        return super().__str__() + ("" if self.near else "; `help` lists them")


class ParameterKind(enum.Enum):
    """What a parameter stands for: what Tab offers there."""

    COMMAND = "command"
    CLASS = "class"  #: a class of objects
    ANY_CLASS = "any class"  #: of objects or events
    EVENT_CLASS = "event class"
    OBJECT = "object"  #: short id, name or key; of the class that an earlier parameter names, if any
    METHOD = "method"  #: of the object that an earlier parameter names
    VALUES = "values"  #: inputs of that method
    SELECTION = "selection"  #: what follows a class: ids, conditions, order, columns
    TARGET = "target"  #: an object, a range of short ids, or a class
    CALL = "call"  #: what follows the target of a call: conditions of a class, a method, its inputs
    STATISTICS = "statistics"  #: values that can be drawn, of the object or class that an earlier parameter names
    SETTABLE = "settable"  #: NAME=VALUE of the read-write properties of the object before
    SETTING = "setting"  #: a setting of this program
    CHOICE = "choice"  #: a value of the setting before
    FILE = "file"
    WORDS = "words"  #: one of the parameter's words
    TEXT = "text"


@attrs.frozen
class Parameter:
    """A positional argument of a command.

    Attributes:
        name: as in the usage, e.g. ``CLASS``.
        kind: what it stands for.
        help: what it means, in a few words.
        required: must be given.
        many: takes all words that are left.
        words: for `ParameterKind.WORDS`: what it may be, with what that means.
    """

    name: str
    kind: ParameterKind
    help: str
    required: bool = False
    many: bool = False
    words: tuple[tuple[str, str], ...] = ()


@attrs.frozen
class Option:
    """A switch of a command.

    Attributes:
        names: ways to write it, shortest first.
        help: what it does.
        value: name of its value in the usage, or None when it takes none.
    """

    names: tuple[str, ...]
    help: str
    value: str | None = None

    @property
    def key(self) -> str:
        """Its long name without dashes: how handlers ask for it."""
        return self.names[-1].lstrip("-")


@attrs.frozen
class BoundArguments:
    """What the user gave to a command, checked against its parameters and options.

    Attributes:
        words: positional arguments, in order.
        options: values by key; "" for options without value.
        line: the whole line as typed.
    """

    words: tuple[Word, ...] = ()
    options: Mapping[str, str] = attrs.field(factory=dict)
    line: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The positional arguments as texts."""
        return tuple(word.text for word in self.words)

    def text(self, number: int) -> str | None:
        """The positional argument `number` from 0, or None when it was not given."""
        return self.words[number].text if number < len(self.words) else None


Handler = Callable[["Context", BoundArguments], "Result"]


@attrs.frozen(kw_only=True)
class Command:
    """A command.

    Attributes:
        name: the word that calls it.
        aliases: other words that do.
        usage: one line per form, e.g. ``list CLASS [ID...]``.
        summary: what it does, for the list of commands.
        help: more of it, one string per paragraph.
        examples: lines with what they do.
        parameters, options: what it takes.
        options_first: options stand before the first argument; from there on, dashes are part of arguments.
        handler: does it. Raises `qmf.errors.QmfError` for everything that can go wrong.
    """

    name: str
    summary: str
    handler: Handler
    usage: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    help: tuple[str, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    parameters: tuple[Parameter, ...] = ()
    options: tuple[Option, ...] = ()
    options_first: bool = False

    def option(self, name: str) -> Option | None:
        """The option written `name`, or None."""
        return next((item for item in self.options if name in item.names), None)


class Registry:
    """All commands by name, in the order of the list. Loaded with the first question: no prompt waits for them."""

    def __init__(self, load: Callable[[], Iterable[Command]]) -> None:
        """
        Args:
            load: gives the commands.
        """
        self._load = load

    @functools.cached_property
    def _commands(self) -> tuple[Command, ...]:
        return tuple(self._load())

    @functools.cached_property
    def _by_name(self) -> dict[str, Command]:
        found: dict[str, Command] = {}
        for command in self._commands:
            for name in (command.name, *command.aliases):
                if name in found:
                    raise ValueError(f"two commands are called {name!r}")
                found[name] = command
        return found

    def __iter__(self) -> Iterator[Command]:
        return iter(self._commands)

    @property
    def names(self) -> tuple[str, ...]:
        """Every word that calls a command, aliases included."""
        return tuple(self._by_name)

    def get(self, name: str) -> Command | None:
        """The command called `name`, in any case of letters, or None."""
        return self._by_name.get(name.lower())

    def find(self, name: str) -> Command:
        """The command called `name`.

        Raises:
            UnknownCommandError: there is none; carries near matches.
        """
        command = self.get(name)
        if command is None:
            raise UnknownCommandError("command", name, self.names)
        return command
