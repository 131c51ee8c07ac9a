"""Properties, statistics and arguments: one XML element each, read and checked on its own.

What depends on the class around it (duplicate names, several parents, `assign`) is checked in `qmf.schema.rules`.
"""

from __future__ import annotations

from typing import TypedDict

import attrs
from lxml import etree

from qmf.errors import ConstraintError
from qmf.schema.attributes import bound, flag, max_len, name_of, type_of, word
from qmf.schema.constraints import check_value
from qmf.schema.literals import parse_value
from qmf.schema.model import Access, Argument, Direction, Property, Reference, Statistic
from qmf.schema.references import References
from qmf.schema.report import Report, label, quote
from qmf.schema.types import QmfType, Style

_ACCESS = {item.value: item for item in Access}
_DIRECTION = {item.value: item for item in Direction}


class _Common(TypedDict):
    """What all three have in common."""

    unit: str | None
    desc: str | None
    minimum: int | float | None
    maximum: int | float | None
    max_len: int | None
    references: Reference | None


@attrs.frozen
class FieldReader:
    """Reads the elements that hold a typed value.

    The methods return None for an element without name or without usable type; a complete one is returned even where
    something else about it is wrong, and reported.

    Attributes:
        report: takes the errors.
        references: reads references.
    """

    report: Report
    references: References

    def property(self, element: etree._Element) -> Property | None:
        """Read a `property`."""
        report = self.report
        name = name_of(report, element)
        type = type_of(report, element, direct=True)
        index, optional = flag(report, element, "index"), flag(report, element, "optional")
        parent_ref = flag(report, element, "parentRef")
        access = word(report, element, "access", _ACCESS, Access.RO)
        common = self._common(element, type, required=True)
        if index and optional:
            report.error(element, f"{label(element)}: cannot be both index and optional: a key is always whole")
        if parent_ref and type is not None and type.name != "objId":
            report.error(element, f"{label(element)}: parentRef is for objId only, not for {type.name}")
        if name is None or type is None:
            return None
        return Property(
            name=name,
            type=type,
            access=access,
            index=index,
            optional=optional,
            parent_ref=parent_ref,
            general_reference=flag(report, element, "isGeneralReference"),
            **common,
        )

    def statistic(self, element: etree._Element) -> Statistic | None:
        """Read a `statistic`."""
        report = self.report
        name = name_of(report, element)
        type = type_of(report, element, direct=False)
        for attribute in ("index", "optional", "parentRef"):
            if flag(report, element, attribute):
                report.error(element, f"{label(element)}: {attribute} is for properties only")
        if word(report, element, "access", _ACCESS, Access.RO) is not Access.RO:
            report.error(element, f"{label(element)}: a statistic cannot be set, so its access can only be RO")
        common = self._common(element, type, required=True)
        if name is None or type is None:
            return None
        return Statistic(name=name, type=type, assign=element.get("assign"), **common)

    def argument(self, element: etree._Element, *, event: bool) -> Argument | None:
        """Read an `arg` of a method or of an event."""
        report = self.report
        name = name_of(report, element)
        type = type_of(report, element, direct=not event)
        direction = word(report, element, "dir", _DIRECTION, Direction.IN)
        common = self._common(element, type, required=False)
        if event and direction is not Direction.IN:
            report.error(element, f"{label(element)}: an event's argument has no direction but I")
        if event and type is not None and type.style is not Style.DIRECT:
            report.warning(element, f"{label(element)}: type {type.name} is for statistics; sent as {type.base}")
        if name is None or type is None:
            return None
        default = self._default(element, type, direction, common)
        return Argument(name=name, type=type, direction=direction, default=default, **common)

    def _common(self, element: etree._Element, type: QmfType | None, *, required: bool) -> _Common:
        report = self.report
        references = self.references.read(element, type, required=required)
        minimum = maximum = length = None
        if type is not None:
            minimum = bound(report, element, "min", type)
            maximum = bound(report, element, "max", type)
            length = max_len(report, element, type)
        if minimum is not None and maximum is not None and minimum > maximum:
            report.error(element, f"{label(element)}: min {minimum} is above max {maximum}")
            minimum = maximum = None
        return _Common(
            unit=element.get("unit"),
            desc=element.get("desc"),
            minimum=minimum,
            maximum=maximum,
            max_len=length,
            references=references,
        )

    def _default(self, element: etree._Element, type: QmfType, direction: Direction, common: _Common) -> object:
        text = element.get("default")
        if text is None:
            return None
        if direction is Direction.OUT:
            self.report.error(element, f"{label(element)}: an argument that only goes out has no default")
            return None
        try:
            value = parse_value(type, text)
            return check_value(
                type,
                value,
                where=label(element),
                minimum=common["minimum"],
                maximum=common["maximum"],
                max_len=common["max_len"],
            )
        except ConstraintError as error:
            reason = error.reason
        except ValueError as error:
            reason = str(error)
        self.report.error(element, f"{label(element)}: default {quote(text)} is no {type.name}: {reason}")
        return None
