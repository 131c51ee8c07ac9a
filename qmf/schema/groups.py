"""Groups: members written once and used by several classes.

A use stands for the members of its group, in their order, in its place. Groups may use groups. Since a hostile file
could make groups grow like the "billion laughs", each group is expanded once per container, and the steps are counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
from lxml import etree

from qmf.errors import SchemaError
from qmf.schema.attributes import name_of
from qmf.schema.report import Report, label, quote

#: Groups within groups within groups ... A person gives up long before.
MAX_DEPTH = 16
#: Steps of expansion in one file: far more than the wire's count of a class's properties (uint16) allows.
MAX_MEMBERS = 200_000


@attrs.frozen(eq=False)
class Member:
    """A property, statistic or method of a class or group.

    Attributes:
        element: where it is written.
        via: the use in the class or group itself that it came by, or None when it is written there.
    """

    element: etree._Element
    via: etree._Element | None

    @property
    def place(self) -> etree._Element:
        """Where the class or group got it: what messages about its place there point at."""
        return self.element if self.via is None else self.via


class Groups:
    """The groups of a schema, by name."""

    def __init__(self, report: Report, root: etree._Element) -> None:
        self._report = report
        self._steps = 0
        self._cycles: set[frozenset[str]] = set()
        self.definitions: dict[str, etree._Element] = {}
        for element in root.iterchildren("group"):
            name = name_of(report, element)
            if name is None:
                continue
            if name in self.definitions:
                line = report.document.line(self.definitions[name])
                report.error(element, f"{label(element)}: already defined in line {line}")
            else:
                self.definitions[name] = element

    def uses(self, container: etree._Element) -> Iterator[tuple[etree._Element, etree._Element | None]]:
        """Each use in a class or group, with the group it means, or None when there is no such group."""
        for use in container.iterchildren("group"):
            yield use, self.definitions.get(use_name(use) or "")

    def expand(self, container: etree._Element) -> list[Member]:
        """The members of a class or group in order, uses replaced; reports what is wrong with its own uses.

        Faults within a group are reported when the group itself is expanded.
        """
        members: list[Member] = []
        stack = [container.get("name") or ""] if container.tag == "group" else []
        self._expand(container, None, stack, {}, members)
        return members

    def _expand(
        self,
        container: etree._Element,
        via: etree._Element | None,
        stack: list[str],
        seen: dict[str, etree._Element],
        members: list[Member],
    ) -> None:
        for element in container.iterchildren("property", "statistic", "method", "group"):
            self._count(element)
            if element.tag == "group":
                self._use(element, element if via is None else via, stack, seen, members)
            else:
                members.append(Member(element, via))

    def _use(
        self,
        use: etree._Element,
        via: etree._Element,
        stack: list[str],
        seen: dict[str, etree._Element],
        members: list[Member],
    ) -> None:
        own = use is via
        name = use_name(use)
        if name is None:
            if own:
                self._report.error(use, f"{label(use)}: say which group by one of use and name")
            return
        definition = self.definitions.get(name)
        if definition is None:
            if own:
                self._report.error(use, f"unknown group {quote(name)}{self._report.hint(name, self.definitions)}")
            return
        if name in stack:
            self._cycle([*stack[stack.index(name) :], name], use)
            return
        if name in seen:
            if seen[name] is not via:
                self._report.error(via, f"brings group {quote(name)} for the second time")
            return
        if len(stack) >= MAX_DEPTH:
            self._report.error(use, f"groups are nested more than {MAX_DEPTH} deep")
            return
        seen[name] = via
        self._expand(definition, via, [*stack, name], seen, members)

    def _cycle(self, names: list[str], use: etree._Element) -> None:
        if frozenset(names) not in self._cycles:
            self._cycles.add(frozenset(names))
            self._report.error(use, f"group {quote(names[0])} uses itself: {' -> '.join(names)}")

    def _count(self, element: etree._Element) -> None:
        self._steps += 1
        if self._steps > MAX_MEMBERS:
            self._report.error(element, f"groups expand to more than {MAX_MEMBERS} members; gave up here")
            raise SchemaError(self._report.errors)


def use_name(use: etree._Element) -> str | None:
    """The group that a use names, by `use` or, as in Apache's generator, by `name`; None when by both or neither."""
    names = [use.get(attribute) for attribute in ("use", "name") if attribute in use.attrib]
    return names[0] if len(names) == 1 else None
