"""Reads the keys of each kind of rule."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from qmf.pipeline.correlate import rules
from qmf.pipeline.correlate.expressions import ExpressionError, check_expression
from qmf.pipeline.toml_tables import TomlTable, or_default
from qmf.schema import Severity

#: A rate doesn't compare samples that are farther apart than this, unless the rule has a time of its own.
DEFAULT_STALE = 3600 * rules.SECOND

_CLASS_KEYS = {rules.SelectedTable.SAMPLES: "class", rules.SelectedTable.EVENTS: "event"}


def read_severity(table: TomlTable) -> Severity | None:
    """The severity of a table; None where it has none."""
    keyword = table.text("severity")
    if keyword is None:
        return None
    if keyword.upper() not in Severity.__members__:
        known = ", ".join(item.name.lower() for item in Severity)
        table.fail("severity", f"must be one of {known}, not {keyword!r}")
    return Severity.__members__.get(keyword.upper())


def _expression(table: TomlTable, key: str, *, needed: bool = False) -> str | None:
    text = table.text(key, needed=needed)
    _check(table, key, text or "true")
    return text


def _groups(table: TomlTable) -> tuple[str, ...] | None:
    texts = table.texts("by")
    _check(table, "by", *(texts or ()))
    return texts


def _check(table: TomlTable, key: str, *texts: str) -> None:
    for text in texts:
        try:
            check_expression(text)
        except ExpressionError as error:
            table.fail(key, f"{text!r}: {error}")


def _source(table: TomlTable, default: rules.SelectedTable | None) -> rules.SelectedTable | None:
    """The source that the key `of` names, or that the key of a class implies."""
    if "of" in table:
        keyword = table.choice("of", [source.value for source in rules.SelectedTable])
        return default if keyword is None else rules.SelectedTable(keyword)
    implied = next((source for source, key in _CLASS_KEYS.items() if key in table), default)
    if implied is None:
        table.read("of", needed=True)
    return implied


def _selector(table: TomlTable, source: rules.SelectedTable, *, key: str | None = None) -> rules.RuleSelector:
    """A selector; `key` is the key of the class's name, where it is not the usual one."""
    package = name = given = None
    if source.has_class:
        key = key or _CLASS_KEYS[source]
        package, _, name = (table.text(key, needed=True) or "").rpartition(":")
        given = table.text("package")
        if given and package and given != package:
            table.fail("package", f"{key} has the package {package!r}")
    return rules.RuleSelector(
        source=source,
        package=package or given,
        name=name,
        agent=table.text("agent"),
        object=table.text("object") if source.has_class else None,
        where=_expression(table, "where"),
    )


# -- limits


def _limits(table: TomlTable, common: dict[str, Any], stale: int | None = None) -> rules.Limits:
    above, levels = _levels(table, common["severity"])
    if levels:
        common["severity"] = levels[0].severity
    return rules.Limits(
        above=above,
        levels=levels or (rules.Level(severity=common["severity"], limit=0.0, clear=0.0),),
        stale=table.duration("stale") or stale,
        keep=table.duration("keep_firing_for", zero=True) or 0,
    )


def _levels(table: TomlTable, severity: Severity) -> tuple[bool, tuple[rules.Level, ...]]:
    duration = table.duration("for", zero=True) or 0
    given = table.read("levels")
    if given is None:
        above, level = _level(table, severity, duration)
        return above, (level,)
    for key in ("above", "below", "clear"):
        if table.read(key) is not None:
            table.fail(key, "belongs into the tables of levels")
    if not isinstance(given, list) or not given:
        table.fail("levels", "must be a list of tables, each with severity, and above or below")
        return True, ()
    found: list[tuple[bool, rules.Level]] = []
    for number, item in enumerate(given, 1):
        inner = table.inner("levels", item, number)
        own = read_severity(inner)
        if own is None and not inner.failed:
            inner.fail("severity", "is missing")
        found.append(_level(inner, own or severity, or_default(inner.duration("for", zero=True), duration)))
        inner.end()
    sides, levels = zip(*sorted(found, key=lambda item: -item[1].severity), strict=True)
    _check_levels(table, sides, levels)
    return sides[0], levels


def _level(table: TomlTable, severity: Severity, duration: int) -> tuple[bool, rules.Level]:
    above, below, clear = table.number("above"), table.number("below"), table.number("clear")
    if (above is None) == (below is None):
        table.fail("above", "give either above or below")
    limit = above if above is not None else below if below is not None else 0.0
    if clear is not None and (clear > limit if above is not None else clear < limit):
        table.fail("clear", f"is on the wrong side of the limit {limit:g}: the alert would end while it is true")
    return above is not None, rules.Level(
        severity=severity, limit=limit, clear=or_default(clear, limit), duration=duration
    )


def _check_levels(table: TomlTable, sides: Sequence[bool], levels: Sequence[rules.Level]) -> None:
    if table.failed:
        return
    if len(set(sides)) > 1:
        table.fail("levels", "must all have above, or all have below")
    for lower, higher in itertools.pairwise(levels):
        if lower.severity == higher.severity:
            table.fail("levels", f"two have the severity {lower.severity.name.lower()}")
        elif (higher.limit <= lower.limit) if sides[0] else (higher.limit >= lower.limit):
            table.fail(
                "levels",
                f"{higher.severity.name.lower()} must be farther than {lower.severity.name.lower()}, "
                f"but has {higher.limit:g} after {lower.limit:g}",
            )


# -- kinds


