"""Rules over the members of one class or group: names, parents, `assign`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import attrs
from lxml import etree

from qmf.schema.model import Method, Property, Statistic
from qmf.schema.parsing.groups import Member, use_name
from qmf.schema.parsing.problems import ProblemCollector, label, quote
from qmf.schema.types import Style

_OPERATOR = re.compile(r"[+-]")


@attrs.frozen(eq=False)
class NamedMember:
    """A member with its name and value.

    Attributes:
        member: its element, and how the class got it.
        name: its name.
        value: the value that was read, or None if that is invalid; its name is checked nevertheless.
    """

    member: Member
    name: str
    value: Property | Statistic | Method | None

    @property
    def element(self) -> etree._Element:
        """Its element."""
        return self.member.element

    @property
    def title(self) -> str:
        """Its name in messages."""
        via = self.member.via
        origin = "" if via is None else f" (of group {quote(use_name(via) or '')})"
        return label(self.element) + origin

    def wire_names(self) -> Iterable[str]:
        """Every name that it uses, in Python or in either version of the wire."""
        yield self.name
        if isinstance(self.value, Statistic):
            for entry in self.value.entries:
                yield entry.name
                yield entry.v1_name


def check_names(problems: ProblemCollector, members: Sequence[NamedMember]) -> None:
    """Report names used twice: among properties and statistics with their wire names, and among methods."""
    _check_unique(problems, [member for member in members if member.element.tag != "method"])
    _check_unique(problems, [member for member in members if member.element.tag == "method"])


def _check_unique(problems: ProblemCollector, members: Sequence[NamedMember]) -> None:
    known: dict[str, NamedMember] = {}
    for member in members:
        clash = next(((name, known[name]) for name in member.wire_names() if name in known), None)
        for name in member.wire_names():
            known.setdefault(name, member)
        if clash is None:
            continue
        wire_name, other = clash
        if member.member.via is not None and member.member.via is other.member.via:
            continue  # both are of one group, where it was reported
        line = problems.document.line(other.member.place)
        if member.name == other.name:
            message = f"{member.title}: already defined in line {line}"
        else:
            message = f"{member.title}: its wire name {quote(wire_name)} is also one of {other.title} in line {line}"
        problems.error(member.member.place, message)


def check_parents(problems: ProblemCollector, members: Iterable[NamedMember]) -> None:
    """Report every `parentRef` but the first."""
    parents = [member for member in members if isinstance(member.value, Property) and member.value.parent_ref]
    for member in parents[1:]:
        line = problems.document.line(parents[0].member.place)
        problems.error(member.member.place, f"{member.title}: a class has one parentRef, which is in line {line}")


def check_assign(problems: ProblemCollector, class_label: str, members: Iterable[NamedMember]) -> None:
    """Report every `assign` that is not an expression over other statistics of the class."""
    statistics = {member.name: member for member in members if member.element.tag == "statistic"}
    for member in statistics.values():
        assign = member.element.get("assign")
        if assign is not None:
            for message in _assign_faults(problems, class_label, member, assign, statistics):
                problems.error(member.element, f"{member.title}: {message}")


def _assign_faults(
    problems: ProblemCollector,
    class_label: str,
    member: NamedMember,
    assign: str,
    statistics: Mapping[str, NamedMember],
) -> Iterable[str]:
    if not _is_number(member):
        yield "assign is only for counters and other plain numbers"
        return
    for name in (text.strip() for text in _OPERATOR.split(assign)):
        if not name:
            yield f"assign {quote(assign)} must be names joined by + and -"
        elif name not in statistics:
            hint = problems.hint(name, statistics)
            yield f"assign names {quote(name)}, which is not a statistic of {class_label}{hint}"
        elif not _is_number(statistics[name]):
            yield f"assign names {quote(name)}, which is not a plain number"
        elif statistics[name].element.get("assign") is not None:
            # One level is enough for sums and differences, and cannot be circular.
            yield f"assign names {quote(name)}, which has assign itself"


def _is_number(member: NamedMember) -> bool:
    """True for a statistic with a single number as value; also for invalid ones, which are reported elsewhere."""
    value = member.value
    if not isinstance(value, Statistic):
        return True
    return value.type.style is not Style.MMA and (value.type.is_integer or value.type.name in ("float", "double"))
