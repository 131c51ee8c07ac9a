"""The passes from a parsed file to a `Schema`: structure, rules, values, result.

Every pass reports all that it finds and leaves the rest alone, so that one run tells everything.
"""

from __future__ import annotations

from collections.abc import Callable

from lxml import etree

from qmf.errors import Problem, SchemaError
from qmf.schema.arguments import EventReader
from qmf.schema.classes import ClassReader, check_class_names
from qmf.schema.document import Document
from qmf.schema.fields import FieldReader
from qmf.schema.grammar import check_structure, report_values
from qmf.schema.groups import Groups
from qmf.schema.model import Schema
from qmf.schema.references import References, is_package
from qmf.schema.report import Report, quote

#: Packages travel as str8.
MAX_PACKAGE = 255


def assemble(document: Document, warn: Callable[[Problem], None] | None) -> Schema:
    """Make a schema of a parsed file.

    Args:
        warn: called with each warning, in file order, also when there are errors.

    Raises:
        SchemaError: with all problems.
    """
    report = Report(document)
    schema = _read(report, document.root) if check_structure(report) else None
    if warn is not None:
        for problem in report.warnings:
            warn(problem)
    if schema is None or report.has_errors:
        raise SchemaError(report.errors)
    return schema


def _read(report: Report, root: etree._Element) -> Schema:
    package = _package(report, root)
    class_elements = list(root.iterchildren("class"))
    class_names = dict.fromkeys(name for element in class_elements if (name := element.get("name")) is not None)
    fields = FieldReader(report, References(report, package, class_names))
    groups = Groups(report, root)
    classes = ClassReader(report, package, groups, fields)
    events = EventReader(report, package, fields, root)

    check_class_names(report, class_elements)
    classes.check_groups()
    class_results = [classes.read(element) for element in class_elements]
    event_results = [events.read(element) for element in root.iterchildren("event")]
    report_values(report)
    if not class_results and not event_results:
        report.warning(root, f"package {quote(package)} has neither classes nor events")
    return Schema(
        package=package,
        classes=tuple(result for result in class_results if result is not None),
        events=tuple(result for result in event_results if result is not None),
        desc=root.get("desc"),
    )


def _package(report: Report, root: etree._Element) -> str:
    package = root.get("package")
    if package is None:
        return ""
    if not package:
        report.error(root, "schema: the package is empty")
    elif not is_package(package):
        report.error(root, f"schema: package {quote(package)} must be names joined by dots, e.g. 'org.example.app'")
    elif len(package) > MAX_PACKAGE:
        report.error(root, f"schema: the package has more than {MAX_PACKAGE} characters")
    return package
