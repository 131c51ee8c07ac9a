"""A dialog that chooses a value of an object: class, object and value."""

from __future__ import annotations

from nicegui import ui

from qmf.console.aio import ObjectId
from qmf.schema import Kind
from qmf.views.text import clean
from qmf.web.pages.live.followed import LiveObjects
from qmf.web.pages.screens.open_page import OpenPage
from qmf.web.pages.views.object_table import place_text
from qmf.web.pages.views.page_columns import columns_of
from qmf.web.pages.views.page_urls import ObjectsUrl, PlottedValue

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
