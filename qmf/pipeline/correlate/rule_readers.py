"""Reads the keys of each kind of rule."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from qmf.pipeline.correlate.expressions import ExpressionError, check_expression
from qmf.pipeline.correlate.rule_table import RuleTable
from qmf.pipeline.correlate.rules import (
    SECOND,
    AbsenceRule,
    Aggregate,
    CountRule,
    JoinRule,
    Level,
    Limits,
    Per,
    RateRule,
    RatioRule,
    RatioSide,
    Rule,
    RuleKind,
    RuleSelector,
    SelectedTable,
    SequenceRule,
    ThresholdRule,
)
from qmf.pipeline.toml_tables import or_default
from qmf.schema import Severity

#: A rate doesn't compare samples that are farther apart than this, unless the rule has a time of its own.
DEFAULT_STALE = 3600 * SECOND

_SOURCES = tuple(source.value for source in SelectedTable)

_CLASS_KEYS = {SelectedTable.SAMPLES: "class", SelectedTable.EVENTS: "event"}


def read_severity(table: RuleTable) -> Severity | None:
    """The severity of a table; None where it has none."""
    keyword = table.text("severity")
    if keyword is None:
        return None
    found = next((item for item in Severity if item.name.lower() == keyword.lower()), None)
    if found is None:
        known = ", ".join(item.name.lower() for item in Severity)
        table.fail("severity", f"must be one of {known}, not {keyword!r}")
    return found


def _expression(table: RuleTable, key: str, *, needed: bool = False) -> str | None:
    text = table.text(key, needed=needed)
    _check(table, key, text)
    return text


def _expressions(table: RuleTable, key: str) -> tuple[str, ...] | None:
    texts = table.texts(key)
    for text in texts or ():
        _check(table, key, text)
    return texts


def _check(table: RuleTable, key: str, text: str | None) -> None:
    try:
        check_expression(text or "true")
    except ExpressionError as error:
        table.fail(key, f"{text!r}: {error}")


def _source(table: RuleTable, default: SelectedTable | None) -> SelectedTable | None:
    """The source that the key `of` names, or that the key of a class implies."""
    if "of" in table:
        keyword = table.choice("of", _SOURCES)
        return default if keyword is None else SelectedTable(keyword)
    implied = next((source for source, key in _CLASS_KEYS.items() if key in table), default)
    if implied is None:
        table.read("of", needed=True)
    return implied


def _selector(table: RuleTable, source: SelectedTable, *, key: str | None = None) -> RuleSelector:
    """A selector; `key` is the key of the class's name, where it is not the usual one."""
    package: str | None = None
    name: str | None = None
    given: str | None = None
    if source.has_class:
        key = key or _CLASS_KEYS[source]
        package, _, name = (table.text(key, needed=True) or "").rpartition(":")
        given = table.text("package")
        if given and package and given != package:
            table.fail("package", f"{key} has the package {package!r}")
    return RuleSelector(
        source=source,
        package=package or given,
        name=name,
        agent=table.text("agent"),
        object=table.text("object") if source.has_class else None,
        where=_expression(table, "where"),
    )


# -- limits


def _limits(table: RuleTable, common: dict[str, Any], stale: int | None = None) -> Limits:
    above, levels = _levels(table, common["severity"])
    if levels:
        common["severity"] = levels[0].severity
    return Limits(
        above=above,
        levels=levels or (Level(severity=common["severity"], limit=0.0, clear=0.0),),
        stale=table.duration("stale") or stale,
        keep=table.duration("keep_firing_for", zero=True) or 0,
    )


def _levels(table: RuleTable, severity: Severity) -> tuple[bool, tuple[Level, ...]]:
    duration = table.duration("for", zero=True) or 0
    given = table.read("levels")
    if given is None:
        above, level = _level(table, severity, duration)
        return above, (level,)
    for key in ("above", "below", "clear"):
        if key in table:
            table.fail(key, "belongs into the tables of levels")
            table.read(key)
    if not isinstance(given, list) or not given:
        table.fail("levels", "must be a list of tables, each with severity, and above or below")
        return True, ()
    sides: list[bool] = []
    found: list[Level] = []
    for number, item in enumerate(given, 1):
        inner = table.inner("levels", item, number)
        own = read_severity(inner)
        if own is None and not inner.failed:
            inner.fail("severity", "is missing")
        above, level = _level(inner, own or severity, inner.duration("for", zero=True), duration)
        inner.end()
        sides.append(above)
        found.append(level)
    found.sort(key=lambda level: -level.severity)
    _check_levels(table, sides, found)
    return sides[0], tuple(found)


def _level(table: RuleTable, severity: Severity, duration: int | None, otherwise: int = 0) -> tuple[bool, Level]:
    above, below, clear = table.number("above"), table.number("below"), table.number("clear")
    if (above is None) == (below is None):
        table.fail("above", "give either above or below")
    limit = above if above is not None else below if below is not None else 0.0
    if clear is not None and (clear > limit if above is not None else clear < limit):
        table.fail("clear", f"is on the wrong side of the limit {limit:g}: the alert would end while it is true")
    return above is not None, Level(
        severity=severity,
        limit=limit,
        clear=limit if clear is None else clear,
        duration=otherwise if duration is None else duration,
    )


def _check_levels(table: RuleTable, sides: list[bool], levels: list[Level]) -> None:
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


