"""Days of a time zone, and the windows that begin with them. Pure."""

from __future__ import annotations

import datetime
import math
import zoneinfo
from collections.abc import Iterable, Iterator, Sequence

import attrs

from qmf.pipeline.errors import PipelineError
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.rollup.members import window_seconds

#: All zones differ by multiples of this many seconds from UTC; days of a zone are made of such windows.
ZONE_STEP = 900

_SECOND, _DAY = 10**9, 86_400


@attrs.frozen
class Span:
    """Days of a zone from a second to another one: if `regular` of 24 hours each, otherwise one day that has not."""

    start: int
    end: int
    regular: bool


@attrs.frozen
class Zone:
    """A time zone by its name of the IANA's database."""

    name: str = "UTC"

    def check(self) -> None:
        """Check that it is known; `PipelineError` if it isn't."""
        try:
            zoneinfo.ZoneInfo(self.name)
        except (KeyError, ValueError, OSError):
            raise PipelineError(f"{self.name}: not a time zone such as Europe/Berlin or UTC") from None

    @property
    def is_utc(self) -> bool:
        """True if its days are those of the lake's files."""
        return self == UTC

    def day(self, time_ns: int) -> str:
        """The day of a time, ``2030-01-31``."""
        return datetime.datetime.fromtimestamp(time_ns // _SECOND, self._info).date().isoformat()

    def start_ns(self, day: str) -> int:
        """When a day begins: at midnight, or after it where that is left out; the first time where it comes twice."""
        return int(datetime.datetime.fromisoformat(day).replace(tzinfo=self._info).timestamp()) * _SECOND

    def end_ns(self, day: str) -> int:
        """When the next day begins."""
        return self.start_ns((datetime.date.fromisoformat(day) + datetime.timedelta(days=1)).isoformat())

    def days(self, first_ns: int, last_ns: int) -> Iterator[str]:
        """The days from that of a time to that of another one."""
        at, last = (datetime.date.fromisoformat(self.day(time)) for time in (first_ns, last_ns))
        while at <= last:
            yield at.isoformat()
            at += datetime.timedelta(days=1)

    def days_of(self, dates: Sequence[str]) -> list[str]:
        """The days that have a part of some days in UTC, in order."""
        if self.is_utc:
            return sorted(dates)
        starts = (UTC.start_ns(date) for date in dates)
        return sorted({day for start in starts for day in self.days(start, start + NS_PER_DAY - 1)})

    def floor_ns(self, time_ns: int, seconds: int) -> int:
        """The start of the window that has a time."""
        start = self.start_ns(self.day(time_ns))
        if seconds == _DAY:
            return start
        return start + (time_ns - start) // (seconds * _SECOND) * seconds * _SECOND

    def spans(self, first_ns: int, last_ns: int) -> tuple[Span, ...]:
        """The days around two times and between them; none in UTC, where all are regular."""
        if self.is_utc:
            return ()
        found: list[Span] = []
        for day in self.days(first_ns - 2 * NS_PER_DAY, last_ns + 2 * NS_PER_DAY):
            start, end = self.start_ns(day) // _SECOND, self.end_ns(day) // _SECOND
            regular = end - start == _DAY
            if regular and found and found[-1].regular:
                found[-1] = attrs.evolve(found[-1], end=end)
            elif end > start:  # a zone that crosses the date line may leave out a day
                found.append(Span(start, end, regular))
        return tuple(found)

    @property
    def _info(self) -> zoneinfo.ZoneInfo:
        return zoneinfo.ZoneInfo(self.name)


#: The zone in which the days of a lake's files are.
UTC = Zone()


def base_seconds(sizes: Iterable[str], zone: Zone) -> int:
    """The windows of samples from which those of all sizes are made, so that each job makes the same rows."""
    return math.gcd(*map(window_seconds, sizes), *(() if zone.is_utc else (ZONE_STEP,)))


@attrs.frozen
class WindowGrid:
    """The windows of one size, as SQL. They follow each other from the start of a day; its last one ends with it.

    Attributes:
        seconds: of a window.
        spans: the days of the zone in which the samples are; none for UTC.
    """

    seconds: int
    spans: Sequence[Span] = ()

    def start(self, time_ns: str) -> str:
        """The start in seconds of the window that has a time, which is in nanoseconds."""
        if not self.spans:
            return f"({_floor(time_ns, self.seconds * _SECOND)} // {_SECOND})"
        time = f"({_floor(time_ns, _SECOND)} // {_SECOND})"
        day = self.day(time)
        # A day of 25 hours is one window.
        return day if self.seconds == _DAY else f"({day} + ({time} - {day}) // {self.seconds} * {self.seconds})"

    def end(self, start: str) -> str:
        """The end in seconds of the window that begins at a time in seconds."""
        if not self.spans:
            return f"({start} + {self.seconds})"
        ends = (f"{_day_of(start, span)} + {_DAY}" if span.regular else str(span.end) for span in self.spans)
        end = self._by_span(start, ends)
        return end if self.seconds == _DAY else f"least({start} + {self.seconds}, {end})"

    def day(self, time: str) -> str:
        """The start in seconds of the day that has a time in seconds."""
        if not self.spans:
            return _floor(time, _DAY)
        starts = (_day_of(time, span) if span.regular else str(span.start) for span in self.spans)
        return self._by_span(time, starts)

    def _by_span(self, time: str, values: Iterable[str]) -> str:
        """The value of the span that has a time in seconds."""
        cases = (f"when {time} < {span.end} then {value}" for span, value in zip(self.spans, values, strict=True))
        return f"(case {' '.join(cases)} end)"


def _day_of(time: str, span: Span) -> str:
    """The start of the day of a time in a regular span, as SQL."""
    return f"{span.start} + ({time} - {span.start}) // {_DAY} * {_DAY}"


def _floor(value: str, step: int) -> str:
    """A whole number as SQL, less what it is more than a multiple: the remainder of a negative number is negative."""
    return f"({value} - (({value} % {step}) + {step}) % {step})"
