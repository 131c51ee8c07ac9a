"""Drives the passes from a parsed file to a `Schema`: structure, rules, values, result.

A pass reports everything that it finds and continues, so that one run reports all problems.
"""

from __future__ import annotations

from collections.abc import Callable

from lxml import etree

from qmf.errors import SchemaError, SchemaProblem
from qmf.schema.model import Schema
from qmf.schema.parsing.classes import ClassReader, check_class_names
from qmf.schema.parsing.document import Document
from qmf.schema.parsing.fields import FieldReader
from qmf.schema.parsing.grammar import check_structure, report_values
from qmf.schema.parsing.groups import GroupExpander
from qmf.schema.parsing.problems import ProblemCollector, quote
from qmf.schema.parsing.references import ReferenceReader, is_package
from qmf.schema.parsing.signatures import EventReader

#: Longest name of a package: a str8 on the wire.
MAX_PACKAGE = 255


def read_document(document: Document, warn: Callable[[SchemaProblem], None] | None, *, part: bool = False) -> Schema:
    """Make a schema of a parsed file.

    Args:
        document: the file.
        warn: called with each warning, in file order, also if there are errors.
        part: references may name classes that are not in the file.

    Raises:
        SchemaError: with all problems.
    """
    problems = ProblemCollector(document)
    schema = _read(problems, document.root, part) if check_structure(problems) else None
    if warn is not None:
        for problem in problems.warnings:
            warn(problem)
    if schema is None or problems.has_errors:
        raise SchemaError(problems.errors)
    return schema


def _read(problems: ProblemCollector, root: etree._Element, part: bool) -> Schema:
    package = _package(problems, root)
    class_elements = list(root.iterchildren("class"))
    class_names = dict.fromkeys(name for element in class_elements if (name := element.get("name")) is not None)
    fields = FieldReader(problems, ReferenceReader(problems, package, None if part else class_names))
    groups = GroupExpander(problems, root)
    classes = ClassReader(problems, package, groups, fields)
    events = EventReader(problems, package, fields, root)

    check_class_names(problems, class_elements)
    classes.check_groups()
    class_results = [classes.read(element) for element in class_elements]
    event_results = [events.read(element) for element in root.iterchildren("event")]
    report_values(problems)
    if not class_results and not event_results:
        problems.warning(root, f"package {quote(package)} has neither classes nor events")
    return Schema(
        package=package,
        classes=tuple(result for result in class_results if result is not None),
        events=tuple(result for result in event_results if result is not None),
        desc=root.get("desc"),
    )


def _package(problems: ProblemCollector, root: etree._Element) -> str:
    package = root.get("package")
    if package is None:
        return ""
    if not package:
        problems.error(root, "schema: the package is empty")
    elif not is_package(package):
        problems.error(root, f"schema: package {quote(package)} must be names joined by dots, e.g. 'org.example.app'")
    elif len(package) > MAX_PACKAGE:
        problems.error(root, f"schema: the package has more than {MAX_PACKAGE} characters")
    return package
