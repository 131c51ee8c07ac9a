"""Properties, statistics and arguments: one XML element each, read and checked on its own.

What depends on the whole class (duplicate names, several parents, `assign`) is checked in `qmf.schema.parsing.rules`.
"""

from __future__ import annotations

from typing import TypedDict

import attrs
from lxml import etree

from qmf.errors import ConstraintError
from qmf.schema.constraints import check_value
from qmf.schema.literals import parse_value
from qmf.schema.model import Access, Argument, Direction, Property, Reference, Statistic
from qmf.schema.parsing.problems import ProblemCollector, label, quote
from qmf.schema.parsing.references import ReferenceReader
from qmf.schema.parsing.xml_attributes import choice, flag, limit, max_len, name_of, type_of
from qmf.schema.types import QmfType, Style

_ACCESS = {item.value: item for item in Access}
_DIRECTION = {item.value: item for item in Direction}


class _CommonAttributes(TypedDict):
    """The attributes that all three have."""

    unit: str | None
    desc: str | None
    minimum: int | float | None
    maximum: int | float | None
    max_len: int | None
    references: Reference | None


@attrs.frozen
class FieldReader:
    """Reads the elements that have a typed value.

    The methods return None for an element without name or without valid type. An element with other faults, which are
    reported, is returned nevertheless.

    Attributes:
        problems: collects the errors.
        references: reads references.
    """

    problems: ProblemCollector
    references: ReferenceReader

    def property(self, element: etree._Element) -> Property | None:
        """Read a `property`."""
        problems = self.problems
        name = name_of(problems, element)
        type = type_of(problems, element, direct=True)
        index, optional = flag(problems, element, "index"), flag(problems, element, "optional")
        parent_ref = flag(problems, element, "parentRef")
        access = choice(problems, element, "access", _ACCESS, Access.RO)
        common = self._common(element, type, required=True)
        if index and optional:
            problems.error(element, f"{label(element)}: cannot be both index and optional: a key is always whole")
        if parent_ref and type is not None and type.name != "objId":
            problems.error(element, f"{label(element)}: parentRef is for objId only, not for {type.name}")
        if name is None or type is None:
            return None
        return Property(
            name=name,
            type=type,
            access=access,
            index=index,
            optional=optional,
            parent_ref=parent_ref,
            general_reference=flag(problems, element, "isGeneralReference"),
            **common,
        )

    def statistic(self, element: etree._Element) -> Statistic | None:
        """Read a `statistic`."""
        problems = self.problems
        name = name_of(problems, element)
        type = type_of(problems, element, direct=False)
        for attribute in ("index", "optional", "parentRef"):
            if flag(problems, element, attribute):
                problems.error(element, f"{label(element)}: {attribute} is for properties only")
        if choice(problems, element, "access", _ACCESS, Access.RO) is not Access.RO:
            problems.error(element, f"{label(element)}: a statistic cannot be set, so its access can only be RO")
        common = self._common(element, type, required=True)
        if name is None or type is None:
            return None
        return Statistic(name=name, type=type, assign=element.get("assign"), **common)

    def argument(self, element: etree._Element, *, event: bool) -> Argument | None:
        """Read an `arg` of a method or of an event."""
        problems = self.problems
        name = name_of(problems, element)
        type = type_of(problems, element, direct=not event)
        direction = choice(problems, element, "dir", _DIRECTION, Direction.IN)
        common = self._common(element, type, required=False)
        if event and direction is not Direction.IN:
            problems.error(element, f"{label(element)}: the direction of an event's argument can only be I")
        if event and type is not None and type.style is not Style.DIRECT:
            problems.warning(element, f"{label(element)}: type {type.name} is for statistics; sent as {type.base}")
        if name is None or type is None:
            return None
        default = self._default(element, type, direction, common)
        return Argument(name=name, type=type, direction=direction, default=default, **common)

    def _common(self, element: etree._Element, type: QmfType | None, *, required: bool) -> _CommonAttributes:
        problems = self.problems
        references = self.references.read(element, type, required=required)
        minimum = maximum = length = None
        if type is not None:
            minimum = limit(problems, element, "min", type)
            maximum = limit(problems, element, "max", type)
            length = max_len(problems, element, type)
        if minimum is not None and maximum is not None and minimum > maximum:
            problems.error(element, f"{label(element)}: min {minimum} is above max {maximum}")
            minimum = maximum = None
        return _CommonAttributes(
            unit=element.get("unit"),
            desc=element.get("desc"),
            minimum=minimum,
            maximum=maximum,
            max_len=length,
            references=references,
        )

    def _default(
        self, element: etree._Element, type: QmfType, direction: Direction, common: _CommonAttributes
    ) -> object:
        text = element.get("default")
        if text is None:
            return None
        if direction is Direction.OUT:
            self.problems.error(element, f"{label(element)}: an output argument has no default")
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
        self.problems.error(element, f"{label(element)}: default {quote(text)} is not a valid {type.name}: {reason}")
        return None
