"""What a command is: its name, its help, its parameters and options, and the function that runs it. Values only."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import attrs

from qmf.errors import CallerError
from qmf.views.conditions.words import Word
from qmf.views.text import listing
from qmf_shell.results.result import Result

#: What a handler gets besides its arguments: the session's context. That refers to all commands, so a command is
#: generic instead of importing it.
ContextT = TypeVar("ContextT")


class UsageError(CallerError):
    """A command was called with an unknown option, or with too many or too few arguments.

    Attributes:
        command: its name.
        reason: what is wrong.
        usage: the correct form.
    """

    def __init__(self, command: str, reason: str, usage: str) -> None:
        self.command = command
        self.reason = reason
        self.usage = usage
        super().__init__(command, reason, usage)

    def __str__(self) -> str:
        return f"{self.command}: {self.reason} (usage: {self.usage})"


class ParameterKind(enum.Enum):
    """What a parameter stands for; Tab completes accordingly."""

    COMMAND = "command"
    CLASS = "class"  #: a class of objects
    ANY_CLASS = "any class"  #: a class of objects or of events
    EVENT_CLASS = "event class"
    OBJECT = "object"  #: short id, name or index; of the class that an earlier parameter names, if any
    SELECTION = "selection"  #: what follows a class: ids, condition, order, columns, limit
    TARGET = "target"  #: an object, a range of short ids, or a class
    CALL = "call"  #: what follows the target of a call: the condition of a class, a method, its inputs
    STATISTICS = "statistics"  #: numbers of the object or class that an earlier parameter names
    COLUMN = "column"  #: values of the class that an earlier parameter names
    SETTABLE = "settable"  #: NAME=VALUE of a read-write property of the object that an earlier parameter names
    SETTING = "setting"  #: a setting of this program
    SETTING_VALUE = "setting value"  #: a value of the setting that an earlier parameter names
    CONTEXT = "context"  #: a named context of the settings file
    FILE = "file"
    CHOICE = "choice"  #: one of the parameter's choices
    TIME = "time"  #: one or several words, see `parsing.times`; only before the other parameters
    LINE = "line"  #: a command with its arguments; one of the parameter's choices
    SERIES = "series"  #: statistics as for `STATISTICS`, then from TIME, to TIME
    PERIOD = "period"  #: from TIME, to TIME, and the parameter's choices with a number
    TEXT = "text"


@attrs.frozen
class Parameter:
    """A positional argument of a command.

    Attributes:
        name: as in the usage, e.g. ``CLASS``.
        kind: what it stands for.
        help: its meaning, in a few words.
        required: it must be given.
        repeated: it takes all remaining words.
        choices: for `ParameterKind.CHOICE`: the words allowed, each with its meaning.
    """

    name: str
    kind: ParameterKind
    help: str
    required: bool = False
    repeated: bool = False
    choices: tuple[tuple[str, str], ...] = ()


@attrs.frozen
class Option:
    """An option of a command.

    Attributes:
        names: ways to write it, the shortest first.
        help: what it does.
        value: name of its value in the usage; None: it takes no value.
    """

    names: tuple[str, ...]
    help: str
    value: str | None = None

    @property
    def key(self) -> str:
        """Its long name without dashes: its key in `BoundArguments.options`."""
        return self.names[-1].lstrip("-")


@attrs.frozen
class BoundArguments:
    """The arguments of one call of a command, checked against its parameters and options.

    Attributes:
        words: positional arguments, in order.
        options: values by `Option.key`; "" for an option without value.
        line: the whole line.
    """

    words: tuple[Word, ...] = ()
    options: Mapping[str, str] = attrs.field(factory=dict)
    line: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The positional arguments as texts."""
        return tuple(word.text for word in self.words)

    def text(self, number: int) -> str | None:
        """The positional argument `number`, from 0; None: it was not given."""
        return self.words[number].text if number < len(self.words) else None


@attrs.frozen(kw_only=True)
class Command(Generic[ContextT]):
    """A command.

    Attributes:
        name: the word that calls it.
        aliases: other words that call it.
        usage: one line for each form, e.g. ``list CLASS [ID...]``.
        summary: what it does, for the list of commands.
        help: more about it, one string per paragraph.
        examples: lines, each with what it does.
        parameters, options: what it takes.
        options_first: options are recognized only before the first argument; after it, dashes are part of arguments.
        handler: runs it. Raises only `qmf.errors.QmfError` for what can go wrong.
    """

    name: str
    summary: str
    handler: Callable[[ContextT, BoundArguments], Result]
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

    def misuse(self, reason: str, form: int | None = 0) -> UsageError:
        """The error for a wrong call; `form` is the number of the usage that it shows, None for all."""
        return UsageError(self.name, reason, listing(self.usage) if form is None else self.usage[form])

    def count(self, args: BoundArguments, key: str, default: int) -> int:
        """The whole number of an option, or the default.

        Raises:
            UsageError: its value is not a whole number from 0 to 999999999.
        """
        text = args.options.get(key, str(default))
        if not re.fullmatch("[0-9]{1,9}", text):
            raise self._no_number(key, f"a number, not {text!r}")
        return int(text)

    def seconds(self, args: BoundArguments, key: str, default: float) -> float:
        """The seconds of an option, or the default.

        Raises:
            UsageError: its value is not a number from 0.1 to 86400.
        """
        text = args.options.get(key, str(default))
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if key in args.options and not 0.1 <= value <= 86400:
            raise self._no_number(key, f"seconds from 0.1 to 86400, not {text!r}")
        return value

    def _no_number(self, key: str, needs: str) -> UsageError:
        option = self.option(f"--{key}")
        return self.misuse(f"option {option.names[0] if option is not None else key} needs {needs}")


#: A command where it does not matter what its handler gets.
AnyCommand = Command[Any]

# Options that several commands have.
ALL = Option(("--all",), "include what agents and consoles create on the broker for themselves")
EXACT = Option(("-e", "--exact"), "numbers with every digit, not such as 12.5 MB")
#: For what fills the terminal.
PLAIN = Option(("-p", "--plain"), "lines instead of a screen")
