"""The page of one object: its values with units and descriptions, what changed, and small plots."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

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
from qmf.web.pages.views.data_rows import Cell, DataColumn, DataRow, Part
from qmf.web.pages.views.page_texts import ABSENT, plain_text, value_text
from qmf.web.pages.views.page_urls import PlottedValue, object_url
from qmf.web.pages.views.plots import spark_line

#: Seconds that the small plots show.
SPARK_WINDOW = 300.0


PROPERTY_COLUMNS = (DataColumn("name", "Property"), DataColumn("value", "Value"), DataColumn("desc", "Description"))
STATISTIC_COLUMNS = (
    DataColumn("name", "Statistic"),
    DataColumn("value", "Value"),
    DataColumn("rate", "Per second"),
    DataColumn("range", "High and low"),
    DataColumn("plot", "Last 5 minutes"),
    DataColumn("desc", "Description"),
)

_ACCESS: Mapping[Access, str] = {
    Access.RC: "fixed when it was created",
    Access.RW: "can be set",
    Access.RO: "set by the agent only",
}


def property_rows(obj: ObjectView) -> list[DataRow]:
    """The properties of an object, in schema order; and what it has besides its schema."""
    schema = obj.schema
    rows = [_property_row(item, obj.values.get(item.name)) for item in schema.properties]
    known = fields_of(schema)
    note = "Not in the schema of the class." if known else ""
    return rows + [
        _value_row(clean(name), plain_text(value), "", note) for name, value in obj.values.items() if name not in known
    ]


def _property_row(item: Property, value: object) -> DataRow:
    href = object_url(value) if isinstance(value, ObjectId) and value.object_name else ""
    text = (reference_text(value) or ABSENT) if isinstance(value, ObjectId) else value_text(item.type, value, item.unit)
    access = (
        ("part of the key, " if item.index else "") + _ACCESS[item.access] + (", optional" if item.optional else "")
    )
    desc = one_line(item.desc or "")
    end = "" if not desc else " " if desc.endswith(".") else ". "
    return _value_row(clean(item.name), text, href, f"{desc}{end}{access.capitalize()}.")


def _value_row(name: str, text: str, href: str, desc: str) -> DataRow:
    return DataRow(
        name, (Cell(name, kind="strong"), Cell(text, href, "value", whole=True), Cell(desc, kind="dim", whole=True))
    )


def recorded_names(schema: ClassSchema) -> list[str]:
    """The wire names of the values of which small plots are shown: one for each statistic that is a number."""
    return [main_entry(item) for item in schema.statistics if _is_plotted(item)]


def _is_plotted(item: Statistic) -> bool:
    base = TYPES[item.type.base]
    return base.name != "absTime" and (base.is_integer or base.name in ("float", "double"))


def statistic_rows(
    obj: ObjectView, series: SeriesStore, now: float | None = None, *, connected: bool = True
) -> list[DataRow]:
    """The statistics of an object, in schema order. The button of one that can be plotted stands for its value.

    Args:
        series: has what was recorded of them.
        now: seconds since 1970; None for the clock's.
        connected: there is a broker; without one nothing is known of growth.
    """
    at = time.time() if now is None else now
    recorded = series.series_of(obj.identity.key.object_id)
    return [_statistic_row(obj, item, recorded, at, connected=connected) for item in obj.schema.statistics]


def _statistic_row(
    obj: ObjectView, item: Statistic, recorded: Mapping[str, PlottedSeries], now: float, *, connected: bool
) -> DataRow:
    values = [obj.values.get(entry.name) for entry in item.entries]
    text, parts, href = _statistic_texts(item, values)
    entry = main_entry(item)
    counter = is_counter(obj.schema.package, item)
    points = list(recorded[entry].points(now - SPARK_WINDOW)) if entry in recorded else []
    curve = list(growth_rates(points)) if counter else points
    plot = spark_line(curve, now, SPARK_WINDOW) if points else None
    name = clean(item.name)
    unit = plural_unit(item.unit) if item.unit and item.type.base != "deltaTime" else ""
    desc = one_line(item.desc or "")
    return DataRow(
        name,
        (
            Cell(name, kind="strong"),
            Cell(text, href, "value", whole=True),
            Cell(_rate(curve, item.unit, now) if counter and connected else ""),
            Cell(parts=parts),
            Cell(
                kind="nowrap",
                plot=plot.points if plot else "",
                plot_name=f"{name}: {plot.low:,.6g} to {plot.high:,.6g}" if plot else "",
                button=str(PlottedValue(obj.identity.key.object_id, entry, counter)) if _is_plotted(item) else "",
                button_text="Plot",
                quiet=True,
            ),
            Cell(f"{desc} ({unit})" if unit else desc, kind="dim", whole=True),
        ),
    )


def _statistic_texts(item: Statistic, values: Sequence[object]) -> tuple[str, tuple[Part, ...], str]:
    """The text of a statistic, its parts, and the page of the object that it refers to; `values`: of its entries."""
    first = values[0]
    if isinstance(first, ObjectId) and first.object_name:
        return reference_text(first), (), object_url(first)
    text, *others = (value_text(TYPES[item.type.base], value, item.unit, measured=True) for value in values)
    if item.type.style is Style.HILO:
        return text, (Part("high", others[0]), Part("low", others[1])), ""
    if item.type.style is Style.MMA:
        if not first:
            return "no samples", (), ""
        low, high, mean = others
        samples = value_text(TYPES["uint64"], first, None, measured=True)
        return mean, (Part("min", low), Part("max", high), Part("samples", samples)), ""
    return text, (), ""


def _rate(curve: Sequence[tuple[float, float]], unit: str | None, now: float) -> str:
    if not curve:
        return ""
    at, rate = curve[-1]
    # Nothing was published for long: it does not grow.
    return rate_text(0.0 if now - at > 30 else rate, unit)
