"""Classes of managed objects, assembled from their members."""

from __future__ import annotations

from collections.abc import Iterable

from lxml import etree

from qmf.schema.model import ClassSchema, Method, Property, Statistic
from qmf.schema.parsing.fields import FieldReader
from qmf.schema.parsing.groups import GroupExpander
from qmf.schema.parsing.hashing import class_hash
from qmf.schema.parsing.problems import ProblemCollector, label
from qmf.schema.parsing.rules import NamedMember, check_assign, check_names, check_parents
from qmf.schema.parsing.signatures import method_of
from qmf.schema.parsing.xml_attributes import name_of


class ClassReader:
    """Reads the `class` and `group` elements of one schema."""

    def __init__(self, problems: ProblemCollector, package: str, groups: GroupExpander, fields: FieldReader) -> None:
        self._problems = problems
        self._package = package
        self._groups = groups
        self._fields = fields
        self._values: dict[etree._Element, Property | Statistic | Method | None] = {}

    def check_groups(self) -> None:
        """Report faults within groups, even unused ones."""
        for definition in self._groups.definitions.values():
            check_names(self._problems, self._members(definition))

    def read(self, element: etree._Element) -> ClassSchema | None:
        """Read one class; None if the schema has errors, so that there is no hash to compute."""
        name = name_of(self._problems, element)
        members = self._members(element)
        check_names(self._problems, members)
        check_parents(self._problems, members)
        check_assign(self._problems, label(element), members)
        if name is None or self._problems.has_errors:
            return None
        values = [member.value for member in members]
        return ClassSchema(
            package=self._package,
            name=name,
            hash=class_hash(element, self._groups),
            properties=tuple(value for value in values if isinstance(value, Property)),
            statistics=tuple(value for value in values if isinstance(value, Statistic)),
            methods=tuple(value for value in values if isinstance(value, Method)),
            desc=element.get("desc"),
        )

    def _members(self, container: etree._Element) -> list[NamedMember]:
        members = []
        for member in self._groups.expand(container):
            name = member.element.get("name")
            if member.element not in self._values:
                self._values[member.element] = self._read(member.element)
            if name is not None:
                members.append(NamedMember(member, name, self._values[member.element]))
        return members

    def _read(self, element: etree._Element) -> Property | Statistic | Method | None:
        match element.tag:
            case "property":
                return self._fields.property(element)
            case "statistic":
                return self._fields.statistic(element)
        return method_of(self._problems, self._fields, element)


def check_class_names(problems: ProblemCollector, elements: Iterable[etree._Element]) -> None:
    """Report classes whose names are equal on the wire, where they are in lower case."""
    known: dict[str, etree._Element] = {}
    for element in elements:
        name = element.get("name")
        if name is None:
            continue
        other = known.setdefault(name.lower(), element)
        if other is element:
            continue
        line = problems.document.line(other)
        same = other.get("name") == name
        what = "already defined" if same else f"equal to {label(other)} on the wire, which is in lower case, defined"
        problems.error(element, f"{label(element)}: {what} in line {line}")
