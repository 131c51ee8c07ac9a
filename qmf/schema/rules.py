"""Rules over the members of one class or group: names, parents, `assign`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import attrs
from lxml import etree

from qmf.schema.groups import Member, use_name
from qmf.schema.model import Method, Property, Statistic
from qmf.schema.report import Report, label, quote
from qmf.schema.types import Style

_OPERATOR = re.compile(r"[+-]")


@attrs.frozen(eq=False)
class Part:
    """A member with what was read from it.

    Attributes:
        member: where it is written, and how the class got it.
        name: its name.
        value: what was read, or None where that is not usable; the name counts all the same.
    """

    member: Member
    name: str
    value: Property | Statistic | Method | None

    @property
    def element(self) -> etree._Element:
        """Where it is written."""
        return self.member.element

    @property
    def title(self) -> str:
        """What messages call it."""
        via = self.member.via
        origin = "" if via is None else f" (of group {quote(use_name(via) or '')})"
        return label(self.element) + origin

    def wire_names(self) -> Iterable[str]:
        """Every name that it takes, in Python or in either version of the wire."""
        yield self.name
        if isinstance(self.value, Statistic):
            for entry in self.value.entries:
                yield entry.name
                yield entry.v1_name


def check_names(report: Report, parts: Sequence[Part]) -> None:
    """Report names used twice: among properties and statistics with their wire names, and among methods."""
    _check_unique(report, [part for part in parts if part.element.tag != "method"])
    _check_unique(report, [part for part in parts if part.element.tag == "method"])


def _check_unique(report: Report, parts: Sequence[Part]) -> None:
    taken: dict[str, Part] = {}
    for part in parts:
        clash = next(((name, taken[name]) for name in part.wire_names() if name in taken), None)
        for name in part.wire_names():
            taken.setdefault(name, part)
        if clash is None:
            continue
        wire_name, other = clash
        if part.member.via is not None and part.member.via is other.member.via:
            continue  # both of one group, where it was reported
        line = report.document.line(other.member.place)
        if part.name == other.name:
            message = f"{part.title}: already defined in line {line}"
        else:
            message = f"{part.title}: its value {quote(wire_name)} clashes with that of {other.title} in line {line}"
        report.error(part.member.place, message)


def check_parents(report: Report, parts: Iterable[Part]) -> None:
    """Report every `parentRef` but the first."""
    parents = [part for part in parts if isinstance(part.value, Property) and part.value.parent_ref]
    for part in parents[1:]:
        line = report.document.line(parents[0].member.place)
        report.error(part.member.place, f"{part.title}: a class has one parentRef, and line {line} has it")


def check_assign(report: Report, class_label: str, parts: Iterable[Part]) -> None:
    """Report every `assign` that is not an expression over other statistics of the class."""
    statistics = {part.name: part for part in parts if part.element.tag == "statistic"}
    for part in statistics.values():
        assign = part.element.get("assign")
        if assign is not None:
            for message in _assign_faults(report, class_label, part, assign, statistics):
                report.error(part.element, f"{part.title}: {message}")


def _assign_faults(
    report: Report, class_label: str, part: Part, assign: str, statistics: Mapping[str, Part]
) -> Iterable[str]:
    if not _is_number(part):
        yield "assign is for counters and other plain numbers only"
        return
    for name in (text.strip() for text in _OPERATOR.split(assign)):
        if not name:
            yield f"assign {quote(assign)} must be names joined by + and -"
        elif name not in statistics:
            yield f"assign names {quote(name)}, no statistic of {class_label}{report.hint(name, statistics)}"
        elif not _is_number(statistics[name]):
            yield f"assign names {quote(name)}, which is no plain number"
        elif statistics[name].element.get("assign") is not None:
            # One level is enough for sums and differences, and cannot go in circles.
            yield f"assign names {quote(name)}, which has assign itself"


def _is_number(part: Part) -> bool:
    """True for what has one current value to compute with; also for what is wrong anyway."""
    value = part.value
    if not isinstance(value, Statistic):
        return True
    return value.type.style is not Style.MMA and (value.type.is_integer or value.type.name in ("float", "double"))
