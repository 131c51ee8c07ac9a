"""The elements with arguments: methods and events."""

from __future__ import annotations

from collections.abc import Iterable

from lxml import etree

from qmf.schema.model import Argument, EventSchema, Method, Severity
from qmf.schema.parsing.fields import FieldReader
from qmf.schema.parsing.hashing import event_hash
from qmf.schema.parsing.problems import ProblemCollector, label, quote
from qmf.schema.parsing.xml_attributes import choice, name_of

_SEVERITY = {item.schema_name: item for item in Severity}


def method_of(problems: ProblemCollector, fields: FieldReader, element: etree._Element) -> Method | None:
    """Read a `method` with its arguments; None without a name."""
    name = name_of(problems, element)
    arguments = _named_arguments(problems, fields, element.iterchildren("arg"), event=False)
    if name is None:
        return None
    values = tuple(value for _, value in arguments.values() if value is not None)
    return Method(name=name, arguments=values, desc=element.get("desc"))


class EventReader:
    """Reads the `eventArguments` and `event` elements of one schema."""

    def __init__(self, problems: ProblemCollector, package: str, fields: FieldReader, root: etree._Element) -> None:
        self._problems = problems
        self._package = package
        elements = [arg for block in root.iterchildren("eventArguments") for arg in block.iterchildren("arg")]
        self._arguments = _named_arguments(problems, fields, elements, event=True)
        self._names: dict[str, etree._Element] = {}

    def read(self, element: etree._Element) -> EventSchema | None:
        """Read one event; None if the schema has errors."""
        problems = self._problems
        name = name_of(problems, element)
        severity = choice(problems, element, "sev", _SEVERITY, Severity.INFORM)
        names = self._argument_names(element)
        if name is None:
            return None
        other = self._names.setdefault(name, element)
        if other is not element:
            problems.error(element, f"{label(element)}: already defined in line {problems.document.line(other)}")
        if problems.has_errors:
            return None
        found = [self._arguments[name] for name in names]
        return EventSchema(
            package=self._package,
            name=name,
            severity=severity,
            hash=event_hash(element, [argument for argument, _ in found]),
            arguments=tuple(value for _, value in found if value is not None),
            desc=element.get("desc"),
        )

    def _argument_names(self, element: etree._Element) -> list[str]:
        """The names in `args`, split at commas; reports empty, unknown and repeated ones."""
        text = element.get("args", "")
        names = [name.strip() for name in text.split(",")] if text.strip() else []
        seen: set[str] = set()
        for name in names:
            if not name:
                self._problems.error(element, f"{label(element)}: empty name in args {quote(text)}")
            elif name not in self._arguments:
                hint = self._problems.hint(name, self._arguments)
                self._problems.error(element, f"{label(element)}: unknown argument {quote(name)}{hint}")
            elif name in seen:
                self._problems.error(element, f"{label(element)}: argument {quote(name)} is named twice")
            seen.add(name)
        return names


def _named_arguments(
    problems: ProblemCollector, fields: FieldReader, elements: Iterable[etree._Element], *, event: bool
) -> dict[str, tuple[etree._Element, Argument | None]]:
    """Arguments by name; reports names used twice."""
    found: dict[str, tuple[etree._Element, Argument | None]] = {}
    for element in elements:
        name = name_of(problems, element)
        value = fields.argument(element, event=event)
        if name is None:
            continue
        if name in found:
            line = problems.document.line(found[name][0])
            problems.error(element, f"{label(element)}: already defined in line {line}")
        else:
            found[name] = (element, value)
    return found
