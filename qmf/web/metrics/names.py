"""Names, units and types of metrics, from the schema of a class."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence

import attrs

from qmf.schema import ClassSchema, Property, QmfType, Statistic, Style


class MetricType(enum.Enum):
    """Types of OpenMetrics."""

    COUNTER = "counter"
    GAUGE = "gauge"


@attrs.frozen
class MetricUnit:
    """A unit of metrics.

    Attributes:
        name: the suffix of names; empty for none.
        divisor: by which the schema's values are divided; 1 to leave them as they are.
    """

    name: str
    divisor: int = 1


#: Base units, as Prometheus wants them, for those of schemas. Others count something, and are put in the plural.
_UNITS = {
    "octet": MetricUnit("bytes"),
    "byte": MetricUnit("bytes"),
    "nanosecond": MetricUnit("seconds", 10**9),
    "microsecond": MetricUnit("seconds", 10**6),
    "millisecond": MetricUnit("seconds", 10**3),
    "second": MetricUnit("seconds"),
    "percent": MetricUnit("ratio", 100),
    "celsius": MetricUnit("celsius"),
    "msgs/sec": MetricUnit("messages_per_second"),
}

#: Other words for units in the names of values.
_WORDS = {
    "msg": "messages",
    "msgs": "messages",
    "txn": "transactions",
    "conn": "connections",
    "conns": "connections",
    "byte": "bytes",
    "percent": "ratio",
}

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
#: Endings of names of statistics that are no counters, though qpidd's schema counts with them.
_LEVELS = ("Depth", "queueCount", "Outstanding", "Credit")

#: Endings that OpenMetrics reserves; a statistic that is called so gets another name.
_RESERVED = ("count", "sum", "bucket", "total", "created", "info")


@attrs.frozen(kw_only=True)
class MetricFamily:
    """A metric family: one value of the objects of a class, a series for each object.

    Attributes:
        name: without the suffix of counters.
        type: counter or gauge.
        unit: of the values.
        help: description.
        value: wire name of the value.
        divisor: values are divided by it.
        samples: wire name of the number of samples that the value is made of, without which there is none; or None.
    """

    name: str
    type: MetricType
    unit: str
    help: str
    value: str
    divisor: int = 1
    samples: str | None = None

    @property
    def series(self) -> str:
        """The name of its series."""
        return f"{self.name}_total" if self.type is MetricType.COUNTER else self.name


def snake_case(name: str) -> str:
    """A name as metrics and labels have it: ``msgTotalEnqueues`` as ``msg_total_enqueues``."""
    words = [word.lower() for word in _WORD.findall(name)]
    text = "_".join(words) or "value"
    return f"_{text}" if text[0].isdigit() else text


def unit_of(text: str | None, kind: QmfType) -> MetricUnit:
    """The unit of a value: that of the schema, or for times that of the type."""
    if kind.base == "absTime":
        return MetricUnit("timestamp_seconds", 10**9)
    if kind.base == "deltaTime" and not text:
        return _UNITS["nanosecond"]
    if not text:
        return MetricUnit("")
    known = _UNITS.get(text.lower())
    if known is not None:
        return known
    first, *rest = (part.strip() for part in text.split("/"))
    counted = _UNITS.get(first.lower())
    divisor, name = (1, _plural(snake_case(first))) if counted is None else (counted.divisor, counted.name)
    return MetricUnit("_per_".join((name, *(snake_case(part) for part in rest))), divisor)


def _plural(word: str) -> str:
    if word.endswith(("s", "x", "ch", "sh")):
        return word if word.endswith("s") and not word.endswith("ss") else f"{word}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return word if word.endswith(("hertz", "celsius")) else f"{word}s"


def families_of(schema: ClassSchema, *, prefix: str | None = None) -> list[MetricFamily]:
    """The families of a class: its statistics, and properties that are numbers, in schema order.

    Args:
        prefix: what names begin with; None for package and class.
    """
    package, name = snake_case(schema.package), snake_case(schema.name)
    # The class `Broker` of `org.apache.qpid.broker` need not say so twice.
    begin = prefix or (package if f"_{package}".endswith(f"_{name}") else f"{package}_{name}")
    found: dict[str, MetricFamily] = {}
    members: list[Property | Statistic] = [*schema.properties, *schema.statistics]
    for item in members:
        if isinstance(item, Property) and (item.index or item.type.style is not Style.DIRECT):
            continue
        for value in _values(item):
            names = (_name(begin, value, short=short) for short in (True, False))
            free = next((text for text in names if text not in found), None)
            if free is not None:
                found[free] = _family(free, value)
    return list(found.values())


def _is_level(item: Statistic) -> bool:
    """Whether a statistic of the style of counters goes down as well: it equals others, or is called so."""
    return item.assign is not None or item.name.endswith(_LEVELS)


@attrs.frozen
class _Value:
    """A value that becomes a family: `which` of the values of a member, such as its maximum."""

    item: Property | Statistic
    name: str
    unit: MetricUnit
    type: MetricType = MetricType.GAUGE
    which: str = ""
    about: str = ""
    samples: str | None = None


def _values(item: Property | Statistic) -> Iterator[_Value]:
    kind = item.type
    if not (kind.is_integer or kind.base in ("bool", "float", "double")):
        return
    unit = unit_of(item.unit, kind)
    if isinstance(item, Statistic) and kind.style is Style.MMA:
        count, *values = (entry.name for entry in item.entries)
        yield _Value(item, count, MetricUnit(""), MetricType.GAUGE, "samples", ", samples in the interval")
        for name, which, about in zip(values, ("min", "max", "mean"), ("least", "greatest", "mean"), strict=True):
            yield _Value(item, name, unit, MetricType.GAUGE, which, f", {about} in the interval", count)
    elif isinstance(item, Statistic) and kind.style is Style.HILO:
        now, high, low = (entry.name for entry in item.entries)
        yield _Value(item, now, unit)
        yield _Value(item, high, unit, MetricType.GAUGE, "high", ", highest in the interval")
        yield _Value(item, low, unit, MetricType.GAUGE, "low", ", lowest in the interval")
    elif isinstance(item, Statistic) and kind.style is Style.COUNT and not _is_level(item):
        yield _Value(item, item.name, unit, MetricType.COUNTER)
    else:
        yield _Value(item, item.name, unit)


def _family(name: str, value: _Value) -> MetricFamily:
    item = value.item
    text = item.desc or snake_case(item.name).replace("_", " ").capitalize()
    return MetricFamily(
        name=name,
        type=value.type,
        unit=value.unit.name.removeprefix("timestamp_"),
        help=text + value.about,
        value=value.name,
        divisor=value.unit.divisor,
        samples=value.samples,
    )


def _name(begin: str, value: _Value, *, short: bool) -> str:
    """The name of a family, which ends with its unit; a short one has no word twice."""
    words = [word for word in snake_case(value.item.name).split("_") if word]
    unit = value.unit.name
    if short:
        words = _without_repetitions(words, begin, unit, value.type)
    if len(words) > 1 and words[-1] in _RESERVED and value.type is not MetricType.COUNTER and not unit:
        # A number of something is called by what it is of.
        words[-2:] = [_plural(words[-2])]
    if value.which:
        words.append(value.which)
    own = "_".join(words)
    if unit and (own == unit or own.endswith(f"_{unit}")):
        own = own[: -len(unit)].rstrip("_")
    return "_".join(filter(None, (begin, own, unit)))


def _without_repetitions(words: Sequence[str], begin: str, unit: str, kind: MetricType) -> list[str]:
    """The words of a name, less those that its beginning, its unit or the suffix of counters say."""
    found = [word for word in words if not (unit and unit in (word, _plural(word), _WORDS.get(word)))]
    if unit.startswith("timestamp_") and len(found) > 1:
        found = _without_last(found, "time")
    if unit:
        found = _without_last(found, "count")
    if kind is MetricType.COUNTER and (unit or len(found) > 1):
        found = [word for word in found if word != "total"]
    if (unit or len(found) > 1) and found[:1] == begin.rsplit("_", 1)[-1:]:
        del found[0]
    return found


def _without_last(words: list[str], word: str) -> list[str]:
    return words[:-1] if words[-1:] == [word] else words
