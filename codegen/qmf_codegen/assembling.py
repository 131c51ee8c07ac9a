"""Schemas as agents tell them, put together as schema files.

An agent tells its classes one by one. On the wire their names are in lower case; where somebody refers to a class, its
name is spelled as in the original file, so that much can be restored. What a file could not say is changed, and told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from qmf.schema import Argument, ClassSchema, EventSchema, Method, Property, Reference, Schema, Statistic, losses

AnySchema = ClassSchema | EventSchema
#: Names of classes as they are spelled, by package and by name in lower case.
Spelling = Mapping[tuple[str, str], str]


@attrs.frozen
class Assembled:
    """What an agent publishes of one package.

    Attributes:
        schema: the package, its classes and events sorted by name.
        notes: what is not as the agent has it, one line each.
    """

    schema: Schema
    notes: tuple[str, ...]


def assemble(schemas: Iterable[AnySchema]) -> list[Assembled]:
    """Put schemas together by package, sorted; of several versions of a class the last one counts."""
    found = list(schemas)
    spelling = _spelling(found)
    packages: dict[str, list[AnySchema]] = {}
    for item in found:
        packages.setdefault(item.package, []).append(item)
    return [_package(name, items, spelling) for name, items in sorted(packages.items())]


def _package(package: str, items: list[AnySchema], spelling: Spelling) -> Assembled:
    notes = []
    last = {item.key.kind.value + item.key.name: item for item in items}
    for item in items:
        if last[item.key.kind.value + item.key.name] is not item:
            notes.append(f"{item.key} is left out: there is another version")
    classes = {item.key.name: item for item in last.values() if isinstance(item, ClassSchema)}
    events = sorted((item for item in last.values() if isinstance(item, EventSchema)), key=lambda item: item.name)
    fixer = _Fixer(package, {name: _spelled(item, spelling) for name, item in classes.items()})
    schema = Schema(
        package=package,
        classes=tuple(sorted(map(fixer.class_, classes.values()), key=lambda item: item.name.lower())),
        events=tuple(map(fixer.event, events)),
    )
    notes += [f"{where}: refers to class {name}, which the agent doesn't have" for where, name in fixer.lost]
    return Assembled(schema, (*notes, *losses(schema)))


def _spelling(schemas: Iterable[AnySchema]) -> Spelling:
    """How classes are spelled where something refers to them."""
    found: dict[tuple[str, str], str] = {}
    for item in schemas:
        for reference in _references(item):
            found.setdefault((reference.package or item.package, reference.name.lower()), reference.name)
    return found


def _references(item: AnySchema) -> Iterable[Reference]:
    parts: list[Property | Statistic | Argument] = []
    if isinstance(item, EventSchema):
        parts += item.arguments
    else:
        parts += [*item.properties, *item.statistics]
        parts += [argument for method in item.methods for argument in method.arguments]
    return [part.references for part in parts if part.references is not None]


def _spelled(item: ClassSchema, spelling: Spelling) -> str:
    """The name of a class; one with capitals is as its author wrote it."""
    return item.name if item.name != item.name.lower() else spelling.get((item.package, item.name), item.name)


class _Fixer:
    """Gives the classes of one package their names, and sees to it that references within it lead somewhere."""

    def __init__(self, package: str, names: Mapping[str, str]) -> None:
        self._package = package
        self._names = names
        self.lost: list[tuple[str, str]] = []

    def class_(self, item: ClassSchema) -> ClassSchema:
        name = self._names[item.key.name]
        return attrs.evolve(
            item,
            name=name,
            hash=None,
            properties=tuple(self._property(name, part) for part in item.properties),
            statistics=tuple(self._statistic(name, part) for part in item.statistics),
            methods=tuple(self._method(name, part) for part in item.methods),
        )

    def event(self, item: EventSchema) -> EventSchema:
        arguments = tuple(self._argument(f"event {item.name}", part) for part in item.arguments)
        return attrs.evolve(item, hash=None, arguments=arguments)

    def _property(self, owner: str, item: Property) -> Property:
        reference = self._reference(f"{owner}.{item.name}", item.references)
        lost = item.references is not None and reference is None
        return attrs.evolve(item, references=reference, general_reference=item.general_reference or lost)

    def _statistic(self, owner: str, item: Statistic) -> Statistic:
        return attrs.evolve(item, references=self._reference(f"{owner}.{item.name}", item.references))

    def _method(self, owner: str, item: Method) -> Method:
        where = f"{owner}.{item.name}"
        return attrs.evolve(item, arguments=tuple(self._argument(where, part) for part in item.arguments))

    def _argument(self, owner: str, item: Argument) -> Argument:
        return attrs.evolve(item, references=self._reference(f"{owner}.{item.name}", item.references))

    def _reference(self, where: str, reference: Reference | None) -> Reference | None:
        if reference is None or reference.package not in (None, self._package):
            return reference
        name = self._names.get(reference.name.lower())
        if name is None:
            self.lost.append((where, reference.name))
            return None
        return Reference(None, name)
