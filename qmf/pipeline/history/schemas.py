"""The classes of a lake: from the XML that the recorder stored, or from their columns where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import attrs

from qmf.errors import QmfError
from qmf.pipeline.errors import MissingExtraError
from qmf.pipeline.lake.columns import ClassVersion, MemberKind
from qmf.schema import (
    TYPES,
    Access,
    Argument,
    ClassKey,
    ClassSchema,
    EventSchema,
    Kind,
    Property,
    Severity,
    Statistic,
    parse_schema,
)

AnySchema = ClassSchema | EventSchema


def key_of(version: ClassVersion) -> ClassKey:
    """The class key of a version."""
    try:
        hash = UUID(version.hash) if version.hash else None
    except ValueError:
        hash = None
    return ClassKey(version.package, version.name, Kind.EVENT if version.event else Kind.DATA, hash)


def schema_of(version: ClassVersion, xml: str) -> AnySchema:
    """The schema of a version.

    Raises:
        MissingExtraError: lxml is not installed.
    """
    if xml:
        try:
            read = parse_schema(xml.encode(), f"{version.package}:{version.name}", part=True)
        except ModuleNotFoundError as error:
            raise MissingExtraError("lxml", "history") from error
        except QmfError:
            return _from_columns(version)  # a foreign agent's schema that breaks the rules of XML schemas
        found: tuple[AnySchema, ...] = (*read.classes, *read.events)
        if found:
            return attrs.evolve(found[0], hash=key_of(version).hash)
    return _from_columns(version)


def _from_columns(version: ClassVersion) -> AnySchema:
    """What the columns say: names, types and units, without descriptions."""
    members = list(_members(version))
    hash = key_of(version).hash
    if version.event:
        arguments = tuple(Argument(name=name, type=TYPES[type], unit=unit) for _, name, type, unit in members)
        return EventSchema(
            package=version.package, name=version.name, severity=Severity.INFORM, hash=hash, arguments=arguments
        )
    return ClassSchema(
        package=version.package,
        name=version.name,
        hash=hash,
        properties=tuple(
            Property(name=name, type=TYPES[type], unit=unit, access=Access.RO)
            for kind, name, type, unit in members
            if kind is MemberKind.PROPERTY
        ),
        statistics=tuple(
            Statistic(name=name, type=TYPES[type], unit=unit)
            for kind, name, type, unit in members
            if kind is MemberKind.STATISTIC
        ),
    )


def _members(version: ClassVersion) -> Iterator[tuple[MemberKind, str, str, str | None]]:
    seen: set[str] = set()
    for column in version.columns:
        if column.member not in seen:
            seen.add(column.member)
            yield column.kind, column.member, column.type, column.unit
