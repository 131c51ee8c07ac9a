"""What Tab and the toolbar see: a value that a background thread replaces, so that reading it never waits.

The refresher asks for classes and schemas when agents come and go, and for the names of objects when somebody types
where one could stand.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.errors import QmfError
from qmf.schema import ClassKey, ClassSchema, EventSchema, Kind
from qmf_shell.session.lookup import class_names
from qmf_shell.session.source import Known, Source

logger = logging.getLogger("qmf.shell")

#: Seconds after which names are asked for again, when somebody wants them.
FRESH = 5.0
#: Seconds between looks at the classes when nothing has told us to.
IDLE = 30.0


@attrs.frozen
class Snapshot:
    """What was known at one moment.

    Attributes:
        schemas: classes and events by key; None while a schema could not be had.
        objects: names of living objects, as of the last time that somebody wanted them.
    """

    schemas: Mapping[ClassKey, ClassSchema | EventSchema | None] = attrs.field(factory=dict)
    objects: Sequence[Known] = ()


class Refresher:
    """Keeps a snapshot fresh, on a thread of its own.

    Attributes:
        snapshot: the latest; read it once and use that.
    """

    def __init__(self, source: Source, changed: Callable[[], None] = lambda: None) -> None:
        """
        Args:
            source: the bus.
            changed: called on the refresher's thread after each new snapshot.
        """
        self.snapshot = Snapshot()
        self._source = source
        self._changed = changed
        self._wake = threading.Condition()
        self._classes_wanted = True
        self._objects_wanted = False
        self._closed = False
        self._objects_at = -FRESH
        self._thread = threading.Thread(target=self._run, name="qmf-shell-refresher", daemon=True)

    def start(self) -> None:
        """Begin. Call it once."""
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
            if time.monotonic() - self._objects_at >= FRESH:
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
            self._changed()

    def _refresh(self, objects: bool) -> None:
        schemas: dict[ClassKey, ClassSchema | EventSchema | None] = {}
        for key in self._source.classes().items:
            try:
                schemas[key] = self._source.schema(key)
            except QmfError as error:
                logger.debug("no schema of %s: %s", key, error)
                schemas[key] = None
        self.snapshot = attrs.evolve(self.snapshot, schemas=schemas)
        if not objects:
            return
        names = class_names(sorted(key for key in schemas if key.kind is Kind.DATA))
        found = self._source.objects(names).items if names else ()
        self.snapshot = attrs.evolve(self.snapshot, objects=tuple(item.known for item in found))
        self._objects_at = time.monotonic()
