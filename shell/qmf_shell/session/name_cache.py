"""The names that Tab and the toolbar use: a snapshot that a background thread replaces, so that reading never waits.

The refresher requests classes and schemas when agents appear or disappear, and names of objects when the user types
where one could be.
"""

from __future__ import annotations

import collections
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.errors import QmfError
from qmf.schema import ClassKey, ClassSchema, EventSchema, Kind
from qmf.views.objects import ObjectIdentity
from qmf_shell.session.backend import Backend, ClassName, ObjectLimit
from qmf_shell.session.object_names import class_names, search_text

logger = logging.getLogger("qmf.shell")

#: Seconds for which names of objects stay fresh, at least.
FRESH = 5.0
#: They stay fresh for so many times the duration of the request, so that requests of 10,000 objects stay rare.
FRESH_FACTOR = 20
#: Objects of each class whose names are wanted before those of all.
FIRST_NAMES = 500
#: Seconds between requests of the classes when no change is reported.
IDLE = 30.0


@attrs.frozen
class NameSnapshot:
    """The names at one moment.

    Attributes:
        schemas: classes and events by key; None if the schema could not be fetched.
        objects: existing objects, as of the last time that they were wanted.
        searches: the search text of each of these, see `object_names.search_text`.
        uses: how many objects have an index.
    """

    schemas: Mapping[ClassKey, ClassSchema | EventSchema | None] = attrs.field(factory=dict)
    objects: Sequence[ObjectIdentity] = ()
    searches: Sequence[str] = attrs.field(
        default=attrs.Factory(lambda self: tuple(map(search_text, self.objects)), takes_self=True)
    )
    uses: Mapping[str, int] = attrs.field(
        default=attrs.Factory(lambda self: collections.Counter(item.index for item in self.objects), takes_self=True)
    )


class NameRefresher:
    """Keeps a snapshot fresh, on its own thread.

    Attributes:
        snapshot: the latest one; read this attribute once and use that value.
    """

    def __init__(self, backend: Backend) -> None:
        """Prepare the thread, which `start` starts; `backend`: access to the bus."""
        self.snapshot = NameSnapshot()
        self._backend = backend
        self._listener: Callable[[], None] = lambda: None
        self._wake = threading.Condition()
        self._classes_wanted = True
        self._objects_wanted = False
        self._closed = False
        self._started = False
        self._objects_at = -FRESH
        self._fresh = FRESH
        self._thread = threading.Thread(target=self._run, name="qmf-shell-refresher", daemon=True)

    @property
    def has_objects(self) -> bool:
        """True after names of objects were fetched."""
        return self._objects_at >= 0

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the refresher's thread after each new snapshot; it replaces an earlier listener."""
        self._listener = listener

    def use(self, backend: Backend) -> None:
        """Go on with the names of other brokers. Returns at once."""
        with self._wake:
            self._backend, self.snapshot = backend, NameSnapshot()
            self._objects_at, self._fresh = -FRESH, FRESH
            self._classes_wanted = True
            self._wake.notify()

    def start(self) -> None:
        """Start the thread. A second call does nothing."""
        with self._wake:
            if not self._started and not self._closed:
                self._started = True
                self._thread.start()

    def close(self, timeout: float = 1.0) -> None:
        """Stop the thread; waits at most `timeout` seconds for a request that is running."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def request_classes(self) -> None:
        """Request the classes again: an agent or a class has appeared or disappeared. Returns at once."""
        with self._wake:
            self._classes_wanted = True
            self._wake.notify()

    def request_objects(self) -> None:
        """Request names of objects, unless they are fresh. Returns at once."""
        with self._wake:
            if time.monotonic() - self._objects_at >= self._fresh:
                self._objects_wanted = True
                self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._closed or self._classes_wanted or self._objects_wanted, IDLE)
                if self._closed:
                    return
                objects, self._classes_wanted, self._objects_wanted = self._objects_wanted, False, False
            try:
                self._refresh(objects)
            except QmfError as error:
                logger.debug("cannot refresh names: %s", error)
            self._listener()

    def _refresh(self, objects: bool) -> None:
        schemas: dict[ClassKey, ClassSchema | EventSchema | None] = {}
        backend = self._backend
        for key in backend.classes().items:
            try:
                schemas[key] = backend.schema(key)
            except QmfError as error:
                logger.debug("no schema of %s: %s", key, error)
                schemas[key] = None
        if backend is not self._backend:
            return  # of other brokers meanwhile
        self.snapshot = attrs.evolve(self.snapshot, schemas=schemas)
        if not objects:
            return
        began = time.monotonic()
        names = class_names(sorted(key for key in schemas if key.kind is Kind.DATA))
        if not names or not self._take_first(backend, names, schemas):
            found = backend.objects(names).items if names else ()
            if backend is not self._backend:
                return
            # The derived attributes are computed here, on this thread, so that Tab need not compute them.
            self.snapshot = NameSnapshot(schemas, tuple(item.identity for item in found))
        if backend is not self._backend:
            return
        self._objects_at = time.monotonic()
        self._fresh = max(FRESH, FRESH_FACTOR * (self._objects_at - began))

    def _take_first(
        self,
        backend: Backend,
        names: Sequence[ClassName],
        schemas: Mapping[ClassKey, ClassSchema | EventSchema | None],
    ) -> bool:
        """Take the first names, if none are known: of 100,000 objects, these are there in a fraction of a second.

        Returns:
            True if these are all.
        """
        if self.has_objects:
            return False
        first = backend.objects(names, (), ObjectLimit(FIRST_NAMES, ()))
        if backend is not self._backend:
            return True
        self.snapshot = NameSnapshot(schemas, tuple(item.identity for item in first.items))
        if first.total is not None and first.total <= len(first.items):
            return True
        self._listener()
        return False
