"""References between objects, both ways: which objects refer to one, found among those of the classes that can."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import attrs

from qmf._natural_order import natural_key
from qmf.console.aio import ObjectId
from qmf.errors import QmfError
from qmf.schema import ClassSchema
from qmf.views.objects import ObjectView, object_view
from qmf.views.references import may_refer, reference_members, references
from qmf.web.pages.live.followed import LiveObjects
from qmf.web.pages.live.shared_state import SharedState

#: Seconds that the loop is kept at most, and objects between two looks at the clock.
SLICE = 0.01
STEP = 200
#: The time that reading the references of a class took, times this, is the time until it is done again.
REST = 10.0

#: Agent and name of an object: references to objects come with and without the epoch of their agent.
Place = tuple[str | None, str]


def place(object_id: ObjectId) -> Place:
    """Agent and name of an object."""
    return object_id.agent_name, object_id.object_name


@attrs.frozen
class ReferringObject:
    """An object that refers to another, and the name of the property that does."""

    object: ObjectView
    name: str


class _ClassReferences:
    """The references of the objects of one class, by what they refer to."""

    def __init__(self, objects: LiveObjects) -> None:
        self.objects = objects
        self._lock = asyncio.Lock()
        self._version = -1
        self._not_before = 0.0
        self._found: dict[Place, list[tuple[ObjectId, str]]] = {}

    async def to(self, target: Place) -> list[ReferringObject]:
        await self._refresh()
        found = ((self.objects.view(object_id), name) for object_id, name in self._found.get(target, ()))
        return [ReferringObject(obj, name) for obj, name in found if obj is not None]

    async def _refresh(self) -> None:
        async with self._lock:
            # References are properties, which seldom change without an object coming or going.
            version = self.objects.membership
            if version == self._version or time.monotonic() < self._not_before:
                return
            start = time.monotonic()
            until = start + SLICE
            found: dict[Place, list[tuple[ObjectId, str]]] = {}
            for at, object_id in enumerate(self.objects.ids):
                if at % STEP == 0 and time.monotonic() > until:
                    await asyncio.sleep(0)
                    until = time.monotonic() + SLICE
                obj = self.objects.get(object_id)
                if obj is not None:
                    for name, target in references(obj.schema, obj.typed_values) if obj.schema else ():
                        found.setdefault(place(target), []).append((object_id, name))
            self._found = found
            self._version = version
            self._not_before = time.monotonic() + REST * (time.monotonic() - start)


def _by_class_and_name(item: ReferringObject) -> tuple[object, ...]:
    identity = item.object.identity
    return str(identity.class_key), natural_key(identity.key.object_name), item.name


class References:
    """Finds what refers to an object, while somebody looks. The classes that can are followed until `close`."""

    def __init__(self, site: SharedState) -> None:
        self._site = site
        self._classes: dict[tuple[str, str], tuple[_ClassReferences, Callable[[], None]]] = {}

    async def to(self, obj: ObjectView) -> list[ReferringObject]:
        """The objects that refer to one, by class and name."""
        found: list[ReferringObject] = []
        for name in self._referring_classes(obj):
            held = self._classes.get(name)
            if held is None:
                objects, release = self._site.follow_class(*name)
                held = self._classes[name] = (_ClassReferences(objects), release)
            found += await held[0].to(place(obj.identity.key))
        return sorted(found, key=_by_class_and_name)

    @property
    def complete(self) -> bool:
        """True once the objects of all these classes are known."""
        return all(held.objects.complete for held, _ in self._classes.values())

    def close(self) -> None:
        """No longer look."""
        classes, self._classes = self._classes, {}
        for _, release in classes.values():
            release()

    def _referring_classes(self, obj: ObjectView) -> list[tuple[str, str]]:
        """The classes whose schema allows references to this object; of those that name no class, all that have any."""
        found: dict[tuple[str, str], None] = {}
        key = obj.identity.class_key if obj.identity.class_key.name else None
        for summary in self._site.catalogue.classes():
            for schema in summary.versions:
                if isinstance(schema, ClassSchema) and any(
                    may_refer(schema, item, key) for item in reference_members(schema)
                ):
                    found[summary.package, summary.name] = None
        return list(found)


async def find_object(site: SharedState, object_id: ObjectId) -> ObjectView | None:
    """An object: as it is followed for some page, else as its agent answers; None if there is none, or no answer."""
    name = object_id.object_name.split(":")
    followed = site.followed_class(name[0], name[1].lower()) if len(name) > 2 else None
    found = followed.view(object_id) if followed is not None else site.object(object_id)
    if found is not None:
        return found
    try:
        answers = await site.client.objects(object_id=object_id)
    except QmfError:
        return None
    return object_view(answers[0]) if answers else None
