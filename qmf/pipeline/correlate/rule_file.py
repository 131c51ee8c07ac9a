"""Reads rules from TOML: a table per rule, named by the rule. Every mistake is told with its file, rule and key.

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

import string
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from qmf.pipeline.correlate.rules import (
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
from qmf.pipeline.durations import parse_duration
from qmf.pipeline.errors import PipelineError
from qmf.schema import Severity

#: A rate doesn't compare with samples that are older than this, unless the rule says otherwise.
DEFAULT_STALE = 3600 * SECOND

#: What a short string on the bus holds.
_NAME_OCTETS = 255


class RuleError(PipelineError):
    """Rules that can't be followed: a line for each mistake, with file, rule and key."""


def load_rules(path: str | Path) -> tuple[Rule, ...]:
    """Read a file of rules.

    Raises:
        RuleError: it can't be read, is no TOML, or a rule is wrong.
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
        file: what messages call it.

    Raises:
        RuleError: as of `load_rules`.
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RuleError(f"{file}: {error}") from error
    wrong: list[str] = []
    rules: list[Rule] = []
    for name, table in tables.items():
        keys = _Keys(table if isinstance(table, dict) else {}, f"{file}: {name}", wrong)
        if len(name.encode()) > _NAME_OCTETS:
            wrong.append(f"{file}: {name[:40]}...: the name is longer than {_NAME_OCTETS} octets")
        elif not isinstance(table, dict):
            wrong.append(f"{file}: {name}: must be a table, [{name}]")
        elif (rule := _rule(name, keys)) is not None:
            rules.append(rule)
    if not tables:
        wrong.append(f"{file}: no rule in it")
    if wrong:
        raise RuleError("\n".join(wrong))
    return tuple(rules)


def template_fields(template: str) -> tuple[str, ...]:
    """The names in a template's braces.

    Raises:
        ValueError: braces don't match, or a name is more than a name.
    """
    names = []
    for _, name, spec, conversion in string.Formatter().parse(template):
        if name is None:
            continue
        if not name.isidentifier() or conversion or "{" in (spec or ""):
            raise ValueError(f"{{{name}}} must be a plain name, with a format behind a colon at most")
        names.append(name)
    return tuple(dict.fromkeys(names))


class _Keys:
    """One table, each key taken once; what is wrong is noted rather than raised, so that all of it is told."""

    def __init__(self, table: Mapping[str, Any], where: str, wrong: list[str]) -> None:
        self._table = dict(table)
        self.where = where
        self._wrong = wrong
        self._before = len(wrong)

    @property
    def failed(self) -> bool:
        """Something was wrong since the beginning."""
        return len(self._wrong) > self._before

    def fail(self, key: str, text: str) -> None:
        """Note a mistake."""
        self._wrong.append(f"{self.where}: {key}: {text}")

    def has(self, key: str) -> bool:
        """The key is there, and was not taken."""
        return key in self._table

    def take(self, key: str, *, needed: bool = False) -> Any:
        """The value, or None."""
        if needed and key not in self._table:
            self.fail(key, "is missing")
        return self._table.pop(key, None)

    def text(self, key: str, *, needed: bool = False) -> str | None:
        """A text that isn't empty."""
        value = self.take(key, needed=needed)
        if value is None or (isinstance(value, str) and value.strip()):
            return value
        self.fail(key, f"must be a text, not {value!r}")
        return None

    def number(self, key: str) -> float | None:
        """A number."""
        value = self.take(key)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value == value):
            return None if value is None else float(value)
        self.fail(key, f"must be a number, not {value!r}")
        return None

    def whole(self, key: str) -> int | None:
        """A whole number above 0."""
        value = self.take(key, needed=True)
        if value is None or (type(value) is int and value > 0):
            return value
        self.fail(key, f"must be a whole number above 0, not {value!r}")
        return None

    def flag(self, key: str) -> bool | None:
        """True or false."""
        value = self.take(key)
        if value is None or isinstance(value, bool):
            return value
        self.fail(key, f"must be true or false, not {value!r}")
        return None

    def time(self, key: str, *, needed: bool = False, zero: bool = False) -> int | None:
        """A duration in ns."""
        value = self.take(key, needed=needed)
        if value is None:
            return None
        try:
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                raise ValueError(f'must be a time such as "30s", not {value!r}')
            ns = parse_duration(value) if isinstance(value, str) else round(value * SECOND)
            if ns < 0 or (ns == 0 and not zero):
                raise ValueError("must be more than no time")
        except ValueError as error:
            self.fail(key, str(error))
            return None
        return ns

    def names(self, key: str) -> tuple[str, ...] | None:
        """A list of texts, or one text."""
        value = self.take(key)
        if value is None:
            return None
        items = [value] if isinstance(value, str) else value
        if isinstance(items, list) and items and all(isinstance(item, str) and item.strip() for item in items):
            return tuple(items)
        self.fail(key, f"must be a list of texts, not {value!r}")
        return None

    def inner(self, key: str, value: object) -> _Keys:
        """A table inside."""
        if not isinstance(value, dict):
            self.fail(key, f"must be a table, not {value!r}")
            value = {}
        return _Keys(value, f"{self.where}: {key}", self._wrong)

    def end(self) -> None:
        """Nothing may be left."""
        for key in self._table:
            self.fail(key, "no such key")


