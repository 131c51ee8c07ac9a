"""The texts of an alert: templates of the rule, or of its kind, with values from the evidence. Pure.

Numbers are in the units of the rules, for people: ``1.61 GB``, ``2m 30s``, ``81 %``.
"""

from __future__ import annotations

import datetime
import string
from collections.abc import Callable, Mapping
from typing import Any

from qmf.pipeline.correlate import rules
from qmf.views.times import duration_text
from qmf.views.units import brief_quantity, scale

#: Names in templates that are not columns.
BUILT_IN_FIELDS = frozenset(
    {"rule", "subject", "agent", "object", "value", "count", "began", "at", "limit", "duration", "severity", "labels"}
)

#: Those of them that change while an alert lasts, or from one incident to the next.
CHANGING_FIELDS = frozenset({"value", "count", "began", "at", "limit", "severity"})

#: The format that chooses the unit by the schema, or by the rule's `unit`.
_HUMAN = "human"

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def iso(ns: int) -> str:
    """A time as text, in UTC, to the microsecond."""
    try:
        moment = _EPOCH + datetime.timedelta(microseconds=ns // 1000)
    except OverflowError:
        return f"{ns} ns"
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def template_fields(template: str) -> tuple[str, ...]:
    """The names in a template's braces; one dot leads from a reference to a column of its object.

    Raises `ValueError` where braces don't match, or a name is not a plain name.
    """
    names = []
    for _, name, spec, conversion in string.Formatter().parse(template):
        if name is None:
            continue
        parts = name.split(".")
        if len(parts) > 2 or not all(part.isidentifier() for part in parts) or conversion or "{" in (spec or ""):
            raise ValueError(f"{{{name}}} must be a plain name, optionally followed by a colon and a format")
        names.append(name)
    return tuple(dict.fromkeys(names))


#: Values that a name may have: those of a column whose type is not known, or of some built-in names.
_EXAMPLES: tuple[object, ...] = (1, 1.0, "x")
_EXAMPLES_OF = {"value": (1.0,), "limit": (1.0,), "count": (1,)}


def wrong_formats(template: str) -> list[str]:
    """The fields of a template, with their braces, whose format fits no value that they may have."""
    found = []
    for _, name, spec, _conversion in string.Formatter().parse(template):
        if name is None or not spec or spec == _HUMAN or spec in TEMPLATE_FORMATS:
            continue
        if not any(_fits(value, spec) for value in _EXAMPLES_OF.get(name, _EXAMPLES)):
            found.append(f"{{{name}:{spec}}}")
    return found


def _fits(value: object, spec: str) -> bool:
    try:
        format(value, spec)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def templates_of(rule: rules.Rule) -> tuple[str, ...]:
    """All templates of a rule."""
    return (rule.message or "", *rule.labels.values(), *rule.annotations.values())


class _Formatter(string.Formatter):
    """Never fails: an unknown name becomes ``?``, a value that doesn't fit its format is shown without it."""

    def __init__(self, unit: str) -> None:
        self._unit = unit

    def get_field(self, field_name: str, args: Any, kwargs: Mapping[str, Any]) -> Any:  # noqa: ARG002
        value = kwargs.get(field_name)
        return "?" if value is None else value, field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        try:
            if format_spec == _HUMAN:
                return human(float(value), self._unit)
            if format_spec in TEMPLATE_FORMATS:
                return TEMPLATE_FORMATS[format_spec](float(value))
            return format(value, format_spec)
        except (TypeError, ValueError, OverflowError):
            return str(value)


def render_template(rule: rules.Rule, template: str, values: Mapping[str, Any]) -> str:
    """A template of a rule with values."""
    return _Formatter(rule.unit or "number").vformat(template, (), {"duration": _duration(rule), **values})


def render(rule: rules.Rule, values: Mapping[str, Any]) -> str:
    """The text of an alert."""
    return render_template(rule, rule.message or default_message(rule), values)


def _duration(rule: rules.Rule) -> str | None:
    match rule:
        case rules.ValueRule() | rules.RatioRule():
            return duration_text(rule.limits.levels[0].duration)
        case rules.AbsenceRule():
            return duration_text(rule.duration)
        case rules.SequenceRule() | rules.CountRule() | rules.JoinRule():
            return duration_text(rule.within)
    return None


def default_message(rule: rules.Rule) -> str:
    """The template for a rule without one."""
    match rule:
        case rules.ThresholdRule() | rules.RateRule():
            verb = "changes by" if isinstance(rule, rules.RateRule) else "is"
            whole = f"{rule.aggregate.value} of {rule.value}" if rule.aggregate else rule.value
            return _escape(f"{whole} {verb} ") + _beyond(rule)
        case rules.RatioRule():
            return _escape(f"{rule.dividend.value} / {rule.divisor.value} is ") + _beyond(rule)
        case rules.AbsenceRule():
            never = rule.per is rules.Per.RULE or rule.expect
            return _escape(f"no {rule.of.class_text} for ") + "{duration}" + (" or ever" if never else "")
        case rules.SequenceRule():
            return _escape(", then ".join(step.class_text for step in rule.steps)) + " within {duration}"
        case rules.CountRule():
            return "{count} times " + _escape(rule.of.class_text) + " within {duration}"
        case rules.JoinRule():
            state = f": {rule.object.where}" if rule.object.where else ""
            return _escape(f"{rule.event.class_text} while {rule.object.class_text}{state}")
        case _:
            return "{subject}"


def _beyond(rule: rules.ValueRule | rules.RatioRule) -> str:
    side = "above" if rule.limits.above else "below"
    lasting = " for {duration}" if rule.limits.levels[0].duration else ""
    return "{value:human}, " + side + " {limit:human}" + lasting


def _escape(text: str) -> str:
    """A text as a template, with its braces escaped."""
    return text.replace("{", "{{").replace("}", "}}")


# -- units

#: Units in schemas, and what they are called here.
_SCHEMA_UNITS: Mapping[str, str] = {
    "byte": "bytes",
    "bytes": "bytes",
    "octet": "bytes",
    "octets": "bytes",
    "nanosecond": "ns",
    "nanoseconds": "ns",
    "ns": "ns",
    "second": "s",
    "seconds": "s",
    "s": "s",
    "percent": "percent",
    "%": "percent",
}

#: What a unit becomes per second: time per time is a share of it.
_PER_SECOND: Mapping[str, str] = {"bytes": "bytes/s", "s": "ratio", "ns": "ns/s"}


def unit_of(schema_unit: str | None, *, per_second: bool = False) -> str:
    """The unit of a column, or of its change per second."""
    unit = _SCHEMA_UNITS.get((schema_unit or "").lower(), "number")
    return _PER_SECOND.get(unit, "per second") if per_second else unit


def human(value: float, unit: str = "number") -> str:
    """A value in a unit, with about three digits."""
    return _FORMATS.get(unit, scale)(value)


def _seconds(value: float) -> str:
    return duration_text(value * 1e9)


def _share(value: float) -> str:
    return brief_quantity(value * 100, "percent")


_FORMATS: Mapping[str, Callable[[float], str]] = {
    "bytes": lambda value: scale(value, "B"),
    "bytes/s": lambda value: scale(value, "B/s"),
    "ns": duration_text,
    "ns/s": lambda value: _share(value / 1e9),
    "s": _seconds,
    "percent": lambda value: brief_quantity(value, "percent"),
    "ratio": _share,
    "number": scale,
    "per second": lambda value: f"{scale(value)}/s",
}

#: The units of values, as rules name them.
UNITS = tuple(_FORMATS)

#: Formats in templates besides those of Python; those of Prometheus' templates have their names, and mean the same.
TEMPLATE_FORMATS: Mapping[str, Callable[[float], str]] = {
    "bytes": _FORMATS["bytes"],
    "si": scale,
    "ns": duration_text,
    "seconds": _seconds,
    "ratio": _share,
    "humanize": scale,
    "humanize1024": lambda value: scale(value, "B", binary=True),
    "humanizeDuration": _seconds,
    "humanizePercentage": _share,
}
