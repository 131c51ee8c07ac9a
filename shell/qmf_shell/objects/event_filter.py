"""Filters events by class, severity, agent, and a condition on their arguments.

The schema of an event may be unknown, so a condition compares by the type of the value: numbers as numbers, everything
else as text. Words are searched for in its class, its agent and all its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf.views.conditions import Condition, Field, Test, compile_filter
from qmf.views.conditions.fields import shown
from qmf.views.events import is_severe, parse_severity
from qmf_shell.session.backend import HEARTBEAT_SEVERITY, EventRecord


@attrs.frozen(kw_only=True)
class EventFilter:
    """The events that are wanted.

    Attributes:
        classes: names of classes, ``package:name`` or ``name``, in lower case; empty for all.
        severity: the least severe that passes; 7 for all.
        agent: part of the agent's name; empty for all.
        condition: on the arguments of an event, and on ``severity``, ``class`` and ``agent``; None for all.

    Raises:
        ConditionError: the condition has a text that is not a value, or not a regular expression.
    """

    classes: frozenset[str] = frozenset()
    severity: int = 7
    agent: str = ""
    condition: Condition | None = None
    _test: Test | None = attrs.field(
        init=False,
        eq=False,
        repr=False,
        default=attrs.Factory(lambda self: compile_filter(self.condition, _field, _search_text).test, takes_self=True),
    )

    def passes_heartbeat(self, agent: str) -> bool:
        """True if a heartbeat of this agent passes: it has `HEARTBEAT_SEVERITY`, and neither class nor arguments."""
        return self.severity >= HEARTBEAT_SEVERITY and self.agent.lower() in agent.lower()

    def passes(self, event: EventRecord) -> bool:
        """True if the event passes. Severities that QMF does not define count as the least severe."""
        name = event.name.lower()
        if self.classes and name not in self.classes and name.rpartition(":")[2] not in self.classes:
            return False
        if not is_severe(event.severity, self.severity):
            return False
        if self.agent.lower() not in event.agent.lower():
            return False
        return self._test is None or self._test(event)


def _field(name: str) -> Field:
    wanted = name.lower()

    def read(event: EventRecord) -> object:
        if name in event.values:
            return event.values[name]
        lower = {key.lower(): value for key, value in event.values.items()}
        extras: dict[str, object] = {"severity": event.severity, "class": event.name, "agent": event.agent}
        return lower.get(wanted, extras.get(wanted))

    # The smaller number is the more severe one: "severity >= warn" means at least as bad.
    severity = wanted == "severity"
    return Field(name=name, read=read, parse=parse_severity if severity else None, reverse=severity)


def _search_text(event: EventRecord) -> str:
    return "\n".join((event.name, event.agent, *map(shown, event.values.values())))


def class_filter(texts: Sequence[str]) -> frozenset[str]:
    """Names of classes as the user wrote them, converted for `EventFilter.classes`."""
    return frozenset(text.lower() for text in texts)
