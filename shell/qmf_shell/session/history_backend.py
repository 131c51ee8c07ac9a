"""A `Backend` over a lake: what the agents and their objects were at one time, without a broker.

Commands that read the bus read the past through it, with all their options and formats.
"""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from qmf.console.aio import ChangeKind, RemoteObject, TextSearch
from qmf.console.aio.objects.object_query import compile_filter
from qmf.errors import CallerError
from qmf.pipeline.history.reader import LakeReader
from qmf.schema import ClassKey, ClassSchema, EventSchema, Kind, Method
from qmf.views.objects import ObjectIdentity, ObjectKey, ObjectView, object_view
from qmf_shell.session.backend import (
    AgentRecord,
    Backend,
    CallOutcome,
    ClassName,
    ConnectionStatus,
    GoneObject,
    ObjectChanges,
    ObjectFeed,
    ObjectLimit,
    QueryResult,
)
from qmf_shell.session.recent import DeletionCounts


class HistoryFeed(ObjectFeed):
    """The changes from one reading of the objects to the next; see `ObjectFeed`."""

    def __init__(self, read: Callable[[], Sequence[ObjectView]], interval: float) -> None:
        """Make a feed, which has read nothing yet.

        Args:
            read: reads the objects as they are now.
            interval: seconds between readings.
        """
        self._read = read
        self._interval = interval
        self._due = 0.0
        self._known: dict[ObjectKey, ObjectView] = {}

    @property
    def complete(self) -> bool:
        return True

    @property
    def failures(self) -> Mapping[str, str]:
        return {}

    def take(self) -> ObjectChanges:
        if time.monotonic() < self._due:
            return ObjectChanges()
        self._due = time.monotonic() + self._interval
        now = {item.identity.key: item for item in self._read()}
        before, self._known = self._known, now
        changed = [item for key, item in now.items() if key not in before or dict(before[key].values) != item.values]
        gone = [GoneObject(key, ChangeKind.LEFT, time.time_ns()) for key in before if key not in now]
        return ObjectChanges(changed, gone)

    def close(self) -> None:
        self._known.clear()


class PastError(CallerError):
    """A command would change what is past."""

    def __str__(self) -> str:
        return "methods can't be called and properties can't be set in the past: connect to a broker with -b URL"


class HistoryBackend(Backend):
    """The bus at one time, or always at the latest that is recorded; see `Backend`. May be called from any thread."""

    def __init__(self, reader: LakeReader, at: Callable[[], int]) -> None:
        """Take a lake, of which nothing was read yet.

        Args:
            at: the time wanted, in nanoseconds since 1970; called for each request.
        """
        self._reader = reader
        self._at = at
        self._lock = threading.RLock()
        self.deletions = DeletionCounts()

    @property
    def status(self) -> ConnectionStatus:
        return ConnectionStatus(self._reader.url, name=str(self._reader.url))

    def agents(self) -> Sequence[AgentRecord]:
        with self._lock:
            self._reader.refresh()
            found = self._reader.agents(self._at())
        return tuple(AgentRecord.of(item, self._reader.url, item.info.timestamp) for item in found)

    def classes(self) -> QueryResult[ClassKey]:
        with self._lock:
            self._reader.refresh()
            return QueryResult(tuple(self._reader.classes()))

    def schema(self, key: ClassKey) -> ClassSchema | EventSchema:
        with self._lock:
            return self._reader.schema(key)

    def sends_first(self, name: ClassName) -> bool:
        del name
        return False

    def objects(
        self,
        names: Sequence[ClassName],
        where: Sequence[object] = (),
        first: ObjectLimit | None = None,
        text: str = "",
    ) -> QueryResult[ObjectView]:
        """See `Backend.objects`. What is missing is among the failures, by the lake."""
        del first  # all are read
        search = TextSearch(text)
        with self._lock:
            self._reader.refresh()
            at = self._at()
            present = self._reader.presences(at)
            destroyed: collections.Counter[ClassName] = collections.Counter()
            _, test = compile_filter(where, ())
            found: list[ObjectView] = []
            for key in self._reader.classes():
                name = (key.package, key.name)
                if key.kind is not Kind.DATA or name not in names:
                    continue
                state = self._reader.state(key, at, present)
                destroyed[name] += state.destroyed
                self.deletions.replace(name, destroyed[name])
                objects = filter(test, state.objects)
                found += (self._object(item) for item in objects if not text or search.is_in(item.data))
        return QueryResult(found, {})

    def follow(
        self, names: Sequence[ClassName], where: Sequence[object] = (), *, interval: float, recheck: float
    ) -> ObjectFeed:
        """See `Backend.follow`. What is committed to the lake is read again at each interval."""
        del recheck
        return HistoryFeed(lambda: self.objects(names, where).items, interval)

    def gap(self) -> tuple[str, int] | None:
        """Why values may be older than the time wanted, and since when; None where they are not."""
        with self._lock:
            present = self._reader.presences(self._at())
        return (present.gap, present.gap_since) if present.gap else None

    def get(self, identity: ObjectIdentity) -> ObjectView | None:
        key = identity.key
        with self._lock:
            self._reader.refresh()
            at = self._at()
            present = self._reader.presences(at)
            for version in self._reader.classes():
                if (version.package, version.name) != (identity.class_key.package, identity.class_key.name):
                    continue
                state = self._reader.state(version, at, present, (key.agent_name, key.object_name))
                if state.objects:
                    return self._object(state.objects[0])
        return None

    def _object(self, item: RemoteObject) -> ObjectView:
        return object_view(item, name=self._reader.url)

    def call(self, target: ObjectView, method: Method, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Refused; see `Backend.call`."""
        del target, method, arguments
        raise PastError

    def call_all(
        self,
        targets: Sequence[ObjectView],
        method: Method,
        arguments: Mapping[str, object],
        on_outcome: Callable[[int, CallOutcome], None],
    ) -> None:
        """Refused; see `Backend.call_all`."""
        del targets, method, arguments, on_outcome
        raise PastError

    def set_properties(self, target: ObjectView, values: Mapping[str, object]) -> None:
        """Refused; see `Backend.set_properties`."""
        del target, values
        raise PastError
