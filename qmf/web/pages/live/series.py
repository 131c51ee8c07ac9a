"""Values over time, in memory that does not grow with time: recent points as they came, older ones thinned out.

A series begins when somebody looks at it, and stays for a while after the last one left, so that a plot is still there
when the page is loaded again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator

import attrs

from qmf.errors import CallerError
from qmf.protocol import ObjectId

#: Points of a series that are kept as they came, and thinned-out ones before them.
RECENT = 600
OLDER = 600
#: Series that may exist at the same time.
MOST_SERIES = 2000
#: Seconds that a series stays after nobody looks at it any more.
KEPT = 900.0

#: An object and the wire name of one of its values. The epoch of the object's id does not matter: the series of an
#: object goes on after its agent was started again.
SeriesKey = tuple[ObjectId, str]
_Place = tuple[str | None, str]


class TooManySeriesError(CallerError):
    """So many values are looked at that no other can be."""

    def __str__(self) -> str:
        return f"{MOST_SERIES} values are being recorded for plots already; close a page that shows some"


class PlottedSeries:
    """One value over time: seconds since 1970, and numbers.

    The newest `RECENT` points are kept as they came. Of the points before them `OLDER` are kept at most: when there are
    more, every second one is dropped, so that they always reach back to the beginning.
    """

    __slots__ = ("_older_times", "_older_values", "_skip", "_skipped", "_times", "_values")

    def __init__(self) -> None:
        self._times = array("d")
        self._values = array("d")
        self._older_times = array("d")
        self._older_values = array("d")
        self._skip = 0
        self._skipped = 0

    def __len__(self) -> int:
        return len(self._times) + len(self._older_times)

    @property
    def last_time(self) -> float | None:
        """When the newest point was; None before the first."""
        return self._times[-1] if self._times else None

    def add(self, at: float, value: float, quiet: float | None = None) -> None:
        """Add a point; one that is older than the newest is ignored.

        Args:
            at: seconds since 1970.
            value: the value then.
            quiet: agents publish only what changed: if more seconds than this lie between two points, the value was
                the old one until then, so a point is added in between. None: it is not known what was in between.
        """
        last = self.last_time
        if last is not None:
            if at <= last:
                return
            if quiet is not None and at - last > 2 * quiet:
                self._append(at - quiet, self._values[-1])
        self._append(at, value)

    def points(self, since: float = 0.0) -> Iterator[tuple[float, float]]:
        """The points from a time on; also the last one before it, so that a line begins at the edge of a plot."""
        before: tuple[float, float] | None = None
        for times, values in ((self._older_times, self._older_values), (self._times, self._values)):
            for at, value in zip(times, values, strict=True):
                if at < since:
                    before = at, value
                    continue
                if before is not None:
                    yield before
                    before = None
                yield at, value
        if before is not None:
            yield before

    def _append(self, at: float, value: float) -> None:
        self._times.append(at)
        self._values.append(value)
        if len(self._times) > RECENT:
            self._age(self._times.pop(0), self._values.pop(0))

    def _age(self, at: float, value: float) -> None:
        if self._skipped < self._skip:
            self._skipped += 1
            return
        self._skipped = 0
        self._older_times.append(at)
        self._older_values.append(value)
        if len(self._older_times) > OLDER:
            self._older_times = self._older_times[::2]
            self._older_values = self._older_values[::2]
            self._skip = 2 * self._skip + 1


@attrs.define
class _Kept:
    series: PlottedSeries = attrs.field(factory=PlottedSeries)
    users: int = 0
    left: float = 0.0


class SeriesStore:
    """The series that somebody looks at, or did a short time ago."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Make an empty store; `clock` gives seconds that only grow."""
        self._clock = clock
        self._kept: dict[tuple[_Place, str], _Kept] = {}
        self._by_object: dict[_Place, dict[str, PlottedSeries]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: SeriesKey) -> PlottedSeries | None:
        """A series, or None if nobody looked at it."""
        found = self._kept.get((_place(key[0]), key[1]))
        return None if found is None else found.series

    def series_of(self, object_id: ObjectId) -> dict[str, PlottedSeries]:
        """The series of an object by the wire names of its values."""
        return self._by_object.get(_place(object_id), {})

    def watch(self, keys: Iterable[SeriesKey]) -> Callable[[], None]:
        """Record these values from now on.

        Returns:
            a function that says that they are no longer looked at.

        Raises:
            TooManySeriesError: too many are looked at by others.
        """
        wanted = list(dict.fromkeys((_place(object_id), name) for object_id, name in keys))
        self._make_room(sum(key not in self._kept for key in wanted))
        for key in wanted:
            self._kept.setdefault(key, _Kept()).users += 1
            self._by_object.setdefault(key[0], {})[key[1]] = self._kept[key].series
        released = False

        def release() -> None:
            nonlocal released
            if released:
                return
            released = True
            now = self._clock()
            for key in wanted:
                kept = self._kept[key]
                kept.users -= 1
                kept.left = now

        return release

    def expire(self) -> None:
        """Forget the series that nobody has looked at for a while."""
        limit = self._clock() - KEPT
        for key in [key for key, kept in self._kept.items() if not kept.users and kept.left <= limit]:
            self._forget(key)

    def _make_room(self, more: int) -> None:
        excess = len(self._kept) + more - MOST_SERIES
        if excess <= 0:
            return
        unused = sorted((kept.left, at) for at, kept in enumerate(self._kept.values()) if not kept.users)
        if len(unused) < excess:
            raise TooManySeriesError
        keys = list(self._kept)
        for _, at in unused[:excess]:
            self._forget(keys[at])

    def _forget(self, key: tuple[_Place, str]) -> None:
        del self._kept[key]
        names = self._by_object[key[0]]
        del names[key[1]]
        if not names:
            del self._by_object[key[0]]


def _place(object_id: ObjectId) -> _Place:
    return object_id.agent_name, object_id.object_name
