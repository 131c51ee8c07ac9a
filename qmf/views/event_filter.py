"""Filters events by class, severity, agent, and a condition on their arguments: one for the shell, pages and REST.

The schema of an event may be unknown, so a condition compares by the type of the value: numbers as numbers, everything
else as text. Words are searched for in its class, its severity, its agent and the values of its arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from fnmatch import translate

import attrs

from qmf.views.conditions import Condition, Field, Test, compile_filter
from qmf.views.conditions.fields import value_text
from qmf.views.events import HEARTBEAT_SEVERITY, EventView, LostEvents, is_severe, parse_severity, severity_name


def _lower(texts: Collection[str]) -> frozenset[str]:
    return frozenset(map(str.lower, texts))


@attrs.frozen(kw_only=True)
class EventFilter:
    """The events that are wanted.

    Attributes:
        classes: names of classes, ``package:name`` or ``name``, or patterns (``*``, ``?``) of these, in any case; empty
            for all.
        severity: the least severe that passes; 7 for all.
        agent: part of the agent's name, in any case; empty for all.
        condition: on the arguments of an event, and on ``severity``, ``class`` and ``agent``; None for all.

    Raises:
        ConditionError: the condition has a text that is not a value, or not a regular expression.
    """

    classes: Collection[str] = attrs.field(default=(), converter=_lower)
    severity: int = 7
    agent: str = ""
    condition: Condition | None = None
    _pattern: Callable[[str], object] | None = attrs.field(
        init=False, eq=False, repr=False, default=attrs.Factory(lambda self: _pattern(self.classes), takes_self=True)
    )
    _test: Test | None = attrs.field(
        init=False,
        eq=False,
        repr=False,
        default=attrs.Factory(lambda self: compile_filter(self.condition, _field, _search_text).test, takes_self=True),
    )

    def passes_heartbeat(self, agent: str) -> bool:
        """True if a heartbeat of this agent passes: it has `HEARTBEAT_SEVERITY`, and neither class nor arguments."""
        return self.severity >= HEARTBEAT_SEVERITY and self.agent.lower() in agent.lower()

    def passes(self, event: EventView) -> bool:
        """True if the event passes. Severities that QMF does not define count as the least severe.

        Lost ones pass if they are of the agent: they may have been any.
        """
        if isinstance(event, LostEvents):
            return self.agent.lower() in event.agent.lower()
        return (
            is_severe(event.severity, self.severity)
            and self.agent.lower() in event.agent.lower()
            and (not self.classes or self._has_class(event.name.lower()))
            and (self._test is None or self._test(event))
        )

    def _has_class(self, name: str) -> bool:
        short = name.rpartition(":")[2]
        if name in self.classes or short in self.classes:
            return True
        matches = self._pattern
        return matches is not None and (matches(name) or matches(short)) is not None


def _pattern(classes: Collection[str]) -> Callable[[str], object] | None:
    """What matches any of those classes that are patterns; None if none is one."""
    patterns = [translate(item) for item in classes if not {"*", "?", "["}.isdisjoint(item)]
    return re.compile("|".join(patterns)).match if patterns else None


def _field(name: str) -> Field:
    wanted = name.lower()

    def read(event: EventView) -> object:
        if name in event.values:
            return event.values[name]
        lower = {key.lower(): value for key, value in event.values.items()}
        extras: dict[str, object] = {"severity": event.severity, "class": event.name, "agent": event.agent}
        return lower.get(wanted, extras.get(wanted))

    # The smaller number is the more severe one: "severity >= warn" means at least as bad.
    severity = wanted == "severity"
    return Field(name=name, read=read, parse=parse_severity if severity else None, reverse=severity)


def _search_text(event: EventView) -> str:
    return "\n".join((event.name, severity_name(event.severity), event.agent, *map(value_text, event.values.values())))
