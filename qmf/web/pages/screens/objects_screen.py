"""The table of the objects of a class: pages, order, filter and columns are chosen at the server."""

from __future__ import annotations

import attrs
from nicegui import ui

from qmf.views.text import clean, one_line, plural
from qmf.web.pages.screens.data_table import DataTable, Pager
from qmf.web.pages.screens.open_page import OpenPage, show_text
from qmf.web.pages.views.data_rows import cut
from qmf.web.pages.views.object_table import TablePage
from qmf.web.pages.views.page_texts import some_of
from qmf.web.pages.views.page_urls import PAGE_SIZES, ObjectsUrl

_SESSION = ("org.apache.qpid.broker", "session")
_HINT = "words, name>100, name=text, name~regex, -word, or, not, ( )"


async def objects_screen(visit: OpenPage, url: ObjectsUrl) -> None:
    """Build the table."""
    site = visit.site
    summary = site.catalogue.find(url.package, url.name)
    title = summary.title if summary else url.name
    tables = await visit.class_table(url)
    objects = tables.objects
    if (url.package, url.name) == _SESSION:
        visit.follow_class(url.package, "connection")  # tells which sessions are those of agents and consoles
    with visit.page(clean(title), one_line(summary.desc if summary else "")):
        with ui.element("div").classes("qmf-bar"):
            box = ui.input("Filter", value=url.filter, placeholder=_HINT).props("dense outlined clearable debounce=300")
            box.classes("qmf-filter")
            columns = ui.select({}, multiple=True, label="Columns", value=[]).props("dense outlined options-dense")
            columns.style("max-width: 220px")
            agents = ui.select({"": "all agents"}, value="", label="Agent").props("dense outlined options-dense")
            own = ui.checkbox("own", value=url.own).props("dense")
            own.tooltip("With what agents and consoles create on the broker for themselves")
        problem = ui.label().classes("qmf-problem").props('role="status"')
        table = DataTable(title, on_sort=lambda name: sort_by(name), marked=True)
        pager = Pager(lambda step: turn_page(step))
        with pager.bar:
            size = ui.select(list(PAGE_SIZES), value=url.size, label="Rows").props("dense outlined options-dense")

    current = url
    quiet = False

    async def update() -> None:
        nonlocal quiet
        page = await tables.first_page(current) or await tables.page(current)
        quiet = True  # what is set here was not chosen by the visitor
        try:
            _set_choices(agents, {"": "all agents", **{name: cut(clean(name)) for name in _agents(page, current)}})
            agents.set_value(current.agent)
            _set_choices(columns, {name: item.title for name, item in tables.columns.items()})
            columns.set_value([item.name for item in page.columns])
        finally:
            quiet = False
        table.show(
            page.rows,
            columns=page.columns,
            sort=current.sort or "index",
            descending=current.descending,
            busy=not page.complete,
            empty=_empty(page),
        )
        show_text(problem, some_of([*filter(None, [page.problem]), *page.failures]))
        pager.show(_count_text(page), page.page, page.pages)

    async def show(changed: ObjectsUrl) -> None:
        nonlocal current
        if changed != current:
            current = changed
            visit.show_address(str(changed))
            await update()

    async def choose(**values: object) -> None:
        if not quiet:
            await show(attrs.evolve(current, page=1, **values))  # type: ignore[arg-type]

    async def sort_by(name: str) -> None:
        column = tables.columns.get(name)
        same = name == (current.sort or "index")
        descending = not current.descending if same else bool(column and column.is_number)
        await choose(sort=name, descending=descending)

    async def turn_page(step: int) -> None:
        page = await tables.first_page(current) or await tables.page(current)
        await show(attrs.evolve(current, page=min(max(1, page.page + step), page.pages)))

    box.on_value_change(lambda: choose(filter=(box.value or "").strip()))
    columns.on_value_change(lambda: choose(columns=tuple(columns.value)))
    agents.on_value_change(lambda: choose(agent=agents.value or ""))
    own.on_value_change(lambda: choose(own=own.value))
    size.on_value_change(lambda: choose(size=size.value))
    visit.on_update(update)
    if await tables.first_page(url) is None:
        await visit.until(lambda: objects.complete)
    await update()


def _set_choices(select: ui.select, choices: dict[str, str]) -> None:
    if select.options != choices:
        select.set_options(choices)


def _agents(page: TablePage, url: ObjectsUrl) -> list[str]:
    return sorted({*page.agents, *([url.agent] if url.agent else [])})


def _empty(page: TablePage) -> str:
    if not page.complete:
        return "Objects are being fetched…"
    if not page.all_objects:
        return "There is no object of this class."
    return "Every object is of agents and consoles." if page.own == page.all_objects else "No object passes the filter."


def _count_text(page: TablePage) -> str:
    text = plural(page.total, "object")
    if page.total != page.all_objects:
        text += f" of {page.all_objects:,}"
    if page.own:
        text += f"; {page.own:,} of agents and consoles not shown"
    return text + ("" if page.complete else "; more are being fetched")
