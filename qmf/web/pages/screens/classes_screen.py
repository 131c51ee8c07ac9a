"""The table of the classes of the bus."""

from __future__ import annotations

from collections.abc import Mapping

from nicegui import ui

from qmf.presenting.text import clean, one_line
from qmf.schema import Kind
from qmf.web.pages.live.catalogue import ClassSummary
from qmf.web.pages.screens.data_table import Cell, Column, DataTable, Row
from qmf.web.pages.screens.visit import Visit
from qmf.web.pages.views.page_urls import EventsUrl, class_url
from qmf.web.pages.views.value_texts import some_of

_COLUMNS = (
    Column("name", "Class"),
    Column("objects", "Objects", right=True),
    Column("package", "Package"),
    Column("kind", "Kind"),
    Column("desc", "Description"),
)


async def classes_screen(visit: Visit, query: Mapping[str, str]) -> None:
    """Build the table of classes."""
    site = visit.site
    sort = query.get("sort", "").removeprefix("-")
    descending = query.get("sort", "").startswith("-")
    with visit.page("Classes", "What agents publish: classes of objects, and of events."):
        with ui.element("div").classes("qmf-bar"):
            box = ui.input("Filter", value=query.get("filter", "")).props("dense outlined clearable debounce=200")
            box.classes("qmf-filter")
            count = ui.label().classes("qmf-count")
        table = DataTable("Classes", _COLUMNS, empty="No class.", on_sort=lambda name: sorted_by(name))
        failures = ui.label().classes("qmf-problem")

    def update() -> None:
        site.count_objects()
        words = (box.value or "").lower().split()
        found = [item for item in site.catalogue.classes() if all(word in _searched(item) for word in words)]
        keys = {
            "name": lambda item: item.name.lower(),
            "objects": lambda item: item.total or 0,
            "package": lambda item: item.package,
            "kind": lambda item: item.kind.value,
            "desc": lambda item: item.desc,
        }
        if sort in keys:
            found.sort(key=keys[sort], reverse=descending)
        table.show([_row(item) for item in found], sort=sort, descending=descending)
        count.set_text(f"{len(found):,} classes")
        failed = [f"{agent}: {error}" for agent, error in site.catalogue.failures.items()]
        failures.set_text(clean(some_of(failed)))
        failures.set_visibility(bool(failed) and site.connection.connected)

    def changed() -> None:
        visit.show_address("/classes", [("filter", box.value or ""), ("sort", f"{'-' if descending else ''}{sort}")])
        update()

    def sorted_by(name: str) -> None:
        nonlocal sort, descending
        descending = not descending if sort == name else name == "objects"
        sort = name
        changed()

    box.on_value_change(changed)
    visit.on_update(update)
    site.count_objects()
    await visit.until(lambda: site.catalogue.counted_at is not None)
    update()


def _searched(item: ClassSummary) -> str:
    return f"{item.package}:{item.name} {item.desc}".lower()


def _row(item: ClassSummary) -> Row:
    data = item.kind is Kind.DATA
    href = class_url(item.package, item.name) if data else str(EventsUrl(classes=f"{item.package}:{item.name}"))
    versions = f" ({len(item.keys)} versions)" if len(item.keys) > 1 else ""
    count = "" if not data else "…" if item.total is None else f"{item.total:,}"
    return Row(
        f"{item.kind.value} {item.package}:{item.name}",
        (
            Cell(clean(item.title), href, "strong"),
            Cell(count),
            Cell(clean(item.package), kind="dim"),
            Cell(("objects" if data else "events") + versions, kind="dim"),
            Cell(one_line(item.desc), whole=True),
        ),
    )