def _value_keys(table: RuleTable, common: dict[str, Any], stale: int | None = None) -> dict[str, Any]:
    """The attributes of a `ValueRule`."""
    source = _source(table, SelectedTable.SAMPLES) or SelectedTable.SAMPLES
    aggregate = table.choice("aggregate", tuple(item.value for item in Aggregate))
    by = _expressions(table, "by")
    if by is None:
        # Without groups an aggregate is over all that the rule selects.
        by = () if source is SelectedTable.SAMPLES or aggregate else ("_agent",)
    # What is counted needs no value.
    value = _expression(table, "value", needed=aggregate != Aggregate.COUNT.value)
    return {
        "of": _selector(table, source),
        "value": value or "1",
        "by": by,
        "aggregate": None if aggregate is None else Aggregate(aggregate),
        "limits": _limits(table, common, stale),
        **common,
    }


def _threshold(table: RuleTable, common: dict[str, Any]) -> Rule:
    return ThresholdRule(**_value_keys(table, common))


def _rate(table: RuleTable, common: dict[str, Any]) -> Rule:
    keys = _value_keys(table, common, DEFAULT_STALE)
    rule = RateRule(
        over=table.duration("over", zero=True) or 0,
        counter=table.flag("counter"),
        continued=table.flag("continued") or False,
        **keys,
    )
    assert rule.limits.stale is not None
    if rule.over > rule.limits.stale:
        table.fail("over", "is longer than samples are kept: give a longer time as stale")
    return rule


def _ratio(table: RuleTable, common: dict[str, Any]) -> Rule:
    sides = [_ratio_side(table, name) for name in ("dividend", "divisor")]
    same = or_default(table.flag("same_agent"), True)
    limits = _limits(table, common)
    return RatioRule(dividend=sides[0], divisor=sides[1], limits=limits, same_agent=same, **common)


def _ratio_side(table: RuleTable, name: str) -> RatioSide:
    inner = table.inner(name, table.read(name, needed=True) or {})
    side = RatioSide(
        id=_expression(inner, "id") or "_object",
        value=_expression(inner, "value", needed=True) or "1",
        of=_selector(inner, SelectedTable.SAMPLES),
    )
    inner.end()
    return side


def _absence(table: RuleTable, common: dict[str, Any], *, absent: bool = False) -> Rule:
    source = _source(table, None) or SelectedTable.HEARTBEATS
    per, expect = (Per.RULE, ()) if absent else _absent_things(table, source)
    duration, forget = table.duration("for", needed=True) or 1, table.duration("forget")
    if forget is not None and forget <= duration:
        table.fail("forget", "must be longer than for")
    return AbsenceRule(
        of=_selector(table, source),
        per=per,
        expect=expect,
        duration=duration,
        goodbye=or_default(table.flag("goodbye"), True),
        forget=forget,
        **common,
    )


def _absent_things(table: RuleTable, source: SelectedTable) -> tuple[Per, tuple[str, ...]]:
    """What may be absent, and which agents are expected."""
    default = Per.OBJECT if source is SelectedTable.SAMPLES else Per.AGENT
    per = Per(table.choice("per", tuple(item.value for item in Per)) or default)
    if per is Per.OBJECT and source is not SelectedTable.SAMPLES:
        table.fail("per", f"must be agent, or object for samples, not {per.value!r}")
    expect = table.texts("expect") or ()
    if expect and per is not Per.AGENT:
        table.fail("expect", 'needs per = "agent"')
    return per, expect


def _absent(table: RuleTable, common: dict[str, Any]) -> Rule:
    return _absence(table, common, absent=True)


def _sequence(table: RuleTable, common: dict[str, Any]) -> Rule:
    given = table.read("steps", needed=True)
    steps = []
    if given is not None and (not isinstance(given, list) or len(given) < 2):
        table.fail("steps", "must be a list of two events or more, each a table")
    elif given is not None:
        for number, item in enumerate(given, 1):
            inner = table.inner("steps", item, number)
            steps.append(_selector(inner, _source(inner, SelectedTable.EVENTS) or SelectedTable.EVENTS))
            inner.end()
    within = table.duration("within", needed=True) or 1
    return SequenceRule(
        steps=tuple(steps),
        by=_expressions(table, "by") or ("_agent",),
        within=within,
        clear_after=table.duration("clear_after") or within,
        **common,
    )


def _count(table: RuleTable, common: dict[str, Any]) -> Rule:
    return CountRule(
        of=_selector(table, _source(table, SelectedTable.EVENTS) or SelectedTable.EVENTS),
        by=_expressions(table, "by") or ("_agent",),
        at_least=table.positive_integer("at_least") or 1,
        within=table.duration("within", needed=True) or 1,
        **common,
    )


def _join(table: RuleTable, common: dict[str, Any]) -> Rule:
    sides: list[RuleSelector] = []
    ids: list[str] = []
    for side, source, key in (("event", SelectedTable.EVENTS, "name"), ("object", SelectedTable.SAMPLES, "class")):
        inner = table.inner(side, table.read(side, needed=True) or {})
        ids.append(_expression(inner, "id") or "_object")
        sides.append(_selector(inner, source, key=key))
        inner.end()
    return JoinRule(
        event=sides[0],
        object=sides[1],
        event_id=ids[0],
        object_id=ids[1],
        same_agent=or_default(table.flag("same_agent"), True),
        within=table.duration("within", needed=True) or 1,
        **common,
    )


#: What reads the rules of each `kind`.
READERS: Mapping[str, Callable[[RuleTable, dict[str, Any]], Rule]] = {
    RuleKind.THRESHOLD.value: _threshold,
    RuleKind.RATE.value: _rate,
    RuleKind.RATIO.value: _ratio,
    RuleKind.ABSENCE.value: _absence,
    "absent": _absent,
    RuleKind.SEQUENCE.value: _sequence,
    RuleKind.COUNT.value: _count,
    RuleKind.JOIN.value: _join,
}
