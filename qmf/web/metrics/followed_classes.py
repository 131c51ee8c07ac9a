"""The objects whose values are metrics: classes are followed from the first scrape on, until nobody scrapes any more.

So what a scrape costs is writing the text; agents are asked once. When an agent is gone, its objects are gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import functools
import logging
from collections.abc import Iterator, Mapping, Sequence

import attrs

from qmf.console.aio import FollowedStore, ObjectId, RemoteObject
from qmf.errors import QmfError
from qmf.schema import ClassKey, ClassSchema, Kind, Schema, Statistic, Style
from qmf.views.internal import BROKER_PACKAGE
from qmf.web.consoles import ObjectFollow, WebConsole
from qmf.web.metrics.names import MetricFamily, families_of
from qmf.web.own_objects import OwnObjects


@functools.cache
def _known_schemas() -> Mapping[tuple[str, str], ClassSchema]:
    # Imported here: only what serves metrics needs them.
    from qmf.models.acl.schema import SCHEMA as ACL
    from qmf.models.broker.schema import SCHEMA as BROKER
    from qmf.models.host.schema import SCHEMA as HOST

    schemas: tuple[Schema, ...] = (ACL, BROKER, HOST)
    return {(item.package, item.name.lower()): item for schema in schemas for item in schema.classes}


def with_known_types(schema: ClassSchema) -> ClassSchema:
    """A schema whose statistics have the types, units and descriptions of our own schema of that class, if any.

    QMFv1 schemas, as qpidd sends them, leave out that a statistic is a counter, hilo or mma; ours are qpidd's.
    A schema that has styles itself stays as it is; statistics that only the agent knows stay, too.
    """
    known = _known_schemas().get((schema.package, schema.name.lower()))
    if known is None or any(item.type.style is not Style.DIRECT for item in schema.statistics):
        return schema
    left: dict[str, Statistic] = {item.name: item for item in schema.statistics}
    found: list[Statistic] = []
    for item in known.statistics:
        names = {entry.v1_name for entry in item.entries}
        if names <= left.keys():
            found.append(item)
            for name in names:
                del left[name]
    return attrs.evolve(schema, statistics=(*found, *left.values()))


log = logging.getLogger("qmf.web")

#: Package and name of a class.
ClassName = tuple[str, str]

#: Seconds without a scrape after which the classes are no longer followed.
IDLE = 600.0

#: Seconds that a scrape waits for schemas and agents of classes that it is the first to want: it has those that are
#: there then, and says how many are not.
FIRST = 0.6


@attrs.frozen
class ClassObjects:
    """The objects of one version of a class.

    Attributes:
        schema: the version, with the types that the wire leaves out.
        families: its families.
        objects: the objects.
    """

    schema: ClassSchema
    families: tuple[MetricFamily, ...]
    objects: Sequence[RemoteObject]


class _FollowedClass:
    """The objects of a class, followed.

    Attributes:
        ready: set once the agents present have answered, or it failed.
    """

    def __init__(self, name: ClassName, follow: ObjectFollow) -> None:
        self.ready = asyncio.Event()
        self._name = name
        self._follow = follow

    async def run(self) -> None:
        """Follow until cancelled."""
        try:
            async with self._follow:
                self.ready.set()
                await asyncio.get_running_loop().create_future()
        except QmfError as error:
            log.info("no metrics of %s:%s yet: %s", *self._name, error)
        finally:
            self.ready.set()

    def __iter__(self) -> Iterator[RemoteObject]:
        return iter(self._follow if self.ready.is_set() else ())

    def get(self, id: ObjectId) -> RemoteObject | None:
        """An object, or None."""
        return self._follow.get(id)


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
    """The classes that are followed. Belongs to the event loop.

    Attributes:
        collecting: classes that the last scrape lacks: their schema was not there yet, or not all agents had answered.
    """

    def __init__(self, client: WebConsole, patterns: ClassPatterns, interval: float) -> None:
        """Make a set of classes of which none is followed yet.

        Args:
            patterns: no other classes are ever followed.
            interval: seconds between publications of agents.
        """
        self.collecting = 0
        self._client = client
        self._patterns = patterns
        self._interval = interval
        self._followed = FollowedStore(self._follow, IDLE)
        self._families: dict[ClassKey, tuple[ClassSchema, tuple[MetricFamily, ...]]] = {}
        self._own = OwnObjects(self._connection)

    async def objects(self, patterns: ClassPatterns, *, own: bool) -> list[ClassObjects]:
        """The objects of the classes that match, by version of the class, in the order of their names.

        Args:
            patterns: of the classes.
            own: with what agents and consoles created for themselves.
        """
        deadline = asyncio.get_running_loop().time() + FIRST
        wanted = await self._wanted_classes(patterns, deadline)
        leases = [self._followed.lease(name) for name in wanted]
        try:
            # Later scrapes have what comes later.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    for followed, _ in leases:
                        await followed.ready.wait()
        finally:
            for _, release in leases:
                release()
        self.collecting = len(self._unknown_versions(patterns)) + sum(not item.ready.is_set() for item, _ in leases)
        found: dict[ClassKey, list[RemoteObject]] = {}
        for followed, _ in leases:
            for obj in followed:
                if obj.class_key in self._families and (own or not self._own.is_own(obj)):
                    found.setdefault(obj.class_key, []).append(obj)
        return [
            ClassObjects(*self._families[key], found[key])
            for key in sorted(found, key=lambda key: (key.package, key.name, str(key.hash)))
        ]

    async def close(self) -> None:
        """End all."""
        await self._followed.close()

    def _follow(self, name: ClassName) -> _FollowedClass:
        return _FollowedClass(name, self._client.follow(name[1], package=name[0], interval=self._interval))

    async def _wanted_classes(self, patterns: ClassPatterns, deadline: float) -> list[ClassName]:
        """The classes that match and have metrics; schemas that are new are learned."""
        if new := self._unknown_versions(ClassPatterns(())):
            await asyncio.gather(*(self._learn(key, deadline) for key in new))
        return list(
            dict.fromkeys(
                (key.package, key.name)
                for key in self._known_classes()
                if patterns.match(key.package, key.name) and self._families.get(key, (None, ()))[1]
            )
        )

    def _known_classes(self) -> list[ClassKey]:
        """Those that may be followed."""
        known = self._client.known_classes()
        return [key for key in known if key.kind is Kind.DATA and self._patterns.match(key.package, key.name)]

    def _unknown_versions(self, patterns: ClassPatterns) -> list[ClassKey]:
        """Of these the versions that match, and whose schemas are not known."""
        return [
            key
            for key in self._known_classes()
            if key not in self._families and key.hash is not None and patterns.match(key.package, key.name)
        ]

    def _connection(self, id: ObjectId) -> RemoteObject | None:
        followed = self._followed.get((BROKER_PACKAGE, "connection"))
        return None if followed is None else followed.get(id)

    async def _learn(self, key: ClassKey, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                schema = await self._client.schema(key)
        except (QmfError, TimeoutError) as error:
            log.info("no metrics of %s yet: %s", key, error)
            return
        if isinstance(schema, ClassSchema):
            complete = with_known_types(schema)
            self._families[key] = complete, tuple(families_of(complete))
