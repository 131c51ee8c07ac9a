"""Objects that pages look at: followed once for all browsers, and for a while after the last one left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from qmf.console.aio import ChangeKind, ObjectId, RemoteObject, StillFindingAgents
from qmf.errors import QmfError
from qmf.protocol.objects import as_dict
from qmf.schema import QmfType
from qmf.views.objects import ObjectView, object_view
from qmf.views.rates import growth_rate
from qmf.views.units import is_number
from qmf.web.consoles import ObjectFollow
from qmf.web.pages.live.series import SeriesStore

#: So many changes are taken in one go, before others have their turn.
BATCH = 500
#: Seconds for which objects are followed when nobody looks at them any more.
KEPT = 60.0
#: Seconds that following waits at most for what is asked before.
LATEST_START = 5.0


@attrs.frozen
class FollowedSelection:
    """Which objects are followed: those of a class, or one by its id.

    Attributes:
        package, name: the class; empty if it is one object.
        object_id: the object, or None.
    """

    package: str = ""
    name: str = ""
    object_id: ObjectId | None = None

    def __str__(self) -> str:
        return f"{self.package}:{self.name}" if self.object_id is None else str(self.object_id)


@attrs.define
class _Rate:
    """The growth of a counter: its last value, when that came, and how much it grew per second before."""

    at: float
    value: float
    rate: float | None = None


class LiveObjects:
    """Objects that are followed, as they are now."""

    def __init__(
        self, follow: ObjectFollow, series: SeriesStore, interval: float, connected: Callable[[], bool]
    ) -> None:
        """Begin without objects.

        Args:
            follow: what is followed, not started yet.
            series: gets the values that are recorded.
            interval: seconds between the publications of agents.
            connected: whether there is a broker. While there is none, objects stay as they were last known.
        """
        self._follow = follow
        self._connected = connected
        self._series = series
        self._interval = interval
        self._objects: dict[ObjectId, RemoteObject] = {}
        self._rates: dict[str, dict[ObjectId, _Rate]] = {}
        self._tracked: dict[str, float] = {}
        self._kinds: dict[str, QmfType | None] = {}
        self.version = 0
        """Another number whenever an object changed, came or went."""
        self.membership = 0
        """Another number whenever an object came or went."""
        self._earlier: asyncio.Task[Any] | None = None
        self._stale: set[ObjectId] = set()
        self.gone: dict[ObjectId, RemoteObject] = {}
        """Of one followed object: its last state, when it was deleted or its agent is gone."""

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[RemoteObject]:
        return iter(self._objects.values())

    @property
    def complete(self) -> bool:
        """True once all agents present have answered, or failed to."""
        return self._follow.answered

    @property
    def ids(self) -> list[ObjectId]:
        """The ids of all objects."""
        return list(self._objects)

    def get(self, object_id: ObjectId) -> RemoteObject | None:
        """An object, or None."""
        return self._objects.get(object_id)

    def views(self) -> Iterator[ObjectView]:
        """All objects, as pages show them."""
        return map(object_view, self)

    def view(self, object_id: ObjectId) -> ObjectView | None:
        """An object as pages show it, or None."""
        found = self._objects.get(object_id)
        return None if found is None else object_view(found)

    @property
    def current(self) -> ObjectView | None:
        """Of one followed object: as it is, or as it last was; None while it is not known."""
        found = next(iter(self), None) or next(iter(self.gone.values()), None)
        return None if found is None else object_view(found)

    @property
    def failures(self) -> Mapping[str, QmfError]:
        """The errors of agents whose last request failed, by agent name. That agents are still being found is none."""
        return own_failures(self._follow.failures)

    def source_of(self, agent: str) -> str:
        """How the objects of an agent are followed, in words; empty if they are not."""
        mode = self._follow.sources.get(agent)
        return "" if mode is None else mode.value

    def track_rate(self, name: str, kind: QmfType | None = None) -> None:
        """Measure the growth of a counter, of a type if it is known, of every object from now on.

        Objects are not read for it, of which there may be many: that is done when they change.
        """
        if name not in self._rates:
            self._rates[name] = {}
            self._kinds[name] = kind
            self._tracked[name] = time.time()

    def rate(self, name: str, object_id: ObjectId) -> float | None:
        """The growth of a tracked counter per second; None if unknown, as it is while there is no broker."""
        if name not in self._rates or not self._connected():
            return None
        found = self._rates[name].get(object_id)
        # An agent publishes what changed: a counter of which nothing was heard for long does not grow.
        if time.time() - (self._tracked[name] if found is None else found.at) <= 3 * self._interval:
            return None if found is None else found.rate
        obj = self._objects.get(object_id)
        return None if obj is None or (found is None and _number(obj.data.values, name) is None) else 0.0

    def begin_after(self, earlier: asyncio.Task[Any] | None) -> None:
        """Begin to follow when something else has been answered, to which agents would come later otherwise; but not
        much later. Only before `run` has begun."""
        self._earlier = earlier

    async def run(self) -> None:
        """Follow; ends when it is cancelled, or with the client."""
        try:
            if self._earlier is not None:
                await asyncio.wait([self._earlier], timeout=LATEST_START)
            taken = 0
            async for change in self._follow:
                if change.kind is ChangeKind.LOST and not self._connected():
                    self._stale.add(change.object.object_id)
                elif change.kind.gone:
                    self._remove(change.object)
                else:
                    self._put(change.object)
                taken += 1
                if taken % BATCH == 0:
                    await asyncio.sleep(0)
        finally:
            await self._follow.close()

    def drop_stale(self) -> None:
        """Remove what was known when the broker was lost, and was not found again since."""
        for key in list(self._stale):
            found = self._objects.get(key)
            if found is not None:
                self._remove(found)
        self._stale.clear()

    def _remove(self, obj: RemoteObject) -> None:
        key = obj.object_id
        self.version += 1
        self.membership += 1
        self._objects.pop(key, None)
        self._stale.discard(key)
        for measured in self._rates.values():
            measured.pop(key, None)
        self.gone = {key: obj}

    def _put(self, obj: RemoteObject) -> None:
        key = obj.object_id
        self.version += 1
        if key not in self._objects:
            self.membership += 1
            self.gone.pop(key, None)
        self._stale.discard(key)
        older = self._objects.get(key)
        self._objects[key] = obj
        now = _time_of(obj)
        wanted = self._series.series_of(key)
        if self._rates or wanted:
            values = as_dict(obj.data.values)  # at once: each value on its own would be unpacked anew
            for name, measured in self._rates.items():
                self._measure(name, measured, values, older, now)
            for name, series in wanted.items():
                value = _number(values, name)
                if value is not None:
                    series.add(now, value, self._interval)

    def _measure(
        self,
        name: str,
        measured: dict[ObjectId, _Rate],
        values: Mapping[str, object],
        older: RemoteObject | None,
        now: float,
    ) -> None:
        """Take a new value of a counter of the object that `older` was."""
        value = _number(values, name)
        if value is None or older is None:
            return
        key = older.object_id
        last = measured.get(key)
        if last is None:
            before = _number(older.data.values, name)
            if before is None:
                return
            last = _Rate(_time_of(older), before)
        if now > last.at:
            seconds = min(now - last.at, 2 * self._interval)
            measured[key] = _Rate(now, value, growth_rate(self._kinds[name], last.value, value, seconds))


def own_failures(failures: Mapping[str, QmfError]) -> Mapping[str, QmfError]:
    """The failures of agents, without the note that more agents are being found: all pages say that."""
    return {agent: error for agent, error in failures.items() if not isinstance(error, StillFindingAgents)}


def remote_object(view: ObjectView) -> RemoteObject:
    """The object that a view of followed objects was made of."""
    assert isinstance(view.handle, RemoteObject)
    return view.handle


def _time_of(obj: RemoteObject) -> float:
    """When its agent sent an object; now, if it does not say."""
    return (obj.timestamps.update / 1e9) or time.time()


def _number(values: Mapping[str, object], name: str) -> float | None:
    value = values.get(name)
    return float(value) if is_number(value) else None
