"""The kinds of things that Tab can complete: `analysis` determines them, `suggestions` finds names for them."""

from __future__ import annotations

import attrs

from qmf_shell.parsing.command import AnyCommand, Option


@attrs.frozen
class NoCompletion:
    """Nothing can be completed."""


@attrs.frozen
class CommandNames:
    """The name of a command."""


@attrs.frozen
class OptionNames:
    """An option of `command`."""

    command: AnyCommand


@attrs.frozen
class OptionValue:
    """The value of an option."""

    option: Option


@attrs.frozen
class ClassNames:
    """A class of objects, of events, or of both."""

    objects: bool
    events: bool


@attrs.frozen
class ObjectNames:
    """An object of the class that the user called `of_class`, or of any class."""

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
        used: names that already have a value.
        position: how many arguments were given without a name.
    """

    target: str
    method: str
    used: tuple[str, ...]
    position: int


@attrs.frozen
class ArgumentValue:
    """The value of the argument `name`; ``name=`` at the beginning of the word is not part of the completed text."""

    target: str
    method: str
    name: str


@attrs.frozen
class ValueNames:
    """A property or statistic.

    Attributes:
        target: the class or object that has it, as the user wrote it.
        numbers: only numbers.
    """

    target: str
    numbers: bool = False


@attrs.frozen
class ValueOf:
    """A value to compare with the property or statistic `name` of `target`."""

    target: str
    name: str


@attrs.frozen
class SettableNames:
    """A read-write property of the object `target`, as ``name=``, without those in `used`."""

    target: str
    used: tuple[str, ...]


@attrs.frozen
class SettableValue:
    """The new value of a property."""

    target: str
    name: str


@attrs.frozen
class EventValueNames:
    """An argument of events of the classes that the user called `classes`, or of any if there are none."""

    classes: tuple[str, ...]


@attrs.frozen
class ContextNames:
    """Named contexts of the settings file."""


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
    """One of some words, each with its meaning."""

    words: tuple[tuple[str, str], ...]


@attrs.frozen
class AnyOf:
    """Several kinds, the most likely first."""

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
    | ContextNames
    | SettingNames
    | SettingValue
    | FileNames
    | Keywords
    | AnyOf
)


@attrs.frozen
class CompletionRequest:
    """What to complete.

    Attributes:
        kind: the kind of thing.
        prefix: its beginning as typed so far, without quotes.
        start: column where the completed text begins; it replaces everything from there to the cursor.
    """

    kind: CompletionKind
    prefix: str = ""
    start: int = 0
