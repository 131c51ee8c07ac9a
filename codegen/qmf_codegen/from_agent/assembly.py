"""Assembles the classes and events that an agent publishes one by one to packages.

On the wire names of classes are in lower case. A reference to a class spells its name as in the original file, so the
names of those classes can be restored. What a schema file cannot express is changed, with a note.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from qmf.schema import Argument, ClassSchema, EventSchema, Method, Property, Reference, Schema, Statistic, losses

AnySchema = ClassSchema | EventSchema
#: Names of classes as they are spelled, by package and by name in lower case.
Spelling = Mapping[tuple[str, str], str]


@attrs.frozen
class AssembledPackage:
    """Everything that an agent publishes of one package.

    Attributes:
        schema: the package, its classes and events sorted by name.
        notes: differences from the agent's schemas, one line each.
    """

    schema: Schema
    notes: tuple[str, ...]


def assemble(schemas: Iterable[AnySchema]) -> list[AssembledPackage]:
    """Assemble schemas by package, sorted; of several versions of a class only the last one is used."""
    found = list(schemas)
    spelling = _spelling(found)
    packages: dict[str, list[AnySchema]] = {}
    for item in found:
        packages.setdefault(item.package, []).append(item)
    return [_package(name, items, spelling) for name, items in sorted(packages.items())]


def _package(package: str, items: list[AnySchema], spelling: Spelling) -> AssembledPackage:
    notes = []
    last = {item.key.kind.value + item.key.name: item for item in items}
    for item in items:
        if last[item.key.kind.value + item.key.name] is not item:
            notes.append(f"{item.key} is left out: there is another version")
    classes = {item.key.name: item for item in last.values() if isinstance(item, ClassSchema)}
    events = sorted((item for item in last.values() if isinstance(item, EventSchema)), key=lambda item: item.name)
    renamer = _PackageRenamer(package, {name: _spell(item, spelling) for name, item in classes.items()})
    schema = Schema(
        package=package,
        classes=tuple(sorted(map(renamer.class_, classes.values()), key=lambda item: item.name.lower())),
        events=tuple(map(renamer.event, events)),
    )
    notes += [f"{where}: refers to class {name}, which the agent doesn't have" for where, name in renamer.dangling]
    return AssembledPackage(schema, (*notes, *losses(schema)))


def _spelling(schemas: Iterable[AnySchema]) -> Spelling:
    """The names of classes as references spell them."""
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


def _spell(item: ClassSchema, spelling: Spelling) -> str:
    """The name of a class; one with capitals is the original one."""
    return item.name if item.name != item.name.lower() else spelling.get((item.package, item.name), item.name)


class _PackageRenamer:
    """Renames the classes of one package, and removes references to classes that it does not have.

    Attributes:
        dangling: the removed references: their place, and the name of the class.
    """

    def __init__(self, package: str, names: Mapping[str, str]) -> None:
        self._package = package
        self._names = names
        self.dangling: list[tuple[str, str]] = []

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
        dangling = item.references is not None and reference is None
        return attrs.evolve(item, references=reference, general_reference=item.general_reference or dangling)

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
            self.dangling.append((where, reference.name))
            return None
        return Reference(None, name)