def _rule(name: str, keys: _Keys) -> Rule | None:
    word = keys.text("kind", needed=True)
    kind = next((kind for kind in RuleKind if kind.value == word), None)
    if kind is None:
        if word is not None:
            keys.fail("kind", f"must be one of {', '.join(kind.value for kind in RuleKind)}, not {word!r}")
        return None
    common: dict[str, Any] = {
        "name": name,
        "severity": _severity(keys),
        "message": _message(keys),
        "evidence": keys.names("evidence") or (),
    }
    rule = _KINDS[kind](keys, common)
    keys.end()
    return None if keys.failed else rule


def _severity(keys: _Keys) -> Severity:
    word = keys.text("severity")
    if word is None:
        return Severity.WARN
    found = next((item for item in Severity if item.name.lower() == word.lower()), None)
    if found is None:
        keys.fail("severity", f"must be one of {', '.join(item.name.lower() for item in Severity)}, not {word!r}")
    return found or Severity.WARN


def _message(keys: _Keys) -> str | None:
    message = keys.text("message")
    try:
        template_fields(message or "")
    except ValueError as error:
        keys.fail("message", str(error))
    return message


def _selector(keys: _Keys, source: RowSource, *, key: str) -> Selector:
    """Which rows; `key` names the class."""
    package: str | None = None
    name: str | None = None
    if source is not RowSource.HEARTBEATS:
        package, _, name = (keys.text(key, needed=True) or "").rpartition(":")
    given = keys.text("package") if source is not RowSource.HEARTBEATS else None
    if given and package and given != package:
        keys.fail("package", f"{key} says {package!r} already")
    return Selector(
        source=source,
        package=package or given,
        name=name,
        agent=keys.text("agent"),
        object=keys.text("object") if source is not RowSource.HEARTBEATS else None,
        where=keys.text("where"),
    )


def _limits(keys: _Keys, stale: int | None = None) -> Limits:
    above, below, clear = keys.number("above"), keys.number("below"), keys.number("clear")
    if (above is None) == (below is None):
        keys.fail("above", "give either above or below")
    limit = above if above is not None else below if below is not None else 0.0
    if clear is not None and (clear > limit if above is not None else clear < limit):
        keys.fail("clear", f"is on the wrong side of the limit {limit:g}: the alert would end while it is true")
    return Limits(
        limit=limit,
        above=above is not None,
        clear=limit if clear is None else clear,
        duration=keys.time("for", zero=True) or 0,
        stale=keys.time("stale") or stale,
    )


def _threshold(keys: _Keys, common: dict[str, Any]) -> Rule:
    return ThresholdRule(
        of=_selector(keys, RowSource.SAMPLES, key="class"),
        value=keys.text("value", needed=True) or "",
        limits=_limits(keys),
        **common,
    )


