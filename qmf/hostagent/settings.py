"""The operator's settings: which processes are shown, thresholds, intervals."""

from __future__ import annotations

import enum
import re

import attrs

from qmf.errors import CallerError

#: Seconds from sample to sample; the bounds are those of `Agent.interval` in the schema.
DEFAULT_INTERVAL = 10.0
MIN_INTERVAL = 0.01
MAX_INTERVAL = 86_400.0

#: Usage of a filesystem, in percent, above which an event warns. Fragmentation grows in the last tenth.
DEFAULT_THRESHOLD = 90

#: Processes shown by default: enough to see which use most of the memory, cheap at one sample per second.
DEFAULT_TOP = 20


class SettingError(CallerError, ValueError):
    """An invalid setting; the message names the valid values."""


class Show(enum.Enum):
    """Which processes are shown besides the agent's own and the watched ones."""

    ALL = "all"
    TOP = "top"
    NONE = "none"


@attrs.frozen
class ProcessSelection:
    """Which processes are shown besides the agent's own and the watched ones.

    Attributes:
        show: the rule.
        count: with `Show.TOP`, the number of processes: those with the most main memory.
    """

    show: Show = Show.TOP
    count: int = DEFAULT_TOP

    @classmethod
    def parse(cls, text: str) -> ProcessSelection:
        """Parse ``all``, ``none`` or ``top:N``.

        Raises:
            SettingError: it is anything else.
        """
        name, colon, number = text.partition(":")
        if text in (Show.ALL.value, Show.NONE.value):
            return cls(Show(text), 0)
        if name == Show.TOP.value and colon and number.isascii() and number.isdecimal() and int(number) > 0:
            return cls(Show.TOP, int(number))
        raise SettingError(f"must be all, none or top:N with N above 0, not {text!r}")

    def __str__(self) -> str:
        return f"top:{self.count}" if self.show is Show.TOP else self.show.value


def check_interval(seconds: float) -> float:
    """Return a valid interval unchanged.

    Raises:
        SettingError: it is out of bounds.
    """
    if not MIN_INTERVAL <= seconds <= MAX_INTERVAL:
        raise SettingError(f"must be {MIN_INTERVAL:g} to {MAX_INTERVAL:g} seconds, not {seconds:g}")
    return seconds


def check_threshold(percent: int) -> int:
    """Return a valid threshold unchanged.

    Raises:
        SettingError: it is out of bounds.
    """
    if not 1 <= percent <= 100:
        raise SettingError(f"must be 1 to 100 percent, not {percent}")
    return percent


@attrs.frozen(kw_only=True)
class Settings:
    """All settings of the host agent.

    Attributes:
        interval: seconds from sample to sample, `MIN_INTERVAL` to `MAX_INTERVAL`; also the agent's publish interval.
        instance: last part of the agent's name; None means the name of the machine.
        threshold: usage of a filesystem, in percent, above which an event warns, 1 to 100.
        selection: which processes are shown besides the agent's own and the watched ones. None means the 20 with the
            most memory, or no others if `watch` has patterns.
        watch: regular expressions; processes whose name or command line matches one are shown, and an event is raised
            when one starts or ends.
        allow_signals: consoles may send signals to the processes shown. Off by default, because anyone with access to
            the broker could then end any process of the agent's user.
        command_lines: command lines of processes are shown. Off by default, because arguments may hold passwords, and
            the bus is read on other machines. Patterns of `watch` are matched against command lines in any case.
        audit: raise an event for each method call, with arguments and results.

    Raises:
        SettingError: a number is out of bounds.
    """

    interval: float = attrs.field(default=DEFAULT_INTERVAL, converter=check_interval)
    instance: str | None = None
    threshold: int = attrs.field(default=DEFAULT_THRESHOLD, converter=check_threshold)
    selection: ProcessSelection | None = None
    watch: tuple[re.Pattern[str], ...] = ()
    allow_signals: bool = False
    command_lines: bool = False
    audit: bool = False

    @property
    def shown(self) -> ProcessSelection:
        """The selection in effect."""
        if self.selection is not None:
            return self.selection
        return ProcessSelection(Show.NONE, 0) if self.watch else ProcessSelection()