def _value_keys(table: TomlTable, common: dict[str, Any], stale: int | None = None) -> dict[str, Any]:
    """The attributes of a `ValueRule`."""
    source = _source(table, rules.SelectedTable.SAMPLES) or rules.SelectedTable.SAMPLES
    aggregate = table.choice("aggregate", [item.value for item in rules.Aggregate])
    by = _groups(table)
    if by is None:
        # Without groups an aggregate is over all that the rule selects.
        by = () if source is rules.SelectedTable.SAMPLES or aggregate else ("_agent",)
    # What is counted needs no value.
    value = _expression(table, "value", needed=aggregate != rules.Aggregate.COUNT.value)
    return {
        "of": _selector(table, source),
        "value": value or "1",
        "by": by,
        "aggregate": None if aggregate is None else rules.Aggregate(aggregate),
        "limits": _limits(table, common, stale),
        **common,
    }


def _rate(table: TomlTable, common: dict[str, Any]) -> rules.Rule:
    keys = _value_keys(table, common, DEFAULT_STALE)
    rule = rules.RateRule(
        over=table.duration("over", zero=True) or 0,
        counter=table.flag("counter"),
        continued=table.flag("continued") or False,
        **keys,
    )
    assert rule.limits.stale is not None
    if rule.over > rule.limits.stale:
        table.fail("over", "is longer than samples are kept: give a longer time as stale")
    return rule


def _ratio(table: TomlTable, common: dict[str, Any]) -> rules.Rule:
    sides: dict[str, Any] = {}
    for name in ("dividend", "divisor"):
        inner = table.table(name, needed=True)
        sides[name] = rules.RatioSide(
            id=_expression(inner, "id") or "_object",
            value=_expression(inner, "value", needed=True) or "1",
            of=_selector(inner, rules.SelectedTable.SAMPLES),
        )
        inner.end()
    same = or_default(table.flag("same_agent"), True)
    return rules.RatioRule(**sides, limits=_limits(table, common), same_agent=same, **common)


def _absence(table: TomlTable, common: dict[str, Any], *, absent: bool = False) -> rules.Rule:
    source = _source(table, None) or rules.SelectedTable.HEARTBEATS
    per, expect = rules.Per.RULE, tuple[str, ...]()
    if not absent:
        default = rules.Per.OBJECT if source is rules.SelectedTable.SAMPLES else rules.Per.AGENT
        per = rules.Per(table.choice("per", [item.value for item in rules.Per]) or default)
        if per is rules.Per.OBJECT and source is not rules.SelectedTable.SAMPLES:
            table.fail("per", f"must be agent, or object for samples, not {per.value!r}")
        expect = table.texts("expect") or ()
        if expect and per is not rules.Per.AGENT:
            table.fail("expect", 'needs per = "agent"')
    duration, forget = table.duration("for", needed=True) or 1, table.duration("forget")
    if forget is not None and forget <= duration:
        table.fail("forget", "must be longer than for")
    return rules.AbsenceRule(
        of=_selector(table, source),
        per=per,
        expect=expect,
        duration=duration,
        goodbye=or_default(table.flag("goodbye"), True),
        forget=forget,
        **common,
    )


def _sequence(table: TomlTable, common: dict[str, Any]) -> rules.Rule:
    given = table.read("steps", needed=True)
    steps = []
    if given is not None and (not isinstance(given, list) or len(given) < 2):
        table.fail("steps", "must be a list of two events or more, each a table")
    elif given is not None:
        for number, item in enumerate(given, 1):
            inner = table.inner("steps", item, number)
            steps.append(_selector(inner, _source(inner, rules.SelectedTable.EVENTS) or rules.SelectedTable.EVENTS))
            inner.end()
    within = table.duration("within", needed=True) or 1
    return rules.SequenceRule(
        steps=tuple(steps),
        by=_groups(table) or ("_agent",),
        within=within,
        clear_after=table.duration("clear_after") or within,
        **common,
    )


def _count(table: TomlTable, common: dict[str, Any]) -> rules.Rule:
    return rules.CountRule(
        of=_selector(table, _source(table, rules.SelectedTable.EVENTS) or rules.SelectedTable.EVENTS),
        by=_groups(table) or ("_agent",),
        at_least=table.value(
            "at_least", lambda item: type(item) is int and item > 0, "a whole number above 0", needed=True
        )
        or 1,
        within=table.duration("within", needed=True) or 1,
        **common,
    )


def _join(table: TomlTable, common: dict[str, Any]) -> rules.Rule:
    sides: dict[str, Any] = {}
    for side, source, key in (
        ("event", rules.SelectedTable.EVENTS, "name"),
        ("object", rules.SelectedTable.SAMPLES, "class"),
    ):
        inner = table.table(side, needed=True)
        sides[f"{side}_id"] = _expression(inner, "id") or "_object"
        sides[side] = _selector(inner, source, key=key)
        inner.end()
    return rules.JoinRule(
        **sides,
        same_agent=or_default(table.flag("same_agent"), True),
        within=table.duration("within", needed=True) or 1,
        **common,
    )


#: What reads the rules of each `kind`.
READERS: Mapping[str, Callable[[TomlTable, dict[str, Any]], rules.Rule]] = {
    rules.RuleKind.THRESHOLD.value: lambda table, common: rules.ThresholdRule(**_value_keys(table, common)),
    rules.RuleKind.RATE.value: _rate,
    rules.RuleKind.RATIO.value: _ratio,
    rules.RuleKind.ABSENCE.value: _absence,
    "absent": partial(_absence, absent=True),
    rules.RuleKind.SEQUENCE.value: _sequence,
    rules.RuleKind.COUNT.value: _count,
    rules.RuleKind.JOIN.value: _join,
}
