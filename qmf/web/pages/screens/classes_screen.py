"""The table of the classes of the bus, page by page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
from nicegui import ui

from qmf.schema import Kind
from qmf.views.text import clean, plural
from qmf.web.pages.live.catalogue import Catalogue, ClassSummary
from qmf.web.pages.screens.data_table import DataTable, Pager
from qmf.web.pages.screens.open_page import OpenPage, show_text
from qmf.web.pages.views.agent_view import CLASS_COLUMNS, class_row
from qmf.web.pages.views.data_rows import DataRow, PageOf, page_of
from qmf.web.pages.views.page_texts import some_of
from qmf.web.pages.views.page_urls import DEFAULT_SIZE, ClassesUrl, EventsUrl, class_url

_KEYS: Mapping[str, Callable[[ClassSummary], str | int]] = {
    "name": lambda item: item.name.lower(),
    "objects": lambda item: item.total or 0,
    "package": lambda item: item.package,
    "kind": lambda item: item.kind.value,
    "desc": lambda item: item.desc,
}


async def classes_screen(visit: OpenPage, url: ClassesUrl) -> None:
    """Build the table of classes."""
    site = visit.site
    current = url
    chosen = ChosenClasses(site.catalogue)
    with visit.page("Classes", "What agents publish: classes of objects, and of events."):
        with ui.element("div").classes("qmf-bar"):
            box = ui.input("Filter", value=url.filter).props("dense outlined clearable debounce=200")
            box.classes("qmf-filter")
        table = DataTable("Classes", CLASS_COLUMNS, empty="No class.", on_sort=lambda name: sort_by(name))
        pager = Pager(lambda step: show(attrs.evolve(current, page=shown.number + step)))
        failures = ui.label().classes("qmf-problem")
    shown: PageOf[ClassSummary] = page_of((), 1, DEFAULT_SIZE)

    def update() -> None:
        nonlocal shown
        found = chosen.of(current)
        shown = page_of(found, current.page, DEFAULT_SIZE)
        table.show([_row(item) for item in shown.items], sort=current.sort, descending=current.descending)
        pager.show(plural(len(found), "class", "classes"), shown.number, shown.pages)
        failed = [f"{agent}: {error}" for agent, error in site.catalogue.failures.items()]
        show_text(failures, clean(some_of(failed)) if site.connection.connected else "")

    def show(changed: ClassesUrl) -> None:
        nonlocal current
        current = changed
        visit.show_address(str(changed))
        update()

    def sort_by(name: str) -> None:
        descending = not current.descending if current.sort == name else name == "objects"
        show(attrs.evolve(current, sort=name, descending=descending, page=1))

    box.on_value_change(lambda: show(attrs.evolve(current, filter=(box.value or "").strip(), page=1)))
    visit.on_update(update, counts=True)
    await visit.wait_for_count()
    update()


class ChosenClasses:
    """The classes that an address asks for, in order: found again when there are others, not at each update."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._found: Sequence[ClassSummary] = ()
        self._of: tuple[int, ClassesUrl] | None = None

    def of(self, url: ClassesUrl) -> Sequence[ClassSummary]:
        """Those for this address, all pages of them."""
        wanted = self._catalogue.version, attrs.evolve(url, page=1)
        if self._of != wanted:
            words = url.filter.lower().split()
            found = [item for item in self._catalogue.classes() if _has_words(item, words)]
            if url.sort in _KEYS:
                found.sort(key=_KEYS[url.sort], reverse=url.descending)
            self._found, self._of = found, wanted
        return self._found


def _has_words(item: ClassSummary, words: Sequence[str]) -> bool:
    return not words or all(word in f"{item.package}:{item.name} {item.desc}".lower() for word in words)


def _row(item: ClassSummary) -> DataRow:
    if item.kind is not Kind.DATA:
        return class_row(item, str(EventsUrl(classes=f"{item.package}:{item.name}")), "")
    return class_row(item, class_url(item.package, item.name), "…" if item.total is None else f"{item.total:,}")
