"""Points in time as users write them: ``14:05``, ``yesterday 14:00``, ``2026-11-22 14:00``, ``-10m``, ``now``;
and the period of a command about the past, ``from TIME`` and ``to TIME`` among its arguments.

Times without a zone are in that of the machine. A time of day alone means the last one that has passed; as the end of a
period, the first one after its beginning.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

import attrs

from qmf.errors import CallerError
from qmf.views.conditions.words import Word
from qmf.views.times import instant_ns, parse_duration

_DAYS = {"today": 0, "yesterday": 1}
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(\.\d{1,6})?)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")

#: How times are written, for errors and hints.
TIME_FORMS = "14:05, 14:05:30, 2026-11-22 14:05, yesterday 14:05, -10m or now"

#: Words that a time may begin with, for completion.
TIME_WORDS = (
    ("-10m", "ten minutes ago; also s, h, d and w"),
    ("-1h", "an hour ago"),
    ("yesterday", "followed by a time of day"),
    ("today", "followed by a time of day"),
    ("now", "this moment"),
)

#: Words of a time that a time of day may follow.
DAY_WORDS = tuple(_DAYS)

#: What precedes the times of a period.
PERIOD_WORDS = (("from", "followed by the beginning"), ("to", "followed by the end"))


class TimeError(CallerError):
    """A text is not a time; the message says how times are written."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)

    def __str__(self) -> str:
        return f"{self.text!r} is not a time: write {TIME_FORMS}"


@attrs.frozen
class TimeReference:
    """What a time is relative to.

    Attributes:
        now: nanoseconds since 1970.
        zone: of times that name none; None: that of the machine.
    """

    now: int
    zone: tzinfo | None = None

    @property
    def moment(self) -> datetime:
        """`now`, in the zone, without its fractions of a microsecond."""
        return datetime.fromtimestamp(self.now // 1000 / 1e6, self.zone).astimezone(self.zone)


def parse_time(words: Sequence[str], clock: TimeReference, *, after: int | None = None) -> tuple[int, int]:
    """The time at the beginning of `words` in nanoseconds since 1970, and how many words it takes.

    Args:
        clock: what the time is relative to.
        after: a time of day alone is the first one after this time; None: the last one that has passed.

    Raises:
        TimeError: they don't begin with a time.
    """
    if not words:
        raise TimeError("")
    first = words[0].lower()
    if first == "now":
        return clock.now, 1
    if first.startswith("-"):
        try:
            return max(0, clock.now - parse_duration(first[1:])), 1
        except ValueError:
            raise TimeError(words[0]) from None
    if first in _DAYS:
        date = clock.moment - timedelta(days=_DAYS[first])
        return _on(date, words, clock)
    if _DATE.fullmatch(first):
        return _on(_date(words[0]), words, clock)
    if match := _CLOCK.fullmatch(first):
        return _clock_alone(match, words[0], clock, after), 1
    try:
        whole = datetime.fromisoformat(words[0])
    except ValueError:
        raise TimeError(words[0]) from None
    return _ns(whole, clock), 1


def takes_time(words: Sequence[str]) -> int:
    """How many words at the beginning are a time; 0 if they don't begin with one."""
    try:
        return parse_time(words, TimeReference(1_700_000_000 * 10**9))[1]
    except TimeError:
        return 0


class PeriodError(CallerError):
    """A period ends before it begins."""

    def __init__(self, first: str, last: str) -> None:
        self.first = first
        self.last = last
        super().__init__(first, last)

    def __str__(self) -> str:
        return f"{self.last!r} is before {self.first!r}: write the earlier time first"


def _on(date: datetime, words: Sequence[str], clock: TimeReference) -> tuple[int, int]:
    match = _CLOCK.fullmatch(words[1]) if len(words) > 1 else None
    if match is None:
        return _ns(date.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None), clock), 1
    return _ns(_with_clock(date, match, f"{words[0]} {words[1]}"), clock), 2


def _date(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise TimeError(text) from None


def _clock_alone(match: re.Match[str], text: str, clock: TimeReference, after: int | None) -> int:
    if after is None:
        found = _ns(_with_clock(clock.moment, match, text), clock)
        return found if found <= clock.now else _ns(_with_clock(clock.moment - timedelta(days=1), match, text), clock)
    begin = TimeReference(after, clock.zone).moment
    found = _ns(_with_clock(begin, match, text), clock)
    return found if found >= after else _ns(_with_clock(begin + timedelta(days=1), match, text), clock)


def _with_clock(date: datetime, match: re.Match[str], text: str) -> datetime:
    try:
        return date.replace(
            hour=int(match[1]),
            minute=int(match[2]),
            second=int(match[3] or 0),
            microsecond=round(float(match[4] or 0) * 1e6),
            tzinfo=None,
        )
    except ValueError:
        raise TimeError(text) from None


def _ns(moment: datetime, clock: TimeReference) -> int:
    """Nanoseconds of a time; one without a zone is in that of the clock."""
    try:
        return instant_ns(moment, clock.zone)
    except (OverflowError, ValueError, OSError):
        raise TimeError(str(moment)) from None


@attrs.frozen
class Period:
    """A period of time.

    Attributes:
        first, last: times in nanoseconds since 1970, both included.
    """

    first: int
    last: int


def split_period(words: Sequence[Word], clock: TimeReference | None = None) -> tuple[list[Word], Period | None]:
    """The words without ``from TIME`` and ``to TIME``, and the period; None where there is neither.

    The period ends now, and begins an hour before its end, unless the words say otherwise. `clock` is what the times
    are relative to; None for now.

    Raises:
        TimeError: no time follows.
        PeriodError: it ends before it begins.
    """
    rest: list[Word] = []
    found: dict[str, list[str]] = {}
    at = 0
    while at < len(words):
        word = words[at]
        name = word.text.lower()
        at += 1
        if name not in dict(PERIOD_WORDS) or word.plain != len(word.text) or name in found:
            rest.append(word)
            continue
        after = [item.text for item in words[at:]]
        used = takes_time(after)
        if not used:
            raise TimeError(after[0] if after else "")
        found[name] = after[:used]
        at += used
    if not found:
        return rest, None
    clock = clock or TimeReference(time.time_ns())
    begin = parse_time(found["from"], clock)[0] if "from" in found else None
    end = parse_time(found["to"], clock, after=begin)[0] if "to" in found else clock.now
    begin = end - 3600 * 10**9 if begin is None else begin
    if end < begin:
        first, last = found.get("from", ["an hour before"]), found.get("to", ["now"])
        raise PeriodError(" ".join(first), " ".join(last))
    return rest, Period(begin, end)
