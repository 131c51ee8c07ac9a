"""Pages of objects by cursor: an answer of the agents is kept for a while, so that the next pages need no new one.

A cursor names the kept answer and the object after which it goes on. When the answer is gone, the agents are asked
again, and the page begins behind that object: objects are in the order of their ids, so none comes twice.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import collections
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

import attrs

from qmf.console.aio import Answers, RemoteObject
from qmf.errors import QmfError
from qmf.web.problems import Problem

#: Seconds for which an answer is kept after its last use.
KEEP = 60.0

#: Objects of all answers that are kept.
MAX_OBJECTS = 500_000

Key = tuple[str, str]


def key_of(obj: RemoteObject) -> Key:
    """What objects are ordered by."""
    return obj.agent, obj.object_id.object_name


@attrs.frozen
class Page:
    """Some of the objects of an answer.

    Attributes:
        objects: in the order of their ids.
        next: the cursor of the page after it, or None.
        total: how many objects the answer has.
        failures: errors of the agents that did not answer, by name.
    """

    objects: Sequence[RemoteObject]
    next: str | None
    total: int
    failures: Mapping[str, QmfError]


@attrs.define
class _Kept:
    query: object
    objects: Sequence[RemoteObject]
    keys: Sequence[Key]
    failures: Mapping[str, QmfError]
    used: float


class Pages:
    """The answers that are kept. Belongs to the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: collections.OrderedDict[int, _Kept] = collections.OrderedDict()
        self._numbers = itertools.count(1)
        self._clock = clock

    async def page(
        self, query: object, ask: Callable[[], Awaitable[Answers[RemoteObject]]], cursor: str | None, limit: int
    ) -> Page:
        """A page of the answer to a query.

        Args:
            query: what is asked for; a cursor belongs to one query.
            ask: asks the agents.
            cursor: from the page before; None for the first page.
            limit: objects in the page.

        Raises:
            Problem: 422, the cursor is malformed.
            QmfError: as of `ask`.
        """
        self._forget()
        number, after = (0, None) if cursor is None else _read(cursor)
        kept = self._kept.get(number)
        if kept is None or kept.query != query:
            found = await ask()
            objects = sorted(found, key=key_of)
            kept = _Kept(query, objects, [key_of(obj) for obj in objects], found.failures, 0.0)
            number = 0
        first = 0 if after is None else bisect.bisect_right(kept.keys, after)
        last = first + limit
        following = None
        if last < len(kept.objects):
            number = number or self._keep(kept)
            following = _write(number, kept.keys[last - 1])
        if number:
            kept.used = self._clock()
            self._kept.move_to_end(number)
        return Page(kept.objects[first:last], following, len(kept.objects), kept.failures)

    def _keep(self, kept: _Kept) -> int:
        number = next(self._numbers)
        self._kept[number] = kept
        while len(self._kept) > 1 and sum(len(item.objects) for item in self._kept.values()) > MAX_OBJECTS:
            self._kept.popitem(last=False)
        return number

    def _forget(self) -> None:
        now = self._clock()
        for number in [number for number, item in self._kept.items() if now - item.used > KEEP]:
            del self._kept[number]


def _write(number: int, key: Key) -> str:
    text = "\n".join((str(number), *key))
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogateescape")).decode().rstrip("=")


def _read(cursor: str) -> tuple[int, Key]:
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        number, agent, name = data.decode("utf-8", "surrogateescape").split("\n", 2)
        return int(number), (agent, name)
    except (binascii.Error, ValueError):
        raise Problem(422, "query.cursor: is not one that this interface has given") from None
