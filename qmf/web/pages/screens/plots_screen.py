"""Values of several objects over time, together."""

from __future__ import annotations

import time
from collections.abc import Sequence

import attrs
from nicegui import ui

from qmf.console.aio import ObjectId
from qmf.schema import Kind
from qmf.views.objects import ObjectView
from qmf.views.text import clean
from qmf.web.pages.live.followed import LiveObjects
from qmf.web.pages.live.series import TooManySeriesError
from qmf.web.pages.screens.data_table import DataTable
from qmf.web.pages.screens.open_page import OpenPage
from qmf.web.pages.views.data_rows import Cell, DataColumn, DataRow
from qmf.web.pages.views.object_table import place_text
from qmf.web.pages.views.page_columns import columns_of
from qmf.web.pages.views.page_urls import WINDOWS, ObjectsUrl, PlotsUrl, PlottedValue, object_url
from qmf.web.pages.views.plots import MOST_VALUES, PlotLine, echart_options, groups, plot_lines, value_of_line

#: Objects that are offered; typing finds others.
MOST_OFFERED = 50


async def pick_value(visit: OpenPage) -> PlottedValue | None:
    """Ask for a value of an object that can be plotted; None if the dialog was closed."""
    site = visit.site
    classes = {
        f"{item.package}:{item.name}": f"{clean(item.title)} ({clean(item.package)})"
        for item in site.catalogue.classes()
        if item.kind is Kind.DATA
    }
    objects: LiveObjects | None = None
    ids: dict[str, ObjectId] = {}
    with ui.dialog() as dialog, ui.element("div").classes("qmf-dialog").props('aria-label="Add a value"'):
        ui.html("<h2>Add a value</h2>", sanitize=False)
        class_box = ui.select(classes, label="Class", with_input=True).props("outlined dense options-dense")
        filter_box = ui.input("Filter of objects").props("outlined dense clearable debounce=300")
        object_box = ui.select({}, label="Object").props("outlined dense options-dense")
        value_box = ui.select({}, label="Value", with_input=True).props("outlined dense options-dense")
        with ui.element("div").classes("qmf-bar"):
            ui.element("div").classes("qmf-grow")
            ui.button("Cancel", on_click=dialog.close).props("flat no-caps")
            ui.button("Add", on_click=lambda: dialog.submit("add")).props("no-caps")
    dialog.on("hide", dialog.delete)

    async def offer_objects() -> None:
        nonlocal objects
        if not class_box.value:
            return
        package, _, name = class_box.value.rpartition(":")
        objects = visit.follow_class(package, name)
        await visit.until(lambda: objects is not None and objects.complete, 3.0)
        table = visit.tables.of(package, name, objects)
        page = await table.page(ObjectsUrl(package, name, filter=filter_box.value or "", size=MOST_OFFERED))
        ids.clear()
        ids.update({row.key: row.object_id for row in page.rows})
        object_box.set_options({row.key: place_text(row) for row in page.rows})
        if object_box.value not in ids:
            object_box.set_value(next(iter(ids), None))
        columns = columns_of(site.catalogue.versions(package, name)).values()
        values = {item.name: item.title for item in columns if item.is_number and item.field.statistic}
        value_box.set_options(values)
        if value_box.value not in values:
            value_box.set_value(next(iter(values), None))

    class_box.on_value_change(offer_objects)
    filter_box.on_value_change(offer_objects)
    if await dialog != "add" or object_box.value not in ids or not value_box.value:
        return None
    name = str(value_box.value)
    return PlottedValue(ids[object_box.value], name.removesuffix(".rate"), name.endswith(".rate"))


_COLUMNS = (
    DataColumn("object", "Object"),
    DataColumn("name", "Value"),
    DataColumn("now", "Now", right=True),
    DataColumn("low", "Lowest", right=True),
    DataColumn("high", "Highest", right=True),
    DataColumn("remove", ""),
)


