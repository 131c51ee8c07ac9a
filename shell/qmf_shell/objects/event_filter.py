"""Filters events by class, severity, agent, and a condition on their arguments.

The schema of an event may be unknown, so a condition compares by the type of the value: numbers as numbers, everything
else as text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.errors import CallerError, NotFoundError
from qmf.schema import Severity
from qmf_shell.parsing.conditions import COMPARE, And, Comparison, Condition, Not, Operator, Or, Truthy, compile_pattern
from qmf_shell.session.backend import HEARTBEAT_SEVERITY, EventRecord, ObjectKey

#: Other names of severities: those of syslog and of the old tools.
_SPELLINGS = {
    "emergency": 0,
    "emer": 0,
    "critical": 2,
    "err": 3,
    "warning": 4,
    "notic": 5,
    "info": 6,
    "informational": 6,
}
SEVERITIES: Mapping[str, int] = {item.schema_name: item.value for item in Severity} | _SPELLINGS

Values = Callable[[str], object]


def parse_severity(text: str) -> int:
    """The number of a severity: its name in any spelling, or 0 to 7.

    Raises:
        NotFoundError: there is no such severity.
    """
    word = text.lower()
    if word in SEVERITIES:
        return SEVERITIES[word]
    if re.fullmatch("[0-7]", word):
        return int(word)
    raise NotFoundError("severity", text, [item.schema_name for item in Severity])


@attrs.frozen(kw_only=True)
class EventFilter:
    """The events that are wanted.

    Attributes:
        classes: names of classes, ``package:name`` or ``name``, in lower case; empty for all.
        severity: the least severe that passes; 7 for all.
        agent: part of the agent's name; empty for all.
        condition: on the arguments of an event, and on ``severity``, ``class`` and ``agent``; None for all.
    """

    classes: frozenset[str] = frozenset()
    severity: int = 7
    agent: str = ""
    condition: Condition | None = None

    def __attrs_post_init__(self) -> None:
        if self.condition is not None:
            check_patterns(self.condition)

    def passes_heartbeat(self, agent: str) -> bool:
        """True if a heartbeat of this agent passes: it has `HEARTBEAT_SEVERITY`, and neither class nor arguments."""
        return self.severity >= HEARTBEAT_SEVERITY and self.agent.lower() in agent.lower()

    def passes(self, event: EventRecord) -> bool:
        """True if the event passes. Severities that QMF does not define count as the least severe."""
        name = event.name.lower()
        if self.classes and name not in self.classes and name.rpartition(":")[2] not in self.classes:
            return False
        if event.severity > self.severity and self.severity < Severity.DEBUG:
            return False
        if self.agent.lower() not in event.agent.lower():
            return False
        return self.condition is None or holds(self.condition, _values(event))


def _values(event: EventRecord) -> Values:
    def get(name: str) -> object:
        if name in event.values:
            return event.values[name]
        lower = {key.lower(): value for key, value in event.values.items()}
        extras: dict[str, object] = {"severity": event.severity, "class": event.name, "agent": event.agent}
        return lower.get(name.lower(), extras.get(name.lower()))

    return get


def check_patterns(condition: Condition) -> None:
    """Raise `ConditionError` if the text of a ``~`` is not a regular expression."""
    match condition:
        case Comparison(_, Operator.MATCH | Operator.NO_MATCH, text):
            compile_pattern(text)
        case Not(part):
            check_patterns(part)
        case And(parts) | Or(parts):
            for item in parts:
                check_patterns(item)


def holds(condition: Condition, values: Values) -> bool:
    """True if a condition holds for values by name. A comparison with a missing value is false."""
    match condition:
        case Comparison(name, operator, text):
            return _compare(values(name), operator, text, severity=name.lower() == "severity")
        case Truthy(name):
            return bool(values(name))
        case Not(part):
            return not holds(part, values)
        case And(parts):
            return all(holds(part, values) for part in parts)
        case Or(parts):
            return any(holds(part, values) for part in parts)


def _compare(value: object, operator: Operator, text: str, *, severity: bool) -> bool:
    if value is None:
        return False
    shown = value.name if isinstance(value, ObjectKey) else str(value)
    if operator in (Operator.MATCH, Operator.NO_MATCH):
        return (re.search(text, shown) is not None) is (operator is Operator.MATCH)
    one, two = _pair(value, shown, text, severity=severity)
    if operator in (Operator.EQ, Operator.NE):
        return (one == two) is (operator is Operator.EQ)
    # The smaller number is the more severe one: "severity >= warn" means at least as bad.
    if severity:
        one, two = two, one
    return COMPARE[operator](one, two) if type(one) is type(two) else False


def _pair(value: object, shown: str, text: str, *, severity: bool) -> tuple[object, object]:
    """Both sides as values of one type: numbers if both are numbers, else texts."""
    if isinstance(value, bool):
        return shown.lower(), {"1": "true", "yes": "true", "0": "false", "no": "false"}.get(text.lower(), text.lower())
    if isinstance(value, int | float):
        try:
            return float(value), float(parse_severity(text) if severity else text)
        except (ValueError, CallerError):
            return shown, text
    return shown, text


def class_filter(texts: Sequence[str]) -> frozenset[str]:
    """Names of classes as the user wrote them, converted for `EventFilter.classes`."""
    return frozenset(text.lower() for text in texts)
