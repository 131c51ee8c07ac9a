"""References between objects: which members of a class refer to objects, and to which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qmf.protocol import ObjectId
from qmf.schema import ClassKey, ClassSchema, Property, Statistic


def reference_members(schema: ClassSchema) -> list[Property | Statistic]:
    """The properties and statistics of a class that refer to objects."""
    members: list[Property | Statistic] = [*schema.properties, *schema.statistics]
    return [item for item in members if item.type.base == "objId"]


def references(schema: ClassSchema, values: Mapping[str, object]) -> Iterator[tuple[str, ObjectId]]:
    """The references of an object by the names of its members, in schema order, without those that are not set.

    Args:
        values: its values by wire name.
    """
    for item in reference_members(schema):
        value = values.get(item.name)
        if isinstance(value, ObjectId) and value.object_name:
            yield item.name, value


def may_refer(schema: ClassSchema, item: Property | Statistic, target: ClassKey | None) -> bool:
    """True if a member of a class may hold the id of an object of the class `target`, or of an unknown one (None).

    Schemas that came by QMFv1, and those of other agents, do not say of which class the objects are.
    """
    wanted = item.references
    if wanted is None or target is None or (isinstance(item, Property) and item.general_reference):
        return item.type.base == "objId"
    return (wanted.package or schema.package) == target.package and wanted.name.lower() == target.name.lower()
