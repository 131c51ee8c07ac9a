"""Pages of objects by cursor: an answer of the agents is kept for a while, so that the next pages need no new one.

The first page is the one that most clients ask for, and the only one: agents of this project send no more than its
objects, and how many there are; of other answers its objects are picked. The rest is asked for, and put in order, when
a second page is asked for. A cursor names the kept answer and the object after which it goes on. When the
answer is gone, the agents are asked again, and the page begins behind that object's place, so none comes twice.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import collections
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence

import attrs

from qmf.console.aio import Answers, RemoteObject
from qmf.errors import QmfError
from qmf.web.management.ordering import ObjectOrdering
from qmf.web.problems import Problem

#: Seconds for which an answer is kept after its last use.
KEEP = 60.0

#: Objects of all answers that are kept.
MAX_OBJECTS = 500_000


@attrs.frozen
class ResultPage:
    """Some of the objects of an answer.

    Attributes:
        objects: in their order.
        next: the cursor of the page after it, or None.
        total: how many objects there are; None if not all agents were asked for them.
        failures: errors of the agents that did not answer, by name.
    """

    objects: Sequence[RemoteObject]
    next: str | None
    total: int | None
    failures: Mapping[str, QmfError]


@attrs.define(eq=False)
class _Kept:
    query: Hashable
    order: ObjectOrdering
    objects: Sequence[RemoteObject]
    failures: Mapping[str, QmfError]
    used: float = 0.0
    ordered: bool = False

    def put_in_order(self) -> None:
        if not self.ordered:
            self.objects = sorted(self.objects, key=self.order.key_of)
            self.ordered = True


class ResultPages:
    """The answers that are kept. Belongs to the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: collections.OrderedDict[int, _Kept] = collections.OrderedDict()
        self._numbers = itertools.count(1)
        self._clock = clock

    async def page(
        self,
        query: Hashable,
        ask: Callable[[], Awaitable[Answers[RemoteObject]]],
        cursor: str | None,
        limit: int,
        order: ObjectOrdering = ObjectOrdering(),  # noqa: B008 - a frozen value
        ask_first: Callable[[], Awaitable[Answers[RemoteObject]]] | None = None,
    ) -> ResultPage:
        """A page of the answer to a query.

        Args:
            query: what is asked for; a cursor belongs to one query.
            ask: asks the agents.
            cursor: from the page before; None for the first page.
            limit: objects in the page.
            ask_first: asks the agents for the objects of the first page; None if they can't be asked for these alone.

        Raises:
            Problem: 422, the cursor is malformed, or one of another order.
            QmfError: as of `ask`.
        """
        self.forget()
        number, first, place = (0, 0, None) if cursor is None else _read(cursor)
        if place is not None and len(place) != len(order.fields) + 2:
            raise Problem(422, "query.cursor: is one of another order")
        kept = self._kept.get(number)
        if kept is None or (kept.query, kept.order) != (query, order):
            if ask_first is not None and cursor is None:
                answer = await ask_first()
                if answer.total != len(answer):
                    return _first_page(answer, limit, order)
            else:
                answer = await ask()
            kept, number = _Kept(query, order, answer, answer.failures), 0
            if place is not None:
                kept.put_in_order()
                first = bisect.bisect_right(kept.objects, order.key(place), key=order.key_of)
        last = first + limit
        if first:
            kept.put_in_order()
        objects = kept.objects[first:last] if kept.ordered else order.first(kept.objects, limit)
        following = None
        if last < len(kept.objects):
            number = number or self._keep(kept)
            following = _write(number, last, order.place(objects[-1]))
        if number:
            kept.used = self._clock()
            self._kept.move_to_end(number)
        return ResultPage(objects, following, len(kept.objects), kept.failures)

    def forget(self) -> None:
        """Give back the answers that nobody has read for a while."""
        now = self._clock()
        for number in [number for number, item in self._kept.items() if now - item.used > KEEP]:
            del self._kept[number]

    def _keep(self, kept: _Kept) -> int:
        number = next(self._numbers)
        self._kept[number] = kept
        while len(self._kept) > 1 and sum(len(item.objects) for item in self._kept.values()) > MAX_OBJECTS:
            self._kept.popitem(last=False)
        return number


def _first_page(answer: Answers[RemoteObject], limit: int, order: ObjectOrdering) -> ResultPage:
    """A page of an answer that has no more; the one after it begins behind the place of its last object."""
    objects = order.first(answer, limit)
    following = _write(0, len(objects), order.place(objects[-1])) if objects else None
    return ResultPage(objects, following, answer.total, answer.failures)


def _write(number: int, position: int, place: Sequence[object]) -> str:
    text = json.dumps([number, position, place], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(cursor: str) -> tuple[int, int, list[object]]:
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        number, position, place = json.loads(data)
    except (binascii.Error, ValueError, TypeError, RecursionError):
        raise Problem(422, "query.cursor: is not one that this interface has given") from None
    valid = isinstance(number, int) and isinstance(position, int) and position >= 0 and isinstance(place, list)
    if not valid:
        raise Problem(422, "query.cursor: is not one that this interface has given")
    return number, position, place
