"""What objects are called in a report: by what tells them apart. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from qmf.views.names import class_and_key
from qmf.views.text import clean

#: Where names can be cut.
_PART = re.compile(r"[^:/,|]*[:/,|]?")

#: Where the end of a name of an agent can be cut.
_END = re.compile(r"(?=[.:/])")

#: Characters of a label at most.
LIMIT = 48

#: What names of objects have in common is left out if it is at least so long.
_LONG = 12


def object_name(name: str) -> str:
    """The name of an object without package and class, also where names of others are in it."""
    found = class_and_key(name)
    return name if found is None else found[1]


def labels(names: Sequence[tuple[str, str]], limit: int = LIMIT) -> list[str]:
    """A short label for each object; different ones for different objects.

    The agent is named where objects of several agents have the same name.

    Args:
        names: agent and object of each.
        limit: characters at most.
    """
    objects = [object_name(name) for _, name in names]
    short = _without_common(objects, _LONG)
    if len(set(short)) == len(set(names)):
        return _fitting(short, limit)
    agents = _without_common_end(_without_common([agent for agent, _ in names], 1))
    # The name says nothing where it is the same for all.
    parts = [[agent] if len(set(objects)) == 1 else [own, agent] for own, agent in zip(short, agents, strict=True)]
    found = [" · ".join(part for part in own if part) for own in parts]
    if len(set(found)) < len(set(names)):
        found = [f"{name} · {agent}" for agent, name in names]
    return _fitting(found, limit)


def _without_common(names: Sequence[str], least: int) -> list[str]:
    """Names without the parts that all of them begin with, if these have at least so many characters."""
    different = list(dict.fromkeys(names))
    if len(different) < 2:
        return list(names)
    parts = {name: [part for part in _PART.findall(name) if part] for name in different}
    common = 0
    shortest = min(len(own) for own in parts.values())
    while common < shortest - 1 and len({tuple(own[: common + 1]) for own in parts.values()}) == 1:
        common += 1
    if len("".join(parts[names[0]][:common])) < least:
        return list(names)
    return ["".join(parts[name][common:]) for name in names]


def _without_common_end(names: Sequence[str]) -> list[str]:
    """Names without the parts that all of them end with, such as a domain."""
    different = list(dict.fromkeys(names))
    if len(different) < 2:
        return list(names)
    parts = {name: [part for part in _END.split(name) if part] for name in different}
    common = 0
    shortest = min(len(own) for own in parts.values())
    while common < shortest - 1 and len({tuple(own[len(own) - common - 1 :]) for own in parts.values()}) == 1:
        common += 1
    return ["".join(parts[name][: len(parts[name]) - common]) for name in names]


def _fitting(names: Sequence[str], limit: int) -> list[str]:
    """Names of limited length that are as different as before."""
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
