"""What Tab and the toolbar see: a value that a background thread replaces, so that reading it never waits.

The refresher asks for classes and schemas when agents come and go, and for the names of objects when somebody types
where one could stand.
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
from qmf_shell.objects.lookup import class_names
from qmf_shell.session.backend import Backend, ObjectIdentity
from qmf_shell.session.object_names import search_text

logger = logging.getLogger("qmf.shell")

#: Seconds after which names are asked for again, when somebody wants them.
FRESH = 5.0
#: How much longer than a fetch took its names stay fresh: with 10,000 objects, fetching must not be all that we do.
SHARE = 20
#: Seconds between looks at the classes when nothing has told us to.
IDLE = 30.0


@attrs.frozen
class NameSnapshot:
    """What was known at one moment.

    Attributes:
        schemas: classes and events by key; None while a schema could not be had.
        objects: names of living objects, as of the last time that somebody wanted them.
        searches: what each of these is found by, see `names.search_text`.
        uses: how many objects have the same key text.
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
    """Keeps a snapshot fresh, on a thread of its own.

    Attributes:
        snapshot: the latest; read it once and use that.
    """

    def __init__(self, backend: Backend) -> None:
        """
        Args:
            source: the bus.
        """
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
        """Names of objects were fetched."""
        return self._objects_at >= 0

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener`, on the refresher's thread, after each new snapshot; it takes the place of an earlier one."""
        self._listener = listener

    def start(self) -> None:
        """Begin. A second call does nothing."""
        with self._wake:
            if not self._started and not self._closed:
                self._started = True
                self._thread.start()

    def close(self, timeout: float = 1.0) -> None:
        """Stop; waits at most `timeout` seconds for an answer that is under way."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def want_classes(self) -> None:
        """Ask for the classes again: an agent or a class is new, or one is gone. Returns at once."""
        with self._wake:
            self._classes_wanted = True
            self._wake.notify()

    def want_objects(self) -> None:
        """Ask for names of objects, unless they are fresh. Returns at once."""
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
        for key in self._backend.classes().items:
            try:
                schemas[key] = self._backend.schema(key)
            except QmfError as error:
                logger.debug("no schema of %s: %s", key, error)
                schemas[key] = None
        self.snapshot = attrs.evolve(self.snapshot, schemas=schemas)
        if not objects:
            return
        began = time.monotonic()
        names = class_names(sorted(key for key in schemas if key.kind is Kind.DATA))
        found = self._backend.objects(names).items if names else ()
        # Made here, on this thread, so that Tab finds it ready.
        self.snapshot = NameSnapshot(schemas, tuple(item.identity for item in found))
        self._objects_at = time.monotonic()
        self._fresh = max(FRESH, SHARE * (self._objects_at - began))
