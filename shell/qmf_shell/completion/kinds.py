"""The kinds of things that Tab can offer: what `completion` finds and `suggestions` gives names to. Values only."""

from __future__ import annotations

import attrs

from qmf_shell.parsing.command import Command, Option


@attrs.frozen
class NoCompletion:
    """There is nothing to suggest."""


@attrs.frozen
class CommandNames:
    """The name of a command."""


@attrs.frozen
class OptionNames:
    """An option of `command`."""

    command: Command


@attrs.frozen
class OptionValue:
    """The value of an option."""

    option: Option


@attrs.frozen
class ClassNames:
    """A class: of objects, of events, or of both."""

    objects: bool
    events: bool


@attrs.frozen
class ObjectNames:
    """An object; of the class that the user called `of_class`, or of any."""

    of_class: str | None


@attrs.frozen
class MethodNames:
    """A method of the object or class that the user called `target`."""

    target: str


@attrs.frozen
class ArgumentNames:
    """The next argument of a method.

    Attributes:
        target, method: as the user wrote them.
        used: names that have a value already.
        position: how many arguments were given without a name.
    """

    target: str
    method: str
    used: tuple[str, ...]
    position: int


@attrs.frozen
class ArgumentValue:
    """The value of the argument `name`; the word's front, ``name=``, is not part of what is completed."""

    target: str
    method: str
    name: str


@attrs.frozen
class ValueNames:
    """A property or statistic.

    Attributes:
        target: the class or object that has it, as the user wrote it.
        numbers: only what can be measured.
    """

    target: str
    numbers: bool = False


@attrs.frozen
class ValueOf:
    """What the value `name` of objects of `target` can be compared with."""

    target: str
    name: str


@attrs.frozen
class SettableNames:
    """A read-write property of the object `target`, as ``name=``; not those that are `used`."""

    target: str
    used: tuple[str, ...]


@attrs.frozen
class SettableValue:
    """The new value of a property."""

    target: str
    name: str


@attrs.frozen
class EventValueNames:
    """An argument of the events that the user called `classes`; of any where there are none."""

    classes: tuple[str, ...]


@attrs.frozen
class SettingNames:
    """A setting of this program."""


@attrs.frozen
class SettingValue:
    """A value of the setting `name`."""

    name: str


@attrs.frozen
class FileNames:
    """The name of a file."""


@attrs.frozen
class Keywords:
    """One of some words, each with what it means."""

    words: tuple[tuple[str, str], ...]


@attrs.frozen
class AnyOf:
    """Several kinds, the likeliest first."""

    kinds: tuple[CompletionKind, ...]


CompletionKind = (
    NoCompletion
    | CommandNames
    | OptionNames
    | OptionValue
    | ClassNames
    | ObjectNames
    | MethodNames
    | ArgumentNames
    | ArgumentValue
    | ValueNames
    | ValueOf
    | SettableNames
    | SettableValue
    | EventValueNames
    | SettingNames
    | SettingValue
    | FileNames
    | Keywords
    | AnyOf
)


@attrs.frozen
class CompletionRequest:
    """What to suggest.

    Attributes:
        kind: the kind of thing.
        prefix: its front as typed so far, without quotes.
        start: where the completed text begins in the line: it replaces everything from there to the cursor.
    """

    kind: CompletionKind
    prefix: str = ""
    start: int = 0
