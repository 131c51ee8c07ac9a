"""What a broker remembers of links on which messages come: which it has accepted, until their sender knows of that.

A sender that has lost its connection sends again what it has no outcome of. By this memory the broker knows what it has
already. Of a lasting link it is on the disk, in the unit of each message, so that it is right after a restart as well.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

log = logging.getLogger("qmf.broker")

#: Lasting links that are remembered. Of more, one is forgotten that is not in use, and of which nothing is open if
#: there is such a one: that loses nothing.
MAX_REMEMBERED = 10_000

_Waiting = TypeVar("_Waiting")


class MemoryKeeper(Protocol):
    """Keeps memories over a restart."""

    def define(self, name: str) -> int:
        """A link is remembered from now on, with an id that no other has or had."""

    def undefine(self, id: int) -> None:
        """A link is forgotten, with all its messages."""

    def remember(self, id: int, tag: int) -> bool:
        """A message was accepted, whose changes are in the current unit; False if it made none, and nothing is kept."""

    def forget(self, id: int, tag: int) -> None:
        """Its sender knows of that."""


class LinkMemory(Generic[_Waiting]):
    """The messages of one link that were accepted, by delivery tag or by another number that identifies them.

    Attributes:
        storing: messages that are on the way to the disk, with who is to settle them then.
        users: ends of links that use it.
    """

    def __init__(self, id: int = 0, keeper: MemoryKeeper | None = None, accepted: Iterable[int] = ()) -> None:
        """Make the memory of a link.

        Args:
            id, keeper: of one that is lasting.
            accepted: what the keeper has.
        """
        self.storing: dict[int, _Waiting] = {}
        self.users = 0
        self._id = id
        self._keeper = keeper
        #: In the order of acceptance; whether the keeper has them.
        self._accepted: dict[int, bool] = dict.fromkeys(accepted, True)
        #: Those of `storing` that the keeper has.
        self._kept: set[int] = set()
        #: Called when nothing is on the way to the disk any more.
        self._waiting: list[Callable[[], None]] = []

    def __contains__(self, tag: int) -> bool:
        return tag in self._accepted

    @property
    def accepted(self) -> list[int]:
        """All that were accepted and not confirmed, the first one first."""
        return list(self._accepted)

    @property
    def lasting(self) -> bool:
        """It is there again after a restart."""
        return self._keeper is not None

    def begin(self, tag: int, waiting: _Waiting) -> None:
        """A message was published, and is on the way to the disk: in the current unit."""
        self.storing[tag] = waiting
        if self._keeper is not None and self._keeper.remember(self._id, tag):
            self._kept.add(tag)

    def accept(self, tag: int) -> None:
        """A message is accepted."""
        self._accepted[tag] = tag in self._kept
        self._end(tag)

    def refuse(self, tag: int) -> None:
        """A message is not accepted, or could not be stored."""
        self._end(tag)

    def when_stored(self, callback: Callable[[], None]) -> None:
        """Call something once, when nothing is on the way to the disk: now, or later."""
        if self.storing:
            self._waiting.append(callback)
        else:
            callback()

    def _end(self, tag: int) -> None:
        self._kept.discard(tag)
        if self.storing.pop(tag, None) is not None and not self.storing:
            waiting, self._waiting = self._waiting, []
            for callback in waiting:
                callback()

    def confirm(self, tag: int) -> None:
        """The sender knows the outcome of a message, and does not send it again."""
        if self._accepted.pop(tag, False) and self._keeper is not None:
            self._keeper.forget(self._id, tag)

    def keep(self, tags: Container[int]) -> None:
        """The sender does not know the outcomes of these, and those of all others."""
        for tag in [tag for tag in self._accepted if tag not in tags]:
            self.confirm(tag)

    def trim(self, most: int) -> None:
        """Forget those that were accepted first, if there are more than `most`."""
        while len(self._accepted) > most:
            self.confirm(next(iter(self._accepted)))


class LinkMemories:
    """The memories of a broker's lasting links, by names that are unique among them."""

    def __init__(self, keeper: MemoryKeeper | None = None, kept: Mapping[str, tuple[int, Iterable[int]]] | None = None):
        """Make the memories of a broker.

        Args:
            keeper: keeps them over a restart; None for a broker that keeps nothing.
            kept: ids and what was accepted, by the names of links; the link that was not used for longest first.
        """
        self._keeper = keeper
        self._ids: OrderedDict[str, int] = OrderedDict()
        self._memories: dict[str, LinkMemory[object]] = {}
        for name, (id, accepted) in (kept or {}).items():
            self._ids[name] = id
            self._memories[name] = LinkMemory(id, keeper, accepted)

    def __len__(self) -> int:
        return len(self._memories)

    def find(self, name: str) -> LinkMemory[object]:
        """The memory of a link, which is used from now on; a new one if there was none."""
        if (memory := self._memories.get(name)) is not None:
            self._ids.move_to_end(name)
            return memory
        if len(self._ids) >= MAX_REMEMBERED:
            self._make_room()
        self._ids[name] = id = 0 if self._keeper is None else self._keeper.define(name)
        memory = self._memories[name] = LinkMemory(id, self._keeper)
        return memory

    def _make_room(self) -> None:
        unused = [name for name in self._ids if not self._memories[name].users]
        empty = (name for name in unused if not self._memories[name].accepted and not self._memories[name].storing)
        if (oldest := next(empty, None)) is None and unused:
            oldest = unused[0]
            log.warning("more than %d links are remembered: %r is forgotten", MAX_REMEMBERED, oldest)
        if oldest is not None:
            self.remove(oldest)

    def names(self, beginning: str) -> list[str]:
        """The names of links that begin with a text."""
        return [name for name in self._memories if name.startswith(beginning)]

    def remove(self, name: str) -> None:
        """A link was closed for good. Does nothing if it is not remembered."""
        if self._memories.pop(name, None) is not None:
            id = self._ids.pop(name)
            if self._keeper is not None:
                self._keeper.undefine(id)
