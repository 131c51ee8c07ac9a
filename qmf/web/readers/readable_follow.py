"""`ReadableFollow`: of followed objects, those that may be read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Self

import attrs

from qmf._closable import AsyncClosable
from qmf.console.aio import FollowMode, ObjectChange, ObjectId, RemoteObject
from qmf.errors import QmfError
from qmf.web.consoles import ObjectFollow

#: An object as it may be read; None if it may not be.
Readable = Callable[[RemoteObject], RemoteObject | None]


class ReadableFollow(AsyncIterator[ObjectChange[RemoteObject]], AsyncClosable):
    """Objects that may be read, and their changes; see `qmf.console.aio.Follow`."""

    def __init__(
        self,
        follow: ObjectFollow,
        readable: Readable,
        readable_failures: Callable[[Mapping[str, QmfError]], Mapping[str, QmfError]],
        sees_agent: Callable[[str], bool],
    ) -> None:
        self._follow = follow
        self._readable = readable
        self._readable_failures = readable_failures
        self._sees_agent = sees_agent

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[RemoteObject]:
        found = map(self._readable, self._follow)
        return (obj for obj in found if obj is not None)

    def get(self, object_id: ObjectId) -> RemoteObject | None:
        found = self._follow.get(object_id)
        return None if found is None else self._readable(found)

    @property
    def sources(self) -> Mapping[str, FollowMode]:
        return {name: mode for name, mode in self._follow.sources.items() if self._sees_agent(name)}

    @property
    def answered(self) -> bool:
        return self._follow.answered

    @property
    def failures(self) -> Mapping[str, QmfError]:
        return self._readable_failures(self._follow.failures)

    async def close(self) -> None:
        await self._follow.close()

    async def __aenter__(self) -> Self:
        await self._follow.__aenter__()
        return self

    async def __anext__(self) -> ObjectChange[RemoteObject]:
        while True:
            change = await self._follow.__anext__()
            obj = self._readable(change.object)
            if obj is not None:
                # How many changes were dropped is known of all objects together only.
                return attrs.evolve(change, object=obj, dropped=0)
