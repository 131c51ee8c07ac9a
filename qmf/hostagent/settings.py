"""What an operator can choose: which processes are shown, thresholds, intervals."""

from __future__ import annotations

import enum
import re

import attrs

from qmf.errors import CallerError

#: Seconds from sample to sample; the bounds are those of `Agent.interval` in the schema.
DEFAULT_INTERVAL = 10.0
MIN_INTERVAL = 0.01
MAX_INTERVAL = 86_400.0

#: Percent of a filesystem above which it warns. df's readers worry at 90; the last tenth is where fragmentation begins.
DEFAULT_THRESHOLD = 90

#: Processes shown by default: enough to see who eats the memory, cheap at one sample per second.
DEFAULT_TOP = 20


class SettingError(CallerError, ValueError):
    """A choice that cannot be; the message says what can."""


class Show(enum.Enum):
    """Which processes are shown besides the agent's own and the watched ones."""

    ALL = "all"
    TOP = "top"
    NONE = "none"


@attrs.frozen
class Selection:
    """Which processes are shown besides the agent's own and the watched ones.

    Attributes:
        show: the rule.
        count: with `Show.TOP`, how many of those that occupy the most main memory.
    """

    show: Show = Show.TOP
    count: int = DEFAULT_TOP

    @classmethod
    def parse(cls, text: str) -> Selection:
        """Read ``all``, ``none`` or ``top:N``.

        Raises:
            SettingError: anything else; says what is allowed.
        """
        word, colon, number = text.partition(":")
        if text in (Show.ALL.value, Show.NONE.value):
            return cls(Show(text), 0)
        if word == Show.TOP.value and colon and number.isascii() and number.isdecimal() and int(number) > 0:
            return cls(Show.TOP, int(number))
        raise SettingError(f"must be all, none or top:N with N above 0, not {text!r}")

    def __str__(self) -> str:
        return f"top:{self.count}" if self.show is Show.TOP else self.show.value


def check_interval(seconds: float) -> float:
    """The interval, if it is one.

    Raises:
        SettingError: out of bounds; says which.
    """
    if not MIN_INTERVAL <= seconds <= MAX_INTERVAL:
        raise SettingError(f"must be {MIN_INTERVAL:g} to {MAX_INTERVAL:g} seconds, not {seconds:g}")
    return seconds


def check_threshold(percent: int) -> int:
    """The threshold, if it is one.

    Raises:
        SettingError: out of bounds; says which.
    """
    if not 1 <= percent <= 100:
        raise SettingError(f"must be 1 to 100 percent, not {percent}")
    return percent


@attrs.frozen(kw_only=True)
class Settings:
    """Everything that an operator can choose.

    Attributes:
        interval: seconds from sample to sample, `MIN_INTERVAL` to `MAX_INTERVAL`; also the agent's publish interval.
        instance: last part of the agent's name; None means the name of the machine.
        threshold: percent of a filesystem above which an event warns, 1 to 100.
        selection: which processes are shown besides the agent's own and the watched ones. None means the 20 largest,
            or none besides those if `watch` names some.
        watch: processes whose name or command line one of these finds are shown; events tell when one starts or ends.
        allow_signals: consoles may send signals to the processes shown. Off by default, since whoever reaches the
            broker could then end any process of the agent's user.
        command_lines: command lines of processes are shown. Off by default, since arguments may hold passwords, and a
            bus reaches further than the machine. Patterns of `watch` see them in any case.
        audit: an event tells of each method call, arguments and results included.

    Raises:
        SettingError: a number is out of bounds.
    """

    interval: float = attrs.field(default=DEFAULT_INTERVAL, converter=check_interval)
    instance: str | None = None
    threshold: int = attrs.field(default=DEFAULT_THRESHOLD, converter=check_threshold)
    selection: Selection | None = None
    watch: tuple[re.Pattern[str], ...] = ()
    allow_signals: bool = False
    command_lines: bool = False
    audit: bool = False

    @property
    def shown(self) -> Selection:
        """The selection that holds."""
        if self.selection is not None:
            return self.selection
        return Selection(Show.NONE, 0) if self.watch else Selection()
