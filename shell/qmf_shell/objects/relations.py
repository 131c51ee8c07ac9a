"""References between objects: parents, children, and all others. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from qmf.schema import ClassSchema, Property
from qmf.views.objects import ObjectKey, ObjectView


def references(item: ObjectView) -> list[tuple[str, ObjectKey]]:
    """The references of an object by the names of its properties, in schema order, without unset ones."""
    return [(name, value) for name, value in item.values.items() if isinstance(value, ObjectKey) and value.object_name]


@attrs.frozen
class Relation:
    """A reference in one direction.

    Attributes:
        direction: ``to``: a property of the object refers to another; ``from``: the other way round.
        key: the other object.
        name: of the property.
        other: the other object, if it was found.
    """

    direction: str
    key: ObjectKey
    name: str
    other: ObjectView | None


def relations_of(key: ObjectKey, objects: Iterable[ObjectView], target: ObjectView | None = None) -> list[Relation]:
    """The references of an object, then those to it, among all objects; `target` is the object, if it is known."""
    by_key = {item.identity.key: item for item in objects}
    target = target or by_key.get(key)
    found = references(target) if target is not None else ()
    to = [Relation("to", other, name, by_key.get(other)) for name, other in found]
    back = ((name, one) for one in by_key.values() for name, other in references(one) if other == key)
    return to + [Relation("from", one.identity.key, name, one) for name, one in back]


def parent_property(schema: ClassSchema) -> Property | None:
    """The property that refers to an object's parent.

    Schemas that were received in QMFv1, or from other agents, do not mark it (QMF2.md 5.3): then it is the first
    reference whose name begins with "parent", else the first one in the key, else the first one that is not optional.
    """
    found = [item for item in schema.properties if item.type.name == "objId"]
    for matches in (
        lambda item: item.parent_ref,
        lambda item: item.name.lower().startswith("parent"),
        lambda item: item.index,
        lambda item: not item.optional,
    ):
        chosen = next(filter(matches, found), None)
        if chosen is not None:
            return chosen
    return None


def parents(objects: Iterable[ObjectView]) -> dict[ObjectKey, ObjectKey]:
    """The parent of each object that has one among the objects. The result has no cycles."""
    by_key = {item.identity.key: item for item in objects}
    result: dict[ObjectKey, ObjectKey] = {}
    for key, item in by_key.items():
        found = parent_property(item.schema)
        parent = item.values.get(found.name) if found is not None else None
        if isinstance(parent, ObjectKey) and parent in by_key:
            result[key] = parent
    _break_cycles(result)
    return result


def _break_cycles(found: dict[ObjectKey, ObjectKey]) -> None:
    """Remove the parent of one object of each cycle."""
    done: set[ObjectKey] = set()
    for start in list(found):
        path: set[ObjectKey] = set()
        at: ObjectKey | None = start
        while at is not None and at not in done:
            path.add(at)
            above = found.get(at)
            if above in path:
                del found[at]
                break
            at = above
        done |= path


def children(found: Mapping[ObjectKey, ObjectKey]) -> dict[ObjectKey, list[ObjectKey]]:
    """The children of each object that has some: the opposite of `parents`."""
    result: dict[ObjectKey, list[ObjectKey]] = {}
    for key, parent in found.items():
        result.setdefault(parent, []).append(key)
    return result
