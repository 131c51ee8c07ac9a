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
    SUMMARY = "summary"


@attrs.frozen
class Unit:
    """A unit of metrics.

    Attributes:
        name: the suffix of names; empty for none.
        divisor: by which the schema's values are divided; 1 to leave them as they are.
    """

    name: str
    divisor: int = 1


#: Base units, as Prometheus wants them, for those of schemas. Others count something, and are put in the plural.
_UNITS = {
    "octet": Unit("bytes"),
    "byte": Unit("bytes"),
    "nanosecond": Unit("seconds", 10**9),
    "microsecond": Unit("seconds", 10**6),
    "millisecond": Unit("seconds", 10**3),
    "second": Unit("seconds"),
    "percent": Unit("ratio", 100),
    "celsius": Unit("celsius"),
    "msgs/sec": Unit("messages_per_second"),
}

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
#: Endings of names of statistics that are no counters, though qpidd's schema counts with them.
_LEVELS = ("Depth", "queueCount", "Outstanding", "Credit")

#: Endings that OpenMetrics reserves; a statistic that is called so gets another name.
_RESERVED = ("count", "sum", "bucket", "total", "created", "info")


@attrs.frozen(kw_only=True)
class Sample:
    """One series of a family for each object.

    Attributes:
        value: wire name of the value.
        suffix: behind the name of the family, e.g. ``_total``.
        label: another label, e.g. ``quantile="0"``; empty for none.
        times: wire name of another value that this one is multiplied with, or None.
    """

    value: str
    suffix: str = ""
    label: str = ""
    times: str | None = None


@attrs.frozen(kw_only=True)
class Family:
    """A metric family: one value of the objects of a class.

    Attributes:
        name: without suffixes of samples.
        type: counter, gauge or summary.
        unit: of the values.
        help: description.
        samples: what is written for each object.
        divisor: values are divided by it.
    """

    name: str
    type: MetricType
    unit: str
    help: str
    samples: tuple[Sample, ...]
    divisor: int = 1


def snake_case(name: str) -> str:
    """A name as metrics and labels have it: ``msgTotalEnqueues`` as ``msg_total_enqueues``."""
    words = [word.lower() for word in _WORD.findall(name)]
    text = "_".join(words) or "value"
    return f"_{text}" if text[0].isdigit() else text


def unit_of(text: str | None, kind: QmfType) -> Unit:
    """The unit of a value: that of the schema, or for times that of the type."""
    if kind.base == "absTime":
        return Unit("timestamp_seconds", 10**9)
    if kind.base == "deltaTime" and not text:
        return _UNITS["nanosecond"]
    if not text:
        return Unit("")
    known = _UNITS.get(text.lower())
    if known is not None:
        return known
    first, *rest = (part.strip() for part in text.split("/"))
    counted = _UNITS.get(first.lower())
    divisor, name = (1, _plural(snake_case(first))) if counted is None else (counted.divisor, counted.name)
    return Unit("_per_".join((name, *(snake_case(part) for part in rest))), divisor)


def _plural(word: str) -> str:
    if word.endswith(("s", "x", "ch", "sh")):
        return word if word.endswith("s") and not word.endswith("ss") else f"{word}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return word if word.endswith(("hertz", "celsius")) else f"{word}s"


def families_of(schema: ClassSchema, *, prefix: str | None = None) -> list[Family]:
    """The families of a class: its statistics, and properties that are numbers, in schema order.

    Args:
        schema: of the class.
        prefix: what names begin with; None for package and class.
    """
    begin = prefix or snake_case(f"{schema.package}.{schema.name}")
    found: dict[str, Family] = {}
    members: list[Property | Statistic] = [*schema.properties, *schema.statistics]
    for item in members:
        if isinstance(item, Property) and (item.index or item.type.style is not Style.DIRECT):
            continue
        for family in _families(begin, item):
            found.setdefault(family.name, family)
    return list(found.values())


def _is_level(item: Statistic) -> bool:
    """Whether a statistic of the style of counters goes down as well: it equals others, or is called so."""
    return item.assign is not None or item.name.endswith(_LEVELS)


def _families(begin: str, item: Property | Statistic) -> Iterator[Family]:
    kind = item.type
    if not (kind.is_integer or kind.base in ("bool", "float", "double")):
        return
    unit = unit_of(item.unit, kind)
    text = item.desc or snake_case(item.name).replace("_", " ").capitalize()
    if kind.style is Style.MMA and isinstance(item, Statistic):
        count, least, most, average = (entry.name for entry in item.entries)
        yield _family(
            begin,
            (item.name,),
            unit,
            text,
            MetricType.SUMMARY,
            (
                Sample(value=least, label='quantile="0"'),
                Sample(value=most, label='quantile="1"'),
                Sample(value=count, suffix="_count"),
                Sample(value=average, suffix="_sum", times=count),
            ),
        )
    elif kind.style is Style.HILO and isinstance(item, Statistic):
        for entry, words, more in zip(
            item.entries, ((), ("high",), ("low",)), ("", ", highest in the interval", ", lowest in the interval"),
            strict=True,
        ):  # fmt: skip
            yield _family(begin, (item.name, *words), unit, text + more, MetricType.GAUGE, (Sample(value=entry.name),))
    elif kind.style is Style.COUNT and isinstance(item, Statistic) and not _is_level(item):
        sample = Sample(value=item.name, suffix="_total")
        yield _family(begin, (item.name,), unit, text, MetricType.COUNTER, (sample,))
    else:
        yield _family(begin, (item.name,), unit, text, MetricType.GAUGE, (Sample(value=item.name),))


def _family(
    begin: str, names: Sequence[str], unit: Unit, text: str, kind: MetricType, samples: tuple[Sample, ...]
) -> Family:
    first, *rest = names
    parts = [word for word in snake_case(first).split("_") if word]
    suffix = unit.name
    if len(parts) > 1 and parts[-1] in _RESERVED and kind is not MetricType.COUNTER and not suffix:
        # A number of something is called by what it is of.
        parts[-2:] = [_plural(parts[-2])]
    parts += rest
    own = "_".join(parts)
    # A name that ends with its unit already, or with another word for it, does not get it twice.
    for ending in (suffix, {"ratio": "percent"}.get(suffix, "")):
        if ending and (own == ending or own.endswith(f"_{ending}")):
            own = own[: -len(ending)].rstrip("_")
            break
    name = "_".join(filter(None, (begin, own, suffix)))
    return Family(
        name=name, type=kind, unit=suffix.removeprefix("timestamp_"), help=text, samples=samples, divisor=unit.divisor
    )
