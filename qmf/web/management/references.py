"""The objects that name an object."""

from __future__ import annotations

import asyncio

import attrs

from qmf.console.aio import RemoteObject
from qmf.errors import QmfError
from qmf.schema import ClassSchema, Kind, Property, Statistic
from qmf.views.references import may_refer, reference_members
from qmf.web.consoles import WebConsole


@attrs.frozen
class Referrer:
    """An object that names another one.

    Attributes:
        property: by which property or statistic.
        object: the object.
    """

    property: str
    object: RemoteObject


async def incoming(
    client: WebConsole, obj: RemoteObject, timeout: float | None
) -> tuple[list[Referrer], dict[str, str]]:
    """The objects of the same agent that name an object; `timeout`: seconds for each request.

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
        for item in reference_members(schema)
        if may_refer(schema, item, obj.class_key)
    ]

    async def ask(schema: ClassSchema, item: Property | Statistic) -> list[Referrer]:
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
