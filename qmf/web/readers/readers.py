"""Which console a caller has, and what is made once for all who have the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

import attrs

from qmf._background_tasks import BackgroundTasks
from qmf.web.access.read_rights import ReadRights
from qmf.web.access.rules import WebRules
from qmf.web.consoles import WebConsole
from qmf.web.readers.readable_console import ReadableConsole
from qmf.web.scopes import Caller

#: Consoles of callers from whom something is withheld; of more, those that were not used for the longest time end.
MAX_READERS = 200
#: Seconds after its last use that such a console ends.
IDLE = 3600.0

T = TypeVar("T")

#: Ends something.
End = Callable[[], Coroutine[Any, Any, None]]


@attrs.define(eq=False)
class _Reader:
    rights: ReadRights
    console: ReadableConsole
    used: float
    ends: list[End] = attrs.field(factory=list)


class Readers:
    """The consoles of callers. Belongs to the event loop."""

    def __init__(self, console: WebConsole, rules: WebRules, clock: Callable[[], float] = time.monotonic) -> None:
        """Make a store without consoles.

        Args:
            console: shows everything.
            rules: say who may read what.
            clock: seconds that only grow.
        """
        self.console = console
        self._rules = rules
        self._clock = clock
        self._readers: dict[tuple[str, frozenset[str]], _Reader] = {}
        self._tasks = BackgroundTasks()

    def __len__(self) -> int:
        return len(self._readers)

    def console_of(self, caller: Caller) -> WebConsole:
        """What a caller has: the console itself where it may read everything. Another one when its rights changed."""
        rights = self._rules.read_rights(caller)
        if rights is None:
            return self.console
        now = self._clock()
        key = rights.user, rights.groups
        found = self._readers.get(key)
        if found is None or found.rights is not rights:
            self._drop(now - IDLE, found)
            if len(self._readers) >= MAX_READERS:
                self._drop(now - IDLE, min(self._readers.values(), key=lambda item: item.used))
            found = self._readers[key] = _Reader(rights, ReadableConsole(self.console, rights), now)
        found.used = now
        return found.console

    def is_of(self, console: WebConsole, caller: Caller) -> bool:
        """Whether a console that a caller got some time ago still is what it would get."""
        return self.console_of(caller) is console

    def at_end(self, console: WebConsole, end: End) -> None:
        """Call `end` when a console of `console_of` is no longer used; never for the one that shows everything."""
        for reader in self._readers.values():
            if reader.console is console:
                reader.ends.append(end)

    async def close(self) -> None:
        """End all."""
        self._drop(float("inf"))
        await self._tasks.wait()

    def _drop(self, before: float, one: _Reader | None = None) -> None:
        """End those that were not used since a time, and one of them."""
        for key, reader in list(self._readers.items()):
            if reader.used < before or reader is one:
                del self._readers[key]
                for end in reader.ends:
                    self._tasks.spawn(end())


class PerReader(Generic[T]):
    """Something that is made for each console, and ends with it."""

    def __init__(
        self,
        readers: Readers,
        whole: T,
        make: Callable[[ReadableConsole], T],
        end: Callable[[T], Coroutine[Any, Any, None]],
    ) -> None:
        """Make a store.

        Args:
            readers: has the consoles.
            whole: that of the console which shows everything; its owner ends it.
            make: makes and begins another one.
            end: ends one that was made.
        """
        self.whole = whole
        self._readers = readers
        self._make = make
        self._end = end
        self._made: dict[ReadableConsole, T] = {}

    def of(self, console: WebConsole) -> T:
        """That of a console."""
        if not isinstance(console, ReadableConsole):
            return self.whole
        found = self._made.get(console)
        if found is None:
            found = self._made[console] = self._make(console)

            async def end() -> None:
                await self._end(self._made.pop(console))

            self._readers.at_end(console, end)
        return found
