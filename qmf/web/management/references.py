"""References of an object both ways: the objects that it names, and those that name it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import attrs

from qmf.console.aio import Client, ObjectId, RemoteObject
from qmf.errors import QmfError
from qmf.schema import ClassSchema, Kind, Property, Reference


@attrs.frozen
class Referrer:
    """An object that names another one.

    Attributes:
        property: by which property.
        object: the object.
    """

    property: str
    object: RemoteObject


def outgoing(obj: RemoteObject) -> Iterator[tuple[str, ObjectId]]:
    """The objects that an object names, with the property; without a schema none."""
    for name, value in obj.properties.items():
        if isinstance(value, ObjectId) and value.object_name:
            yield name, value


async def incoming(client: Client, obj: RemoteObject, timeout: float | None) -> tuple[list[Referrer], dict[str, str]]:
    """The objects of the same agent that name an object.

    Args:
        client: the console.
        obj: the object.
        timeout: seconds for each request.

    Returns:
        them, and the errors of classes that could not be asked for, by class.
    """
    keys = [key for key in await client.classes(agent=obj.agent, timeout=timeout) if key.kind is Kind.DATA]
    schemas = await asyncio.gather(*(client.schema(key) for key in keys), return_exceptions=True)
    failures = {str(key): str(error) for key, error in zip(keys, schemas, strict=True) if isinstance(error, QmfError)}
    wanted = [
        (schema, item)
        for schema in schemas
        if isinstance(schema, ClassSchema)
        for item in schema.properties
        if may_refer(schema, item, obj)
    ]

    async def ask(schema: ClassSchema, item: Property) -> list[Referrer]:
        found = await client.objects(
            class_key=schema.key, agent=obj.agent, where={item.name: obj.object_id}, timeout=timeout
        )
        return [Referrer(item.name, other) for other in found]

    answers = await asyncio.gather(*(ask(*each) for each in wanted), return_exceptions=True)
    found: list[Referrer] = []
    for (schema, _), answer in zip(wanted, answers, strict=True):
        if isinstance(answer, QmfError):
            failures[str(schema.key)] = str(answer)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found += answer
    return found, failures


def may_refer(schema: ClassSchema, item: Property, obj: RemoteObject) -> bool:
    """Whether a property of a class may hold the id of an object; schemas from agents may not say of which class."""
    if item.type.base != "objId":
        return False
    key, target = obj.class_key, item.references
    if key is None or target is None or item.general_reference:
        return True
    return _same_class(target, schema.package, key.package, key.name)


def _same_class(target: Reference, default: str, package: str, name: str) -> bool:
    return (target.package or default) == package and target.name.lower() == name.lower()
