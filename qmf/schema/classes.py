"""Classes of managed objects, put together from their members."""

from __future__ import annotations

from collections.abc import Iterable

from lxml import etree

from qmf.schema.arguments import method_of
from qmf.schema.attributes import name_of
from qmf.schema.fields import FieldReader
from qmf.schema.groups import Groups
from qmf.schema.hashing import class_hash
from qmf.schema.model import ClassSchema, Method, Property, Statistic
from qmf.schema.report import Report, label
from qmf.schema.rules import Part, check_assign, check_names, check_parents


class ClassReader:
    """Reads the `class` and `group` elements of one schema."""

    def __init__(self, report: Report, package: str, groups: Groups, fields: FieldReader) -> None:
        self._report = report
        self._package = package
        self._groups = groups
        self._fields = fields
        self._values: dict[etree._Element, Property | Statistic | Method | None] = {}

    def check_groups(self) -> None:
        """Report what is wrong within groups, used or not."""
        for definition in self._groups.definitions.values():
            check_names(self._report, self._parts(definition))

    def read(self, element: etree._Element) -> ClassSchema | None:
        """Read one class; None when the schema as a whole is faulty and there is no hash to compute."""
        name = name_of(self._report, element)
        parts = self._parts(element)
        check_names(self._report, parts)
        check_parents(self._report, parts)
        check_assign(self._report, label(element), parts)
        if name is None or self._report.has_errors:
            return None
        values = [part.value for part in parts]
        return ClassSchema(
            package=self._package,
            name=name,
            hash=class_hash(element, self._groups),
            properties=tuple(value for value in values if isinstance(value, Property)),
            statistics=tuple(value for value in values if isinstance(value, Statistic)),
            methods=tuple(value for value in values if isinstance(value, Method)),
            desc=element.get("desc"),
        )

    def _parts(self, container: etree._Element) -> list[Part]:
        parts = []
        for member in self._groups.expand(container):
            name = member.element.get("name")
            if member.element not in self._values:
                self._values[member.element] = self._read(member.element)
            if name is not None:
                parts.append(Part(member, name, self._values[member.element]))
        return parts

    def _read(self, element: etree._Element) -> Property | Statistic | Method | None:
        match element.tag:
            case "property":
                return self._fields.property(element)
            case "statistic":
                return self._fields.statistic(element)
        return method_of(self._report, self._fields, element)


def check_class_names(report: Report, elements: Iterable[etree._Element]) -> None:
    """Report classes whose names are equal on the wire, where they are in lower case."""
    taken: dict[str, etree._Element] = {}
    for element in elements:
        name = element.get("name")
        if name is None:
            continue
        other = taken.setdefault(name.lower(), element)
        if other is element:
            continue
        line = report.document.line(other)
        same = other.get("name") == name
        words = "already defined" if same else f"equal to {label(other)} on the wire, which is in lower case, defined"
        report.error(element, f"{label(element)}: {words} in line {line}")
