"""The objects whose values are metrics: classes are followed from the first scrape on, until nobody scrapes any more.

So what a scrape costs is writing the text; agents are asked once. When an agent is gone, its objects are gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import logging
import time
from collections.abc import Iterable, Sequence

import attrs

from qmf._background_tasks import BackgroundTasks
from qmf.console.aio import Client, Follow, ObjectId, RemoteObject
from qmf.errors import QmfError
from qmf.schema import ClassKey, ClassSchema, Kind
from qmf.views.internal import BROKER_PACKAGE
from qmf.web.metrics.known_types import with_known_types
from qmf.web.metrics.names import Family, families_of
from qmf.web.own_objects import OwnObjects

log = logging.getLogger("qmf.web")

#: Seconds without a scrape after which the classes are no longer followed.
IDLE = 600.0

#: Seconds that a scrape waits for the agents of classes that it is the first to want.
FIRST = 8.0


@attrs.frozen
class ClassObjects:
    """The objects of one version of a class.

    Attributes:
        schema: the version, with the types that the wire leaves out.
        families: its families.
        objects: the objects.
    """

    schema: ClassSchema
    families: tuple[Family, ...]
    objects: Sequence[RemoteObject]


@attrs.define
class _Followed:
    stack: contextlib.AsyncExitStack
    follow: Follow[RemoteObject]


@attrs.frozen
class ClassPatterns:
    """Which classes are wanted.

    Attributes:
        patterns: ``*`` and ``?`` stand for any text; ``package:class`` or ``class``; in any case. None for all.
    """

    patterns: tuple[str, ...]

    def match(self, package: str, name: str) -> bool:
        """Whether a class is wanted."""
        return not self.patterns or any(
            fnmatch.fnmatchcase(f"{package}:{name}".lower() if ":" in pattern else name.lower(), pattern.lower())
            for pattern in self.patterns
        )


class FollowedClasses:
    """The classes that are followed. Belongs to the event loop."""

    def __init__(self, client: Client, patterns: ClassPatterns, interval: float) -> None:
        """Args:

        client: the console.
        patterns: no other classes are ever followed.
        interval: seconds between publications of agents.
        """
        self._client = client
        self._patterns = patterns
        self._interval = interval
        self._followed: dict[tuple[str, str], _Followed] = {}
        self._opening: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._families: dict[ClassKey, tuple[ClassSchema, tuple[Family, ...]]] = {}
        self._own = OwnObjects(self._connection)
        self._ending = BackgroundTasks()
        self._used = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._followed)

    async def objects(self, patterns: ClassPatterns, *, own: bool) -> list[ClassObjects]:
        """The objects of the classes that match, by version of the class, in the order of their names.

        Args:
            patterns: of the classes.
            own: with what agents and consoles created for themselves.
        """
        self._use()
        wanted = await self._wanted(patterns)
        missing = [name for name in wanted if name not in self._followed]
        if missing:
            await self._begin(missing)
        found: dict[ClassKey, list[RemoteObject]] = {}
        for name in wanted:
            followed = self._followed.get(name)
            for obj in followed.follow if followed is not None else ():
                if obj.class_key in self._families and (own or not self._own.is_own(obj)):
                    found.setdefault(obj.class_key, []).append(obj)
        return [
            ClassObjects(*self._families[key], found[key])
            for key in sorted(found, key=lambda key: (key.package, key.name, str(key.hash)))
        ]

    async def close(self) -> None:
        """End all."""
        if self._timer is not None:
            self._timer.cancel()
        opening, self._opening = list(self._opening.values()), {}
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        followed, self._followed = list(self._followed.values()), {}
        for item in followed:
            await item.stack.aclose()
        await self._ending.wait()

    async def _wanted(self, patterns: ClassPatterns) -> list[tuple[str, str]]:
        """The classes that match and have metrics; schemas that are new are learned."""
        keys = [
            key
            for key in self._client.known_classes()
            if key.kind is Kind.DATA and self._patterns.match(key.package, key.name)
        ]
        new = [key for key in keys if key not in self._families and key.hash is not None]
        if new:
            await asyncio.gather(*(self._learn(key) for key in new))
        return list(
            dict.fromkeys(
                (key.package, key.name)
                for key in keys
                if patterns.match(key.package, key.name) and self._families.get(key, (None, ()))[1]
            )
        )

    def _connection(self, id: ObjectId) -> RemoteObject | None:
        followed = self._followed.get((BROKER_PACKAGE, "connection"))
        return None if followed is None else followed.follow.get(id)

    async def _learn(self, key: ClassKey) -> None:
        try:
            async with asyncio.timeout(FIRST):
                schema = await self._client.schema(key)
        except (QmfError, TimeoutError) as error:
            log.info("no metrics of %s yet: %s", key, error)
            return
        if isinstance(schema, ClassSchema):
            complete = with_known_types(schema)
            self._families[key] = complete, tuple(families_of(complete))

    async def _begin(self, names: Iterable[tuple[str, str]]) -> None:
        """Follow classes, and wait a while for their agents; later scrapes have what comes later."""
        loop = asyncio.get_running_loop()
        for name in names:
            if name not in self._opening:
                self._opening[name] = loop.create_task(self._open(*name))
        await asyncio.wait([self._opening[name] for name in names], timeout=FIRST)

    async def _open(self, package: str, name: str) -> None:
        stack = contextlib.AsyncExitStack()
        try:
            follow = self._client.follow(name, package=package, interval=self._interval)
            await stack.enter_async_context(follow)
        except QmfError as error:
            log.info("no metrics of %s:%s yet: %s", package, name, error)
            await stack.aclose()
        except BaseException:
            await stack.aclose()
            raise
        else:
            self._followed[package, name] = _Followed(stack, follow)
        finally:
            self._opening.pop((package, name), None)

    def _use(self) -> None:
        self._used = time.monotonic()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(IDLE, self._check)

    def _check(self) -> None:
        """Follow nothing any more when nobody scrapes."""
        left = self._used + IDLE - time.monotonic()
        if left > 0:
            self._timer = asyncio.get_running_loop().call_later(left, self._check)
            return
        self._timer = None
        followed, self._followed = self._followed, {}
        for item in followed.values():
            self._ending.spawn(item.stack.aclose())