def _rate(keys: _Keys, common: dict[str, Any]) -> Rule:
    rule = RateRule(
        of=_selector(keys, RowSource.SAMPLES, key="class"),
        value=keys.text("value", needed=True) or "",
        over=keys.time("over", zero=True) or 0,
        counter=keys.flag("counter"),
        continued=keys.flag("continued") or False,
        limits=_limits(keys, DEFAULT_STALE),
        **common,
    )
    assert rule.limits.stale is not None
    if rule.over > rule.limits.stale:
        keys.fail("over", "is longer than samples are remembered: give a longer time as stale")
    return rule


def _absence(keys: _Keys, common: dict[str, Any]) -> Rule:
    word = keys.text("of", needed=True) or ""
    source = next((item for item in RowSource if item.value == word), RowSource.HEARTBEATS)
    if word and source.value != word:
        keys.fail("of", f"must be one of {', '.join(item.value for item in RowSource)}, not {word!r}")
    key = "event" if source is RowSource.EVENTS else "class"
    per = keys.text("per") or ("object" if source is RowSource.SAMPLES else "agent")
    if per not in ("agent", "object") or (per == "object" and source is not RowSource.SAMPLES):
        keys.fail("per", f"must be agent, or object where samples are missed, not {per!r}")
    duration, forget = keys.time("for", needed=True) or 1, keys.time("forget")
    if forget is not None and forget <= duration:
        keys.fail("forget", "must be longer than for")
    goodbye = keys.flag("goodbye")
    return AbsenceRule(
        of=_selector(keys, source, key=key),
        per_agent=per == "agent",
        duration=duration,
        goodbye=True if goodbye is None else goodbye,
        forget=forget,
        **common,
    )


def _sequence(keys: _Keys, common: dict[str, Any]) -> Rule:
    given = keys.take("steps", needed=True)
    steps = []
    if given is not None and (not isinstance(given, list) or len(given) < 2):
        keys.fail("steps", "must be a list of two events or more, each a table")
    elif given is not None:
        for number, item in enumerate(given, 1):
            inner = keys.inner(f"steps: {number}", item)
            steps.append(_selector(inner, RowSource.EVENTS, key="event"))
            inner.end()
    within = keys.time("within", needed=True) or 1
    return SequenceRule(
        steps=tuple(steps),
        by=keys.names("by") or ("_agent",),
        within=within,
        clear_after=keys.time("clear_after") or within,
        **common,
    )


def _count(keys: _Keys, common: dict[str, Any]) -> Rule:
    return CountRule(
        of=_selector(keys, RowSource.EVENTS, key="event"),
        by=keys.names("by") or ("_agent",),
        at_least=keys.whole("at_least") or 1,
        within=keys.time("within", needed=True) or 1,
        **common,
    )


def _join(keys: _Keys, common: dict[str, Any]) -> Rule:
    sides: list[Selector] = []
    ids: list[str] = []
    for side, source, key in (("event", RowSource.EVENTS, "name"), ("object", RowSource.SAMPLES, "class")):
        inner = keys.inner(side, keys.take(side, needed=True) or {})
        ids.append(inner.text("id") or "_object")
        sides.append(_selector(inner, source, key=key))
        inner.end()
    same = keys.flag("same_agent")
    return JoinRule(
        event=sides[0],
        object=sides[1],
        event_id=ids[0],
        object_id=ids[1],
        same_agent=True if same is None else same,
        within=keys.time("within", needed=True) or 1,
        **common,
    )


_KINDS: Mapping[RuleKind, Callable[[_Keys, dict[str, Any]], Rule]] = {
    RuleKind.THRESHOLD: _threshold,
    RuleKind.RATE: _rate,
    RuleKind.ABSENCE: _absence,
    RuleKind.SEQUENCE: _sequence,
    RuleKind.COUNT: _count,
    RuleKind.JOIN: _join,
}
