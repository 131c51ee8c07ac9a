"""The time range of a report, and the size of its windows. Pure."""

from __future__ import annotations

import datetime
import re

import attrs

from qmf.pipeline.errors import PipelineError
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.views.times import instant_text, parse_duration, parse_instant

NS = 10**9

#: Sizes of windows, as `qmf.pipeline.rollup` reads them, and their seconds.
_SIZES = {size: parse_duration(size) // NS for size in ("10s", "30s", "1m", "5m", "15m", "1h", "6h", "1d")}

#: Days by name, and how long ago they are.
_DAYS_AGO = {"today": 0, "yesterday": 1}

#: Windows of a plot at most: more cannot be distinguished.
_MAX_WINDOWS = 240


@attrs.frozen
class TimeRange:
    """A time range in UTC; its end is not included."""

    first_ns: int
    last_ns: int

    @property
    def size(self) -> str:
        """The smallest windows that divide it into few enough parts."""
        seconds = self.seconds
        return next((size for size, length in _SIZES.items() if seconds / length <= _MAX_WINDOWS), "1d")

    @property
    def step(self) -> int:
        return _SIZES[self.size]

    def first_window(self, step: int) -> int:
        """Start of the first window of `step` seconds, in seconds."""
        return self.first_ns // NS // step * step

    @property
    def seconds(self) -> float:
        return (self.last_ns - self.first_ns) / NS

    def clip(self, first_ns: int, last_ns: int | None) -> tuple[int, int] | None:
        """The part of an interval that lies in the time range; None for no part."""
        first = max(first_ns, self.first_ns)
        last = self.last_ns if last_ns is None else min(last_ns, self.last_ns)
        return (first, last) if first < last else None


def parse_time_range(first: str | None, last: str | None, length: str | None, newest_ns: int) -> TimeRange:
    """The time range that the command's options describe; `PipelineError` where they don't, or it is empty.

    Times are ``2030-01-31`` or ``2030-01-31T12:00``, in UTC; a day as `last` is included whole. Without `last` the end
    of the recording counts, and where one limit is missing a length of a day.
    """
    if first and last and length:
        raise PipelineError("give two of --from, --to and --for: they determine the third")
    long = _length(length or "1d")
    if first:
        begin = _time(first, whole_day=False)
        end = _time(last, whole_day=True) if last else begin + long if length else max(newest_ns, begin) + 1
    else:
        end = _time(last, whole_day=True) if last else newest_ns + 1
        begin = end - long
    if begin >= end:
        raise PipelineError(f"the time range is empty: from {first} to {last}")
    return TimeRange(begin, end)


def parse_compared(text: str, time_range: TimeRange) -> TimeRange:
    """The range that another one is compared with; `PipelineError` for another text or an empty range.

    ``previous`` is the time of the same length just before; ``7d`` the same time so long before; or ``FROM..TO``.
    """
    if text == "previous":
        return TimeRange(2 * time_range.first_ns - time_range.last_ns, time_range.first_ns)
    if ".." in text:
        first, _, last = text.partition("..")
        begin, end = _time(first, whole_day=False), _time(last, whole_day=True)
        if begin >= end:
            raise PipelineError(f"the time range is empty: from {first} to {last}")
        return TimeRange(begin, end)
    try:
        back = parse_duration(text)
    except ValueError:
        back = 0
    if back <= 0:
        raise PipelineError(
            f"{text!r} is not a range such as 2030-01-30..2030-01-31, previous, or 7d for 7 days before"
        )
    return TimeRange(time_range.first_ns - back, time_range.last_ns - back)


def time_text(time_ns: int) -> str:
    """A time in UTC, to the second."""
    return instant_text(time_ns, datetime.UTC)


def _time(text: str, *, whole_day: bool) -> int:
    text = text.strip()
    if text in _DAYS_AGO:
        now = datetime.datetime.now(datetime.UTC).date()
        text = (now - datetime.timedelta(days=_DAYS_AGO[text])).isoformat()
    try:
        time = parse_instant(text, datetime.UTC) // NS * NS
    except ValueError:
        raise PipelineError(f"{text!r} is not a time such as 2030-01-31 or 2030-01-31T12:00") from None
    return time + NS_PER_DAY if whole_day and re.fullmatch(r"\d{4}-\d\d-\d\d", text) else time


def _length(text: str) -> int:
    try:
        length = parse_duration(text)
    except ValueError:
        length = 0
    if length < NS:
        raise PipelineError(f"a length must be a time such as 90m, 1h30m or 7d, not {text!r}")
    return length