async def plots_screen(visit: OpenPage, url: PlotsUrl) -> None:
    """Build the plots."""
    site = visit.site
    current = attrs.evolve(url, values=url.values[:MOST_VALUES])
    followed: dict[ObjectId, LiveObjects] = {}

    def watch(values: tuple[PlottedValue, ...]) -> None:
        for value in values:
            if value.object_id not in followed:
                followed[value.object_id] = visit.follow_object(value.object_id)
        try:
            visit.record([(value.object_id, value.name) for value in values])
        except TooManySeriesError as error:
            ui.notify(str(error), type="negative")

    def find(value: PlottedValue) -> ObjectView | None:
        objects = followed.get(value.object_id)
        return None if objects is None else next(objects.views(), None)

    watch(current.values)
    with visit.page("Plots", "Values over time. They are recorded from the moment that somebody looks at them."):
        if visit.services.options.lake is not None:
            ui.html('<p class="qmf-note">Earlier values are in a <a href="/report">report</a>.</p>', sanitize=False)
        with ui.element("div").classes("qmf-bar"):
            ui.button("Add a value", on_click=lambda: add()).props("outline dense no-caps icon=add")
            window = ui.select(list(WINDOWS), value=current.window, label="Time").props("dense outlined options-dense")
            together = ui.checkbox("all in one plot", value=current.together).props("dense")
            dark = ui.checkbox("dark").classes("sr-only").props('aria-hidden="true" tabindex=-1')
        charts = _Charts()
        table = DataTable(
            "Values",
            _COLUMNS,
            empty="Nothing is plotted yet: add a value, or press Plot on the page of an object.",
            on_act=lambda text: remove(text),
        )
    visit.follow_theme(dark)

    async def update() -> None:
        now = time.time()
        lines = plot_lines(current, site.series, find, now)
        found = groups(lines, together=current.together)
        seconds = WINDOWS[current.window]
        charts.show(found, [echart_options(group, now, seconds, dark=bool(dark.value)) for group in found])
        table.show([_row(line) for line in lines])

    async def change(changed: PlotsUrl) -> None:
        nonlocal current
        if changed != current:
            watch(tuple(value for value in changed.values if value not in current.values))
            current = changed
            visit.show_address(str(changed))
            await update()

    async def add() -> None:
        if len(current.values) >= MOST_VALUES:
            ui.notify(f"A page plots up to {MOST_VALUES} values.", type="warning")
            return
        chosen = await pick_value(visit)
        if chosen is not None:
            await change(attrs.evolve(current, values=tuple(dict.fromkeys((*current.values, chosen)))))

    async def remove(text: str) -> None:
        await change(attrs.evolve(current, values=tuple(item for item in current.values if str(item) != text)))

    window.on_value_change(lambda: change(attrs.evolve(current, window=window.value)))
    together.on_value_change(lambda: change(attrs.evolve(current, together=together.value)))
    dark.on_value_change(update)
    visit.on_update(update)
    await visit.until(lambda: all(find(value) for value in current.values))
    await update()


class _Charts:
    """The plots, made again only when other values are drawn: a plot that is changed keeps what was chosen in it."""

    def __init__(self) -> None:
        self._area = ui.element("div")
        self._shape: list[list[PlottedValue]] = []
        self._charts: list[ui.echart] = []

    def show(self, found: Sequence[Sequence[PlotLine]], options: Sequence[dict[str, object]]) -> None:
        """Draw these groups of lines."""
        shape = [[line.value for line in group] for group in found]
        if shape == self._shape:
            for chart, item in zip(self._charts, options, strict=True):
                chart.options.clear()
                chart.options.update(item)
                chart.update()
            return
        self._shape = shape
        self._area.clear()
        with self._area:
            self._charts = [ui.echart(item).classes("qmf-plot") for item in options]
        for chart, group in zip(self._charts, found, strict=True):
            chart.props(f'role="img" aria-label="Plot of {len(group)} values"')


def _row(line: PlotLine) -> DataRow:
    texts = (line.problem, "", "") if line.problem else value_of_line(line)
    return DataRow(
        str(line.value),
        (
            Cell(clean(line.label.rpartition(" ")[0]), object_url(line.value.object_id), "strong"),
            Cell(f"{clean(line.value.name)}{' per second' if line.value.rate else ''}"),
            *map(Cell, texts),
            Cell(button=str(line.value), button_text="Remove", quiet=True),
        ),
    )
