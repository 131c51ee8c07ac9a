"""Metrics as text: OpenMetrics 1.0, and Prometheus' text format for those that want it.

A family is a line for each object, so a broker with 10,000 queues has half a million lines. They are joined from
labels that were written once for all families of an object, or, for values that need more, written by functions
compiled for the family: the reference library takes many times as long ([performance.md]).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

import attrs

from qmf._compile import compile_function
from qmf.console.aio import ObjectId
from qmf.views.names import without_class
from qmf.web.metrics.names import MetricFamily

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4; charset=utf-8"


#: Objects whose lines are written in one go: their text, some hundred kB, stays in the caches of the processor.
BLOCK = 2000

#: Types of values that are written as Python writes them; a bool is not.
_WRITTEN_AS_IS = frozenset({int, float})


class MetricRow(NamedTuple):
    """An object.

    Attributes:
        labels: as they are written, without the bracket at their end.
        values: by wire name.
        agent: name of its agent.
        keys: wire names of the properties that identify it, with the names of their labels.
    """

    labels: str
    values: Mapping[str, object]
    agent: str
    keys: Sequence[tuple[str, str]]

    @property
    def attributes(self) -> dict[str, str]:
        """The labels besides the agent's."""
        return {label: label_text(self.values.get(name)) for name, label in self.keys}


def label_text(value: object) -> str:
    """The value of a property as the text of a label: of a reference, the name of the object without its class."""
    if isinstance(value, str):
        return value
    if isinstance(value, ObjectId):
        return _short_name(value.object_name)
    if isinstance(value, Mapping):
        return _short_name(str(value.get("_object_name", "")))
    return "" if value is None else str(value)


@functools.lru_cache(10_000)
def _short_name(name: str) -> str:
    return without_class(name, name.partition(":")[0])


class RowBlock:
    """Up to `BLOCK` objects of a class, for all of its families.

    Attributes:
        rows: the objects.
        labels: of the objects, as they are written in front of values.
        values: of the objects.
    """

    __slots__ = ("labels", "rows", "values")

    def __init__(self, rows: Sequence[MetricRow]) -> None:
        self.rows = rows
        self.labels = [f"{row.labels}}} " for row in rows]
        self.values = [row.values for row in rows]


@attrs.frozen
class FamilyRows:
    """A family, and the objects that have it.

    Attributes:
        family: the family.
        blocks: the objects.
    """

    family: MetricFamily
    blocks: Sequence[RowBlock]

    @property
    def rows(self) -> Iterator[MetricRow]:
        """The objects, one by one."""
        for block in self.blocks:
            yield from block.rows


def exposition(families: Iterator[FamilyRows] | Sequence[FamilyRows], *, openmetrics: bool) -> Iterator[str]:
    """The text of families that have samples, in parts; without the end mark."""
    for item in families:
        head = _head(item.family, openmetrics=openmetrics)
        for block in item.blocks:
            text = _plain_lines(item.family, block) or "".join(_writer(item.family)(block.rows))
            if text:
                yield head + text
                head = ""


def _plain_lines(family: MetricFamily, block: RowBlock) -> str:
    """The lines of a family whose objects all have a number that is written as it is; empty if they have not."""
    if family.samples is not None or family.divisor != 1:
        return ""
    try:
        values = list(map(itemgetter(family.value), block.values))
    except KeyError:
        return ""
    if not _WRITTEN_AS_IS.issuperset(map(type, values)):
        return ""
    name = family.series
    lines = [f"{labels}{value}" for labels, value in zip(block.labels, values, strict=True)]
    return name + f"\n{name}".join(lines) + "\n"


def escape_label(text: str) -> str:
    """The value of a label as it is written; what was no text on the wire becomes the replacement character."""
    if not text.isascii():
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _head(family: MetricFamily, *, openmetrics: bool) -> str:
    text = family.help.replace("\\", r"\\").replace("\n", r"\n")
    name = family.name
    if openmetrics:
        unit = f"# UNIT {name} {family.unit}\n" if family.unit else ""
        text = text.replace('"', r"\"")
        return f"# TYPE {name} {family.type.value}\n{unit}# HELP {name} {text}\n"
    return f"# HELP {family.series} {text}\n# TYPE {family.series} {family.type.value}\n"


@functools.lru_cache(10_000)
def _writer(family: MetricFamily) -> Callable[[Sequence[MetricRow]], list[str]]:
    """The function that writes the lines of a family."""
    names: dict[str, object] = {"number": (int, float), "key": family.value, "samples": family.samples}
    value = "x + 0" if family.divisor == 1 else f"x / {family.divisor}"  # a bool becomes a number
    test = "isinstance(x := values.get(key), number)"
    if family.samples is not None:
        test = f"values.get(samples) and {test}"
    source = (
        "def write(rows):\n"
        f"    return [f'{family.series}{{labels}}}}}} {{{value}}}\\n'"
        f" for labels, values, _agent, _keys in rows if {test}]\n"
    )
    found: Callable[[Sequence[MetricRow]], list[str]] = compile_function("write", source, names, family.name)
    return found
