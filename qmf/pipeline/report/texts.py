"""Values, times, lengths and objects as texts of a report; objects are called by what tells them apart. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from qmf.pipeline.report.time_range import NS, time_text
from qmf.schema import Severity
from qmf.views.names import class_and_key
from qmf.views.text import clean
from qmf.views.times import brief_duration
from qmf.views.units import brief_quantity, brief_scale, heading_unit, per_second

#: Characters of a property's value at most.
_VALUE_LENGTH = 120

#: Where names can be cut.
_PART = re.compile(r"[^:/,|]*[:/,|]?")

#: Where the end of a name of an agent can be cut.
_END = re.compile(r"(?=[.:/])")

#: Characters of a label at most.
LIMIT = 48

#: What names of objects have in common is left out if it is at least so long.
_LONG = 12

#: Severities that share a mark, worst first: name, variable of the style sheet, hatch of bars, numbers.
GROUPS = (
    ("error and worse", "bad", "", range(Severity.EMERG, Severity.WARN)),
    ("warn", "warn", "//", range(Severity.WARN, Severity.NOTICE)),
    ("notice", "notice", "..", range(Severity.NOTICE, Severity.INFORM)),
    ("inform, debug", "info", "", range(Severity.INFORM, Severity.DEBUG + 1)),
)


def severity_mark(severity: int) -> str:
    """The style sheet's variable with the colour of a severity."""
    return next((mark for _, mark, _, numbers in GROUPS if severity in numbers), "info")


def value_text(value: float | None, unit: str | None = None, *, is_rate: bool = False) -> str:
    """A value with about three digits, e.g. ``12.5 MB/s``; a dash for none."""
    if value is None:
        return "–"
    return f"{brief_quantity(_plain(value), unit)}{'/s' if is_rate else ''}"


def scale_texts(values: Sequence[float], unit: str | None, *, is_rate: bool = False) -> list[str]:
    """The marks of an axis: different ones for different values."""
    return [f"{text}{'/s' if is_rate else ''}" for text in brief_scale([_plain(value) for value in values], unit)]


def _plain(value: float) -> float:
    """Without the noise of sums: a scale has 0 and not 1e-17."""
    return 0.0 if abs(value) < 1e-12 else float(value)


def unit_text(unit: str | None, *, is_rate: bool = False) -> str:
    """What a heading says of the unit; empty if the values say it."""
    shown = heading_unit(unit)
    if is_rate and shown:
        return heading_unit(per_second(unit)) or f"{shown} per second"
    return shown


def seconds_text(length: float) -> str:
    return brief_duration(length * NS)


def percent_text(part: float | None) -> str:
    """A share; never 100 % for an agent that was down."""
    if part is None:
        return "unknown"
    text = f"{part * 100:.3f}" if part > 0.99 else f"{part * 100:.1f}"
    return f"{'99.999' if text == '100.000' and part < 1 else text.removesuffix('.000')} %"


def signed_text(part: float | None) -> str:
    """A relative change with its sign; a dash for none."""
    return "–" if part is None else f"{part * 100:+.1f} %"


def moment_text(seconds: float) -> str:
    """A time in seconds since 1970, in UTC."""
    return time_text(round(seconds * NS))


def cut_text(text: str | None) -> str:
    """The beginning of a long value."""
    if text is None:
        return "–"
    return text if len(text) <= _VALUE_LENGTH else f"{text[:_VALUE_LENGTH]}…"


def object_name(name: str) -> str:
    """The name of an object without package and class, also where names of others are in it."""
    found = class_and_key(name)
    return name if found is None else found[1]


def labels(names: Sequence[tuple[str, str]], limit: int = LIMIT) -> list[str]:
    """A short label for each object, by agent and name: different ones for different objects."""
    objects = [object_name(name) for _, name in names]
    short = _without_common(objects, _PART.findall, _LONG)
    if len(set(short)) == len(set(names)):
        return _fitting(short, limit)
    agents = _without_common([agent for agent, _ in names], _PART.findall, 1)
    agents = _without_common(agents, _END.split, at_end=True)  # such as a domain
    # The name says nothing where it is the same for all.
    parts = [[agent] if len(set(objects)) == 1 else [own, agent] for own, agent in zip(short, agents, strict=True)]
    found = [" · ".join(part for part in own if part) for own in parts]
    if len(set(found)) < len(set(names)):
        found = [f"{name} · {agent}" for agent, name in names]
    return _fitting(found, limit)


def _without_common(
    names: Sequence[str], split: Callable[[str], list[str]], least: int = 0, *, at_end: bool = False
) -> list[str]:
    """Names without the parts that all of them begin or end with, if these have at least so many characters."""
    different = list(dict.fromkeys(names))
    if len(different) < 2:
        return list(names)
    order = -1 if at_end else 1
    parts = {name: [part for part in split(name) if part][::order] for name in different}
    common, shortest = 0, min(map(len, parts.values()))
    while common < shortest - 1 and len({own[common] for own in parts.values()}) == 1:
        common += 1
    if sum(map(len, parts[names[0]][:common])) < least:
        return list(names)
    return ["".join(parts[name][common:][::order]) for name in names]


def _fitting(names: Sequence[str], limit: int) -> list[str]:
    found = [abbreviate(name, limit) for name in names]
    if len(set(found)) == len(set(names)):
        return found
    numbers: dict[str, dict[str, int]] = {}
    made: list[str] = []
    for name, text in zip(names, found, strict=True):
        number = numbers.setdefault(text, {}).setdefault(name, len(numbers[text]) + 1)
        made.append(text if number == 1 else f"{text} ({number})")
    return made


def abbreviate(text: str, limit: int) -> str:
    """A text of limited length, made safe: its middle is cut out, since names differ at their ends."""
    text = clean(text)
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    return f"{text[:head]}…{text[-(limit - 1 - head) :]}"
