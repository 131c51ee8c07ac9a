"""Days of rows, and times of them. Pure."""

from __future__ import annotations

import datetime
import functools

NS_PER_DAY = 86_400 * 10**9

_EPOCH = datetime.date(1970, 1, 1)


def day(time_ns: int) -> str:
    """The day of a time, in UTC. Times before the year 1 or after 9999 count as 1970-01-01."""
    return _day(time_ns // NS_PER_DAY)


@functools.lru_cache(maxsize=64)
def _day(number: int) -> str:
    try:
        return (_EPOCH + datetime.timedelta(days=number)).isoformat()
    except OverflowError:
        return _EPOCH.isoformat()
