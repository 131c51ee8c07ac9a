"""Which objects a request is about, and which of their values it wants, as its query says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Annotated, Any
from uuid import UUID

import attrs
from fastapi import Query

from qmf.console.aio import ClassFields, ObjectId, RemoteObject
from qmf.errors import NotFoundError
from qmf.schema import ClassKey, ClassSchema
from qmf.web.problems import Problem

#: Characters of a filter.
MAX_FILTER = 10_000


@attrs.frozen
class ClassSelection:
    """Objects of a class.

    Attributes:
        name: of the class, in any case.
        package: its package, or None for any.
        agent: the agent to ask, or None for all.
        where: filter as text of JSON, or None.
        hash: version of the class, or None for all.
    """

    name: str
    package: str | None = None
    agent: str | None = None
    where: str | None = None
    hash: UUID | None = None

    def arguments(self) -> dict[str, Any]:
        """The arguments of `Client.objects` for it.

        Raises:
            Problem: 422, the filter is malformed.
        """
        found: dict[str, Any] = {"agent": self.agent, "where": read_filter(self.where)}
        if self.hash is not None:
            if self.package is None:
                raise Problem(422, "query.hash: needs package as well")
            return {**found, "class_key": ClassKey(self.package, self.name.lower(), hash=self.hash)}
        return {**found, "name": self.name, "package": self.package}


def read_filter(text: str | None) -> object:
    """A filter from its text: a JSON object of values by name, or a predicate as a JSON array.

    It is not the language of `qmf.views.conditions`: that guesses what people mean by names, units and words, while
    programs have values at hand, and send what agents evaluate as it is.

    Raises:
        Problem: 422, it is neither.
    """
    if text is None or not text.strip():
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise Problem(422, "query.where: must be JSON: an object of values by name, or a predicate") from None
    if isinstance(found, list):
        return found
    if isinstance(found, dict):
        return {name: _wanted_value(value) for name, value in found.items()}
    raise Problem(422, "query.where: must be an object of values by name, or an array that is a predicate")


def _wanted_value(value: object) -> object:
    """A reference is written as everywhere in this interface."""
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        agent = value.get("agent")
        return ObjectId(value["name"], agent if isinstance(agent, str) else None)
    return value


def selection(
    name: Annotated[str, Query(alias="class", min_length=1, max_length=255, description="Class, in any case")],
    package: Annotated[str | None, Query(max_length=255, description="Package of the class")] = None,
    agent: Annotated[str | None, Query(max_length=1000, description="Only this agent")] = None,
    where: Annotated[
        str | None,
        Query(
            max_length=MAX_FILTER,
            description='Filter: a JSON object of values by name, `{"name": "orders"}`, or a QMF predicate, '
            '`["gt", "msgDepth", ["quote", 100]]`',
        ),
    ] = None,
    hash: Annotated[UUID | None, Query(description="Only this version of the class; needs package")] = None,
) -> ClassSelection:
    """A dependency of routes: the selection of their query."""
    return ClassSelection(name, package or None, agent or None, where, hash)


Fields = Annotated[
    str | None, Query(max_length=10_000, description="Only these values: names separated by commas; default: all")
]


def read_fields(text: str | None) -> tuple[str, ...] | None:
    """Names of values, from a list with commas; None for all."""
    names = tuple(dict.fromkeys(item.strip() for item in (text or "").split(",") if item.strip()))
    return names or None


def check_fields(objects: Iterable[RemoteObject], fields: Sequence[str]) -> None:
    """Refuse a field that none of the objects' classes has.

    Raises:
        NotFoundError: there is no such value.
    """
    if fields:
        check_names({obj.schema.key: obj.schema for obj in objects if obj.schema is not None}.values(), fields)


def check_names(schemas: Iterable[ClassSchema], fields: Sequence[str]) -> None:
    """Refuse a field that none of some classes has; without any, nothing is known.

    Raises:
        NotFoundError: there is no such value.
    """
    known = [value for schema in schemas for value in ClassFields(schema).names()]
    for field in fields:
        if known and field not in known:
            raise NotFoundError("value", field, known)


def fields_of(obj: RemoteObject, fields: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Those of the fields that the class of an object has; None for all."""
    if fields is None or obj.schema is None:
        return fields
    known = {item.name for item in obj.schema.properties}
    known |= {entry.name for item in obj.schema.statistics for entry in item.entries}
    return tuple(field for field in fields if field in known)
