"""The page of one object: its values with units and descriptions, what changed, and small plots."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import attrs

from qmf.console.aio import ObjectId
from qmf.schema import TYPES, Access, ClassSchema, Property, Statistic, Style
from qmf.views.counters import is_counter
from qmf.views.fields import fields_of, main_entry
from qmf.views.names import reference_text
from qmf.views.objects import ObjectView
from qmf.views.rates import growth_rates
from qmf.views.text import clean, one_line
from qmf.views.units import plural_unit, rate_text
from qmf.web.pages.live.series import PlottedSeries, SeriesStore
from qmf.web.pages.views.page_urls import PlottedValue, object_url
from qmf.web.pages.views.sparkline import SparkLine, spark_line
from qmf.web.pages.views.value_texts import ABSENT, plain_text, value_text

#: Seconds that the small plots show.
SPARK_WINDOW = 300.0


@attrs.frozen
class PropertyRow:
    """A property.

    Attributes:
        name, text, desc: what is shown; the text has the unit.
        href: the page of the object that it refers to, or empty.
        access: when it may change, and by which side, in words.
        settable: a console may set it.
        type: name of its type.
    """

    name: str
    text: str
    desc: str
    href: str = ""
    access: str = ""
    settable: bool = False
    type: str = ""


@attrs.frozen
class StatisticRow:
    """A statistic.

    Attributes:
        name, text, unit, desc: what is shown; the text has the unit, too, where that is short.
        rate: growth per second of a counter, or empty.
        parts: highest and lowest value, or samples and their bounds, as names and texts.
        spark: the small plot, or None where nothing was recorded yet.
        plotted: what a plot shows of it.
        href: the page of the object that it refers to, or empty.
    """

    name: str
    text: str
    unit: str
    desc: str
    rate: str = ""
    parts: tuple[tuple[str, str], ...] = ()
    spark: SparkLine | None = None
    plotted: PlottedValue | None = None
    href: str = ""


_ACCESS: Mapping[Access, str] = {
    Access.RC: "fixed when it was created",
    Access.RW: "can be set",
    Access.RO: "set by the agent only",
}


def property_rows(obj: ObjectView) -> list[PropertyRow]:
    """The properties of an object, in schema order; and what it has besides its schema."""
    schema = obj.schema
    rows = [_property_row(item, obj.values.get(item.name)) for item in schema.properties]
    known = fields_of(schema)
    note = "not in the schema of the class" if known else ""
    return rows + [
        PropertyRow(clean(name), plain_text(value), note) for name, value in obj.values.items() if name not in known
    ]


def _property_row(item: Property, value: object) -> PropertyRow:
    href = object_url(value) if isinstance(value, ObjectId) and value.object_name else ""
    return PropertyRow(
        clean(item.name),
        (reference_text(value) or ABSENT) if isinstance(value, ObjectId) else value_text(item.type, value, item.unit),
        one_line(item.desc or ""),
        href,
        ("part of the key, " if item.index else "") + _ACCESS[item.access] + (", optional" if item.optional else ""),
        item.access is Access.RW,
        item.type.name,
    )


def recorded_names(schema: ClassSchema) -> list[str]:
    """The wire names of the values of which small plots are shown: one for each statistic that is a number."""
    return [main_entry(item) for item in schema.statistics if _is_plotted(item)]


def _is_plotted(item: Statistic) -> bool:
    base = TYPES[item.type.base]
    return base.name != "absTime" and (base.is_integer or base.name in ("float", "double"))


def statistic_rows(
    obj: ObjectView, series: SeriesStore, now: float | None = None, *, connected: bool = True
) -> list[StatisticRow]:
    """The statistics of an object, in schema order.

    Args:
        obj: the object.
        series: has what was recorded of them.
        now: seconds since 1970; None for the clock's.
        connected: there is a broker; without one nothing is known of growth.
    """
    at = time.time() if now is None else now
    recorded = series.series_of(obj.identity.key.object_id)
    rows = [_statistic_row(obj, item, recorded, at) for item in obj.schema.statistics]
    return rows if connected else [attrs.evolve(row, rate="") for row in rows]


def _statistic_row(obj: ObjectView, item: Statistic, recorded: Mapping[str, PlottedSeries], now: float) -> StatisticRow:
    values = [obj.values.get(entry.name) for entry in item.entries]
    text, parts, href = _statistic_texts(item, values)
    entry = main_entry(item)
    counter = is_counter(obj.schema.package, item)
    points = list(recorded[entry].points(now - SPARK_WINDOW)) if entry in recorded else []
    curve = list(growth_rates(points)) if counter else points
    return StatisticRow(
        clean(item.name),
        text,
        plural_unit(item.unit) if item.unit and item.type.base != "deltaTime" else "",
        one_line(item.desc or ""),
        _rate(curve, item.unit, now) if counter else "",
        parts,
        spark_line(curve, now, SPARK_WINDOW) if points else None,
        PlottedValue(obj.identity.key.object_id, entry, counter) if _is_plotted(item) else None,
        href,
    )


def _statistic_texts(item: Statistic, values: Sequence[object]) -> tuple[str, tuple[tuple[str, str], ...], str]:
    """The text of a statistic, its parts, and the page of the object that it refers to; `values`: of its entries."""
    first = values[0]
    if isinstance(first, ObjectId) and first.object_name:
        return reference_text(first), (), object_url(first)
    text, *others = (value_text(TYPES[item.type.base], value, item.unit, measured=True) for value in values)
    if item.type.style is Style.HILO:
        return text, (("high", others[0]), ("low", others[1])), ""
    if item.type.style is Style.MMA:
        if not first:
            return "no samples", (), ""
        low, high, mean = others
        samples = value_text(TYPES["uint64"], first, None, measured=True)
        return mean, (("min", low), ("max", high), ("samples", samples)), ""
    return text, (), ""


def _rate(curve: Sequence[tuple[float, float]], unit: str | None, now: float) -> str:
    if not curve:
        return ""
    at, rate = curve[-1]
    # Nothing was published for long: it does not grow.
    return rate_text(0.0 if now - at > 30 else rate, unit)
