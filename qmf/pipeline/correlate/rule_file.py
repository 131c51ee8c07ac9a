"""Reads rules from TOML: a table per rule, named after the rule. All errors are reported, with file, rule and key.

::

    [disk-full]
    kind = "threshold"
    class = "qmf.host:filesystem"
    value = "percent"
    above = 90
    clear = 85
    for = "5m"
    message = "{mountPoint} is {value:.0f} % full"
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from qmf.pipeline.correlate.message_templates import template_fields
from qmf.pipeline.correlate.rule_table import RuleError, RuleTable
from qmf.pipeline.correlate.rules import (
    NOTIFY_TABLES,
    SECOND,
    AbsenceRule,
    CountRule,
    JoinRule,
    Limits,
    RateRule,
    RowSource,
    Rule,
    RuleKind,
    Selector,
    SequenceRule,
    ThresholdRule,
)
from qmf.schema import Severity

#: A rate doesn't compare samples that are farther apart than this, unless the rule has a time of its own.
DEFAULT_STALE = 3600 * SECOND

#: Octets of a short string on the bus.
_NAME_OCTETS = 255


def load_rules(path: str | Path) -> tuple[Rule, ...]:
    """Read a file of rules.

    Raises:
        RuleError: the file can't be read, it is not TOML, or a rule is wrong.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RuleError(f"{path}: {error.strerror if isinstance(error, OSError) else error}") from error
    return parse_rules(text, str(path))


def parse_rules(text: str, file: str = "rules") -> tuple[Rule, ...]:
    """Read rules from a text.

    Args:
        text: TOML.
        file: its name in messages.

    Raises:
        RuleError: as of `load_rules`.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RuleError(f"{file}: {error}") from error
    errors: list[str] = []
    rules: list[Rule] = []
    for name in NOTIFY_TABLES & tables.keys():
        tables.pop(name)
    for name, content in tables.items():
        table = RuleTable(content if isinstance(content, dict) else {}, f"{file}: {name}", errors)
        if len(name.encode()) > _NAME_OCTETS:
            errors.append(f"{file}: {name[:40]}...: the name is longer than {_NAME_OCTETS} octets")
        elif not isinstance(content, dict):
            errors.append(f"{file}: {name}: must be a table, [{name}]")
        elif (rule := _rule(name, table)) is not None:
            rules.append(rule)
    if not tables:
        errors.append(f"{file}: no rule in it")
    if errors:
        raise RuleError("\n".join(errors))
    return tuple(rules)


def _rule(name: str, table: RuleTable) -> Rule | None:
    keyword = table.text("kind", needed=True)
    kind = next((kind for kind in RuleKind if kind.value == keyword), None)
    if kind is None:
        if keyword is not None:
            table.fail("kind", f"must be one of {', '.join(kind.value for kind in RuleKind)}, not {keyword!r}")
        return None
    common: dict[str, Any] = {
        "name": name,
        "severity": _severity(table),
        "message": _message(table),
        "evidence": table.texts("evidence") or (),
    }
    rule = _READERS[kind](table, common)
    table.end()
    return None if table.failed else rule


def _severity(table: RuleTable) -> Severity:
    keyword = table.text("severity")
    if keyword is None:
        return Severity.WARN
    found = next((item for item in Severity if item.name.lower() == keyword.lower()), None)
    if found is None:
        known = ", ".join(item.name.lower() for item in Severity)
        table.fail("severity", f"must be one of {known}, not {keyword!r}")
    return found or Severity.WARN


def _message(table: RuleTable) -> str | None:
    message = table.text("message")
    try:
        template_fields(message or "")
    except ValueError as error:
        table.fail("message", str(error))
    return message


def _selector(table: RuleTable, source: RowSource, *, key: str) -> Selector:
    """A selector; `key` is the key of the class's name."""
    package: str | None = None
    name: str | None = None
    if source is not RowSource.HEARTBEATS:
        package, _, name = (table.text(key, needed=True) or "").rpartition(":")
    given = table.text("package") if source is not RowSource.HEARTBEATS else None
    if given and package and given != package:
        table.fail("package", f"{key} has the package {package!r}")
    return Selector(
        source=source,
        package=package or given,
        name=name,
        agent=table.text("agent"),
        object=table.text("object") if source is not RowSource.HEARTBEATS else None,
        where=table.text("where"),
    )


