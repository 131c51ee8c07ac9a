"""What a broker remembers of links on which messages come: which it has accepted, until their sender knows of that.

A sender that has lost its connection sends again what it has no outcome of. By this memory the broker knows what it has
already. Of a lasting link it is on the disk, in the unit of each message, so that it is right after a restart as well.
"""

from __future__ import annotations

import itertools
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import attrs

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

    def remember(self, id: int, record: int, tags: Sequence[int]) -> bool:
        """Messages were accepted, whose changes are in the current unit; False if they made none: nothing is kept.

        Args:
            record: number by which they are forgotten together, in the memory of the link.
            tags: that identify them.
        """

    def forget(self, id: int, records: Sequence[int]) -> None:
        """The sender knows of all messages of records."""


@attrs.define(eq=False)
class _Record:
    """Messages that the keeper has as one.

    Attributes:
        number: of the record.
        left: how many of its messages are still needed.
    """

    number: int
    left: int


class LinkMemory(Generic[_Waiting]):
    """The messages of one link that were accepted, by delivery tag or by another number that identifies them.

    Those that were published together are one record of the keeper, which goes with the last of them: what is forgotten
    too late is only sent once more.

    Attributes:
        storing: messages that are on the way to the disk, with who is to settle them then.
        users: ends of links that use it.
    """

    def __init__(
        self, id: int = 0, keeper: MemoryKeeper | None = None, accepted: Mapping[int, Sequence[int]] | None = None
    ) -> None:
        """Make the memory of a link.

        Args:
            id, keeper: of one that is lasting.
            accepted: what the keeper has: tags by the numbers of their records.
        """
        self.storing: dict[int, _Waiting] = {}
        self.users = 0
        self._id = id
        self._keeper = keeper
        #: In the order of acceptance, with the records of those that the keeper has.
        self._accepted: dict[int, _Record | None] = {}
        #: The records of those of `storing` that the keeper has.
        self._kept: dict[int, _Record] = {}
        self._record = 0  # number of the last one
        #: Called when nothing is on the way to the disk any more.
        self._waiting: list[Callable[[], None]] = []
        for number, tags in (accepted or {}).items():
            self._record = max(self._record, number)
            self._kept |= dict.fromkeys(tags, _Record(number, len(tags)))
            self.accept(tags)

    def __contains__(self, tag: int) -> bool:
        return tag in self._accepted

    def is_new(self, tags: Collection[int | None]) -> bool:
        """None of some messages was accepted, or is on the way to the disk."""
        return self._accepted.keys().isdisjoint(tags) and self.storing.keys().isdisjoint(tags)

    @property
    def accepted(self) -> list[int]:
        """All that were accepted and not confirmed, the first one first."""
        return list(self._accepted)

    @property
    def lasting(self) -> bool:
        """It is there again after a restart."""
        return self._keeper is not None

    def begin(self, published: Mapping[int, _Waiting]) -> None:
        """Messages were published together, and are on the way to the disk: in the current unit."""
        self.storing.update(published)
        if self._keeper is None or not published:
            return
        tags = list(published)
        if not self._kept.keys().isdisjoint(tags):  # one came again under another delivery tag
            self._release([record for tag in tags if (record := self._kept.pop(tag, None)) is not None])
        if self._keeper.remember(self._id, self._record + 1, tags):
            self._record += 1
            self._kept |= dict.fromkeys(tags, _Record(self._record, len(tags)))

    def accept(self, tags: Iterable[int]) -> None:
        """Messages are accepted."""
        storing, kept, accepted = self.storing, self._kept, self._accepted
        for tag in tags:
            storing.pop(tag, None)
            if (before := accepted.pop(tag, None)) is not None:
                self._release([before])
            accepted[tag] = kept.pop(tag, None)
        self._see_whether_stored()

    def refuse(self, tag: int) -> None:
        """A message is not accepted, or could not be stored."""
        self.storing.pop(tag, None)
        if (record := self._kept.pop(tag, None)) is not None:
            self._release([record])
        self._see_whether_stored()

    def when_stored(self, callback: Callable[[], None]) -> None:
        """Call something once, when nothing is on the way to the disk: now, or later."""
        self._waiting.append(callback)
        self._see_whether_stored()

    def _see_whether_stored(self) -> None:
        if self._waiting and not self.storing:
            waiting, self._waiting = self._waiting, []
            for callback in waiting:
                callback()

    def confirm(self, tags: Iterable[int]) -> int:
        """The sender knows the outcome of messages, and does not send them again; returns how many were accepted."""
        before, pop = len(self._accepted), self._accepted.pop
        self._release([record for tag in tags if (record := pop(tag, None)) is not None])
        return before - len(self._accepted)

    def keep(self, tags: Container[int]) -> None:
        """The sender does not know the outcomes of these, and those of all others."""
        self.confirm([tag for tag in self._accepted if tag not in tags])

    def trim(self, most: int) -> None:
        """Forget those that were accepted first, if there are more than `most`."""
        self.confirm(list(itertools.islice(self._accepted, max(len(self._accepted) - most, 0))))

    def _release(self, records: Iterable[_Record]) -> None:
        """One message of each record is not needed any more; a record may come several times."""
        unused: list[int] = []
        for record in records:
            record.left -= 1
            if not record.left:
                unused.append(record.number)
        if unused and self._keeper is not None:
            self._keeper.forget(self._id, unused)


class LinkMemories:
    """The memories of a broker's lasting links, by names that are unique among them."""

    def __init__(
        self,
        keeper: MemoryKeeper | None = None,
        kept: Mapping[str, tuple[int, Mapping[int, Sequence[int]]]] | None = None,
    ) -> None:
        """Make the memories of a broker.

        Args:
            keeper: keeps them over a restart; None for a broker that keeps nothing.
            kept: ids, and what was accepted (see `LinkMemory`), by the names of links; the link that was not used for
                longest first.
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
