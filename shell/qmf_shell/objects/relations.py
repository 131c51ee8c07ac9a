"""How objects hang together by their references: who is whose parent, who refers to whom. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from qmf.schema import ClassSchema, Property
from qmf_shell.session.backend import ObjectKey, ObjectRecord


@attrs.frozen
class ObjectReference:
    """A property of an object that names another.

    Attributes:
        owner: the object that has the property.
        name: of the property.
        target: what it names.
    """

    owner: ObjectRecord
    name: str
    target: ObjectKey


def references(item: ObjectRecord) -> Iterator[ObjectReference]:
    """What an object refers to, in schema order; unset ones left out."""
    for name, value in item.values.items():
        if isinstance(value, ObjectKey) and value.name:
            yield ObjectReference(item, name, value)


def parent_property(schema: ClassSchema) -> Property | None:
    """The property that names an object's parent.

    Schemas that were learned by QMFv1, or from other agents, do not tell which it is (QMF2.md 5.3): then it is one
    that is called so, else the first that is part of the key, else the first that is always set.
    """
    found = [item for item in schema.properties if item.type.name == "objId"]
    for fits in (
        lambda item: item.parent_ref,
        lambda item: item.name.lower().startswith("parent"),
        lambda item: item.index,
        lambda item: not item.optional,
    ):
        chosen = next(filter(fits, found), None)
        if chosen is not None:
            return chosen
    return None


def parents(objects: Iterable[ObjectRecord]) -> dict[ObjectKey, ObjectKey]:
    """The parent of each object that has one, as far as that is among the objects. Nobody is their own ancestor."""
    by_key = {item.identity.key: item for item in objects}
    result: dict[ObjectKey, ObjectKey] = {}
    for key, item in by_key.items():
        found = parent_property(item.schema)
        parent = item.values.get(found.name) if found is not None else None
        if isinstance(parent, ObjectKey) and parent in by_key:
            result[key] = parent
    _break_rings(result)
    return result


def _break_rings(found: dict[ObjectKey, ObjectKey]) -> None:
    """Take the parent of one object of each ring away."""
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
    """The opposite of `parents`."""
    result: dict[ObjectKey, list[ObjectKey]] = {}
    for key, parent in found.items():
        result.setdefault(parent, []).append(key)
    return result


def referring(objects: Sequence[ObjectRecord], target: ObjectKey) -> list[ObjectReference]:
    """Every reference to an object."""
    return [item for one in objects for item in references(one) if item.target == target]
