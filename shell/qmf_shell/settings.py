"""The user's settings: changed by `set` for a session, or permanently in a TOML file in the XDG configuration folder.

docs/shell.md shows this file with every setting and its default. Unknown names and wrong values are errors that name
file and setting, so that a typing error is not ignored silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import attrs

from qmf.connecting.contexts import NO_CONTEXTS, Contexts, contexts_in
from qmf.errors import CallerError, NotFoundError
from qmf.views.text import listing


class SettingsError(CallerError):
    """A setting has an invalid value, or the file with settings cannot be read."""


@attrs.frozen
class Setting:
    """A setting.

    Attributes:
        name: as users write it, e.g. ``time-format``.
        values: the values allowed; empty: any text, or, if the default is a number, any number above 0.
        default: its default.
        help: its meaning.
    """

    name: str
    values: tuple[str, ...]
    default: str
    help: str

    @property
    def is_number(self) -> bool:
        """True if its values are numbers."""
        return not self.values and self.default.replace(".", "", 1).isdigit()

    def check(self, value: str) -> str:
        """Return `value` if it is valid.

        Raises:
            SettingsError: it is not.
        """
        if self.values and value not in self.values:
            raise SettingsError(f"{self.name} must be {listing(self.values)}, not {value!r}")
        if self.is_number:
            try:
                valid = 0 < float(value) <= 86400
            except ValueError:
                valid = False
            if not valid:
                raise SettingsError(f"{self.name} must be a number above 0 and at most 86400, not {value!r}")
        return value


SETTINGS: tuple[Setting, ...] = (
    Setting("time-format", ("long", "short"), "long", "times with their date, or only the time of day"),
    Setting("output", ("table", "json", "csv", "yaml"), "table", "format of results"),
    Setting("numbers", ("human", "exact"), "human", "numbers such as 12.5 MB, or with every digit"),
    Setting(
        "lists",
        ("values", "qpid-tool"),
        "values",
        "lists of objects show their values, or as qpid-tool when they began and ended",
    ),
    Setting("own", ("hide", "show"), "hide", "whether lists show what agents and consoles create on a broker"),
    Setting("pager", ("auto", "off"), "auto", "whether output longer than the terminal goes through a pager"),
    Setting("completion", ("tab", "typing"), "tab", "whether the menu opens with Tab or while typing"),
    Setting("interval", (), "2", "seconds between refreshes of watch, plot and top"),
    Setting(
        "screens", ("auto", "off"), "auto", "whether watch, top, plot, events -f and heartbeats -f fill the terminal"
    ),
    Setting("confirm", ("on", "off"), "on", "whether to ask before a method is called on many objects"),
)
_BY_NAME = {choice.name: choice for choice in SETTINGS}


@attrs.define
class ShellSettings:
    """The settings of a session.

    Attributes:
        values: by name; all of `SETTINGS`.
        aliases: the texts that words stand for, e.g. ``list queue`` for ``q``.
        brokers: URLs to connect to if the command line names none.
        contexts: the named contexts.
        thresholds: from which values on a number is a warning, and critical, by ``class.value`` in lower case.
    """

    values: dict[str, str] = attrs.field(factory=lambda: {choice.name: choice.default for choice in SETTINGS})
    aliases: dict[str, str] = attrs.field(factory=dict)
    brokers: tuple[str, ...] = ()
    contexts: Contexts = NO_CONTEXTS
    thresholds: dict[str, tuple[float, ...]] = attrs.field(factory=dict)

    def __getitem__(self, name: str) -> str:
        return self.values[name]

    @property
    def interval(self) -> float:
        """Seconds between refreshes of a view."""
        return float(self.values["interval"])

    def change(self, name: str, value: str) -> None:
        """Change a setting.

        Raises:
            NotFoundError: there is no such setting.
            SettingsError: the value is not valid.
        """
        self.values[name] = find_setting(name).check(value)


def find_setting(name: str) -> Setting:
    """The setting called `name`.

    Raises:
        NotFoundError: there is no such setting.
    """
    choice = _BY_NAME.get(name.lower().replace("_", "-"))
    if choice is None:
        raise NotFoundError("setting", name, _BY_NAME)
    return choice


def read_settings(
    path: Path | None, *, required: bool = False, defaults: Mapping[str, str] | None = None
) -> ShellSettings:
    """Settings from a file; the defaults if there is none.

    Args:
        path: the file, or None.
        required: the file must exist: the user named it.
        defaults: of some settings, instead of the usual ones.

    Raises:
        SettingsError: the file cannot be read, is not TOML, or has an unknown setting or a wrong value.
    """
    settings = ShellSettings()
    settings.values |= defaults or {}
    if path is None:
        return settings
    # Imported here: most users have no such file.
    from qmf._toml import read_toml

    toml = read_toml(path, SettingsError)
    if toml is None:
        if required:
            raise SettingsError(f"cannot read {path}: no such file")
        return settings
    settings.contexts = contexts_in(toml)
    for name, value in toml.content.items():
        with toml.at(name):
            _apply(settings, name, value)
    return settings


def _apply(settings: ShellSettings, name: str, value: object) -> None:
    """Change one of the settings that are in the file."""
    match name:
        case "context" | "contexts":
            pass
        case "aliases":
            settings.aliases = _aliases(value)
        case "brokers":
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise SettingsError("brokers must be a list of URLs")
            settings.brokers = tuple(value)
        case "thresholds":
            settings.thresholds = _thresholds(value)
        case _ if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise SettingsError(f"{find_setting(name).name} must be a text or a number")
        case _:
            settings.change(find_setting(name).name, str(value))


def _thresholds(value: object) -> dict[str, tuple[float, ...]]:
    if not isinstance(value, dict):
        raise SettingsError('thresholds must be a table, e.g. "queue.msgDepth" = [1000, 10000]')
    found: dict[str, tuple[float, ...]] = {}
    for name, limits in value.items():
        numbers = limits if isinstance(limits, list) else [limits]
        if len(numbers) > 2 or any(isinstance(one, bool) or not isinstance(one, int | float) for one in numbers):
            raise SettingsError(f"the thresholds of {name!r} must be one number or two: warning, critical")
        if "." not in name:
            raise SettingsError(f"thresholds are those of a class and a value, e.g. queue.msgDepth, not {name!r}")
        found[name.lower()] = tuple(map(float, numbers))
    return found


def _aliases(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise SettingsError("aliases must be a table of texts")
    for name, text in value.items():
        check_alias(name, text)
    return dict(value)


def check_alias(name: str, text: str) -> None:
    """Check the name and the text of an alias.

    Raises:
        SettingsError: the name is not one word, or the text is empty; either has a ``=`` as other shells want it.
    """
    word, equals, _ = name.partition("=")
    if equals or text.lstrip().startswith("="):
        raise SettingsError(f"alias {word}: write a blank, and no =, between the word and its command")
    if not name or any(char.isspace() or char in "'\"\\{[#!" for char in name):
        raise SettingsError(f"alias {name!r} is not one plain word")
    if not text.strip():
        raise SettingsError(f"alias {name} stands for nothing")