def _limits(table: RuleTable, stale: int | None = None) -> Limits:
    above, below, clear = table.number("above"), table.number("below"), table.number("clear")
    if (above is None) == (below is None):
        table.fail("above", "give either above or below")
    limit = above if above is not None else below if below is not None else 0.0
    if clear is not None and (clear > limit if above is not None else clear < limit):
        table.fail("clear", f"is on the wrong side of the limit {limit:g}: the alert would end while it is true")
    return Limits(
        limit=limit,
        above=above is not None,
        clear=limit if clear is None else clear,
        duration=table.duration("for", zero=True) or 0,
        stale=table.duration("stale") or stale,
    )


def _threshold(table: RuleTable, common: dict[str, Any]) -> Rule:
    return ThresholdRule(
        of=_selector(table, RowSource.SAMPLES, key="class"),
        value=table.text("value", needed=True) or "",
        limits=_limits(table),
        **common,
    )


def _rate(table: RuleTable, common: dict[str, Any]) -> Rule:
    rule = RateRule(
        of=_selector(table, RowSource.SAMPLES, key="class"),
        value=table.text("value", needed=True) or "",
        over=table.duration("over", zero=True) or 0,
        counter=table.flag("counter"),
        continued=table.flag("continued") or False,
        limits=_limits(table, DEFAULT_STALE),
        **common,
    )
    assert rule.limits.stale is not None
    if rule.over > rule.limits.stale:
        table.fail("over", "is longer than samples are kept: give a longer time as stale")
    return rule


def _absence(table: RuleTable, common: dict[str, Any]) -> Rule:
    keyword = table.text("of", needed=True) or ""
    source = next((item for item in RowSource if item.value == keyword), RowSource.HEARTBEATS)
    if keyword and source.value != keyword:
        table.fail("of", f"must be one of {', '.join(item.value for item in RowSource)}, not {keyword!r}")
    key = "event" if source is RowSource.EVENTS else "class"
    per = table.text("per") or ("object" if source is RowSource.SAMPLES else "agent")
    if per not in ("agent", "object") or (per == "object" and source is not RowSource.SAMPLES):
        table.fail("per", f"must be agent, or object for samples, not {per!r}")
    duration, forget = table.duration("for", needed=True) or 1, table.duration("forget")
    if forget is not None and forget <= duration:
        table.fail("forget", "must be longer than for")
    goodbye = table.flag("goodbye")
    return AbsenceRule(
        of=_selector(table, source, key=key),
        per_agent=per == "agent",
        duration=duration,
        goodbye=True if goodbye is None else goodbye,
        forget=forget,
        **common,
    )


def _sequence(table: RuleTable, common: dict[str, Any]) -> Rule:
    given = table.read("steps", needed=True)
    steps = []
    if given is not None and (not isinstance(given, list) or len(given) < 2):
        table.fail("steps", "must be a list of two events or more, each a table")
    elif given is not None:
        for number, item in enumerate(given, 1):
            inner = table.inner(f"steps: {number}", item)
            steps.append(_selector(inner, RowSource.EVENTS, key="event"))
            inner.end()
    within = table.duration("within", needed=True) or 1
    return SequenceRule(
        steps=tuple(steps),
        by=table.texts("by") or ("_agent",),
        within=within,
        clear_after=table.duration("clear_after") or within,
        **common,
    )


def _count(table: RuleTable, common: dict[str, Any]) -> Rule:
    return CountRule(
        of=_selector(table, RowSource.EVENTS, key="event"),
        by=table.texts("by") or ("_agent",),
        at_least=table.positive_integer("at_least") or 1,
        within=table.duration("within", needed=True) or 1,
        **common,
    )


def _join(table: RuleTable, common: dict[str, Any]) -> Rule:
    sides: list[Selector] = []
    ids: list[str] = []
    for side, source, key in (("event", RowSource.EVENTS, "name"), ("object", RowSource.SAMPLES, "class")):
        inner = table.inner(side, table.read(side, needed=True) or {})
        ids.append(inner.text("id") or "_object")
        sides.append(_selector(inner, source, key=key))
        inner.end()
    same = table.flag("same_agent")
    return JoinRule(
        event=sides[0],
        object=sides[1],
        event_id=ids[0],
        object_id=ids[1],
        same_agent=True if same is None else same,
        within=table.duration("within", needed=True) or 1,
        **common,
    )


_READERS: Mapping[RuleKind, Callable[[RuleTable, dict[str, Any]], Rule]] = {
    RuleKind.THRESHOLD: _threshold,
    RuleKind.RATE: _rate,
    RuleKind.ABSENCE: _absence,
    RuleKind.SEQUENCE: _sequence,
    RuleKind.COUNT: _count,
    RuleKind.JOIN: _join,
}
