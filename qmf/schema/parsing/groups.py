"""Groups: members written once and used by several classes.

A use stands for the members of its group, in their order. Groups may use groups. Because groups of a hostile file could
grow exponentially, each group is expanded once per container, and the steps are counted.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
from lxml import etree

from qmf.errors import SchemaError
from qmf.schema.parsing.problems import ProblemCollector, label, quote
from qmf.schema.parsing.xml_attributes import name_of

#: Largest depth of groups within groups.
MAX_DEPTH = 16
#: Largest number of expansion steps in one file: more than a class can have properties on the wire (uint16).
MAX_MEMBERS = 200_000


@attrs.frozen(eq=False)
class Member:
    """A property, statistic or method of a class or group.

    Attributes:
        element: its element.
        via: the use in the class or group that brought it, or None if it is written there itself.
    """

    element: etree._Element
    via: etree._Element | None

    @property
    def place(self) -> etree._Element:
        """The element of the class or group that messages about it refer to: the member itself, or the use."""
        return self.element if self.via is None else self.via


class GroupExpander:
    """The groups of a schema, by name."""

    def __init__(self, problems: ProblemCollector, root: etree._Element) -> None:
        self._problems = problems
        self._steps = 0
        self._cycles: set[frozenset[str]] = set()
        self.definitions: dict[str, etree._Element] = {}
        for element in root.iterchildren("group"):
            name = name_of(problems, element)
            if name is None:
                continue
            if name in self.definitions:
                line = problems.document.line(self.definitions[name])
                problems.error(element, f"{label(element)}: already defined in line {line}")
            else:
                self.definitions[name] = element

    def uses(self, container: etree._Element) -> Iterator[tuple[etree._Element, etree._Element | None]]:
        """Each use in a class or group, with the definition of the group, or None if there is no such group."""
        for use in container.iterchildren("group"):
            yield use, self.definitions.get(use_name(use) or "")

    def expand(self, container: etree._Element) -> list[Member]:
        """The members of a class or group in order, with uses replaced; reports faults of its own uses.

        Faults within a group are reported when that group is expanded.
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
                self._problems.error(use, f"{label(use)}: name the group by either use or name")
            return
        definition = self.definitions.get(name)
        if definition is None:
            if own:
                self._problems.error(use, f"unknown group {quote(name)}{self._problems.hint(name, self.definitions)}")
            return
        if name in stack:
            self._cycle([*stack[stack.index(name) :], name], use)
            return
        if name in seen:
            if seen[name] is not via:
                self._problems.error(via, f"brings group {quote(name)} for the second time")
            return
        if len(stack) >= MAX_DEPTH:
            self._problems.error(use, f"groups are nested more than {MAX_DEPTH} deep")
            return
        seen[name] = via
        self._expand(definition, via, [*stack, name], seen, members)

    def _cycle(self, names: list[str], use: etree._Element) -> None:
        if frozenset(names) not in self._cycles:
            self._cycles.add(frozenset(names))
            self._problems.error(use, f"group {quote(names[0])} uses itself: {' -> '.join(names)}")

    def _count(self, element: etree._Element) -> None:
        self._steps += 1
        if self._steps > MAX_MEMBERS:
            self._problems.error(element, f"groups expand to more than {MAX_MEMBERS} members; gave up here")
            raise SchemaError(self._problems.errors)


def use_name(use: etree._Element) -> str | None:
    """The group that a use names, by `use` or, as in Apache's generator, by `name`; None if by both or neither."""
    names = [use.get(attribute) for attribute in ("use", "name") if attribute in use.attrib]
    return names[0] if len(names) == 1 else None
