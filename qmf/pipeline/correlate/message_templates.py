"""The text of an alert: the template of the rule, or of its kind, with values from the evidence."""

from __future__ import annotations

import datetime
import string
from collections.abc import Mapping
from typing import Any

from qmf.pipeline.correlate.rules import (
    AbsenceRule,
    CountRule,
    JoinRule,
    RateRule,
    Rule,
    SequenceRule,
    ThresholdRule,
)
from qmf.pipeline.durations import format_duration

#: Names in templates that are not columns.
BUILT_IN_FIELDS = frozenset(
    {"rule", "subject", "agent", "object", "value", "count", "began", "at", "limit", "duration"}
)

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def iso(ns: int) -> str:
    """A time as text, in UTC, to the microsecond."""
    try:
        moment = _EPOCH + datetime.timedelta(microseconds=ns // 1000)
    except OverflowError:
        return f"{ns} ns"
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def template_fields(template: str) -> tuple[str, ...]:
    """The names in a template's braces.

    Raises:
        ValueError: braces don't match, or a name is not a plain name.
    """
    names = []
    for _, name, spec, conversion in string.Formatter().parse(template):
        if name is None:
            continue
        if not name.isidentifier() or conversion or "{" in (spec or ""):
            raise ValueError(f"{{{name}}} must be a plain name, optionally followed by a colon and a format")
        names.append(name)
    return tuple(dict.fromkeys(names))


class _Formatter(string.Formatter):
    """Never fails: an unknown name becomes ``?``, a value that doesn't fit its format is shown without it."""

    def get_value(self, key: int | str, args: Any, kwargs: Mapping[str, Any]) -> Any:  # noqa: ARG002
        value = kwargs.get(str(key))
        return "?" if value is None else value

    def format_field(self, value: Any, format_spec: str) -> str:
        try:
            return format(value, format_spec)
        except (TypeError, ValueError):
            return str(value)


def render(rule: Rule, values: Mapping[str, Any]) -> str:
    """The text of an alert."""
    extra: dict[str, Any] = {"limit": None, "duration": None}
    match rule:
        case ThresholdRule() | RateRule():
            extra = {"limit": rule.limits.limit, "duration": format_duration(rule.limits.duration)}
        case AbsenceRule():
            extra["duration"] = format_duration(rule.duration)
        case SequenceRule() | CountRule() | JoinRule():
            extra["duration"] = format_duration(rule.within)
    return _Formatter().vformat(rule.message or default_message(rule), (), {**values, **extra})


def default_message(rule: Rule) -> str:
    """The template for a rule without one."""
    match rule:
        case ThresholdRule():
            side = "above" if rule.limits.above else "below"
            return _escaped(f"{rule.value} is ") + "{value:g}, " + side + " {limit:g}" + _lasting(rule.limits.duration)
        case RateRule():
            side = "above" if rule.limits.above else "below"
            return (
                _escaped(f"{rule.value} changes by ")
                + "{value:g} per second, "
                + side
                + " {limit:g}"
                + _lasting(rule.limits.duration)
            )
        case AbsenceRule():
            return _escaped(f"no {rule.of.class_text} for ") + "{duration}"
        case SequenceRule():
            return _escaped(", then ".join(step.class_text for step in rule.steps)) + " within {duration}"
        case CountRule():
            return "{count} times " + _escaped(rule.of.class_text) + " within {duration}"
        case JoinRule():
            state = f": {rule.object.where}" if rule.object.where else ""
            return _escaped(f"{rule.event.class_text} while {rule.object.class_text}{state}")
        case _:
            return "{subject}"


def _lasting(duration: int) -> str:
    return " for {duration}" if duration else ""


def _escaped(text: str) -> str:
    """A text as a template, with its braces escaped."""
    return text.replace("{", "{{").replace("}", "}}")
