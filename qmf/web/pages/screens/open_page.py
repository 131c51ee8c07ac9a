"""`OpenPage`: one page that one browser has open, with what it looks at, who looks, and what is around every page."""

from __future__ import annotations

import asyncio
import hashlib
import html
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from nicegui import ui
from starlette.requests import Request

from qmf._version import __version__
from qmf.console.aio import ObjectId
from qmf.views.objects import ObjectView
from qmf.views.text import clean
from qmf.web.access.rules import SET_PROPERTIES, called_object
from qmf.web.own_objects import OwnObjects
from qmf.web.pages.live.followed import LiveObjects, remote_object
from qmf.web.pages.live.references import References
from qmf.web.pages.live.series import SeriesKey
from qmf.web.pages.live.shared_state import SharedState
from qmf.web.pages.views.data_rows import cut
from qmf.web.pages.views.first_rows import FirstPages
from qmf.web.pages.views.object_table import ClassTable, ClassTables
from qmf.web.pages.views.overview import connection_text, finding_text
from qmf.web.pages.views.page_urls import ObjectsUrl, with_query
from qmf.web.scopes import Caller, Scope
from qmf.web.services import WebServices

#: Where style and script of the pages are found, and the folder that they are in.
ASSETS = "/_qmf"
STATIC = Path(__file__).parent.parent / "static"

_PLACES = (
    ("/", "Overview", "o"),
    ("/agents", "Agents", "a"),
    ("/classes", "Classes", "c"),
    ("/events", "Events", "e"),
    ("/plots", "Plots", "p"),
    ("/graph", "Graph", "g"),
    ("/report", "Report", "r"),
)
_KEYS = (
    ("g o, g a, g c, g e, g p, g g, g r", "Overview, agents, classes, events, plots, graph, report"),
    ("/", "Filter"),
    ("j, k, arrows", "Next or previous row; Enter opens it"),
    ("[, ]", "Previous or next page of a table"),
    ("Space", "Pause or go on"),
    ("d", "Dark, light or as the system is"),
    ("?", "These keys"),
)

#: Seconds that a page waits for its contents before it is sent without them.
FIRST_WAIT = 0.5

T = TypeVar("T")


def asset(name: str) -> str:
    """The address of a file in `STATIC`; another one after it changed, so that browsers may keep it."""
    return f"{ASSETS}/{name}?{hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]}"


def show_text(label: ui.label, text: str) -> None:
    """Set the text of a label, which is hidden without any."""
    label.set_text(text)
    label.set_visibility(bool(text))


class OpenPage:
    """One page in one browser."""

    def __init__(
        self, site: SharedState, tables: ClassTables, services: WebServices, request: Request, caller: Caller
    ) -> None:
        """Begin a visit; belongs into the function of a page.

        Args:
            site, tables: what the caller may read.
            request: for the page.
            caller: who asks, and may read.
        """
        self.site = site
        self.tables = tables
        self.services = services
        self.caller = caller
        self.here = request.url.path
        self._ends: list[Callable[[], None]] = []
        self._update: Callable[[], Awaitable[None] | None] = lambda: None
        self._counts = False
        self._show_connection: Callable[[], None] = lambda: None
        self._left = False
        ui.context.client.on_delete(self._leave)

    # -- what it looks at

    def follow_class(self, package: str, name: str) -> LiveObjects:
        """The objects of a class, followed until the browser leaves."""
        return self._keep(self.site.follow_class(package, name))

    async def class_table(self, url: ObjectsUrl) -> ClassTable:
        """The table of a class whose objects are followed until the browser leaves.

        Where they were not followed yet, the first rows are asked for before agents have all others to send.
        """
        name, first = (url.package, url.name), None
        if self.site.followed_class(*name) is None:
            await self.until(lambda: bool(self.site.catalogue.versions(*name)))
            first = FirstPages(self.site, OwnObjects(self.site.connection_object).is_own)
            await first.get(url)
        objects = self.follow_class(*name)
        table = self.tables.of(*name, objects)
        if first is not None:
            objects.begin_after(first.task)
            table.take_first(first)
        return table

    def follow_object(self, object_id: ObjectId) -> LiveObjects:
        """One object, followed until the browser leaves."""
        return self._keep(self.site.follow_object(ObjectId(object_id.object_name, object_id.agent_name)))

    def record(self, keys: list[SeriesKey]) -> None:
        """Record values until the browser leaves.

        Raises:
            TooManySeriesError: too many are recorded already.
        """
        self.at_end(self.site.series.watch(keys))

    def references(self) -> References:
        """A finder of references, closed when the browser leaves."""
        finder = References(self.site)
        self.at_end(finder.close)
        return finder

    def at_end(self, end: Callable[[], None]) -> None:
        """Call `end` when the browser leaves."""
        if self._left:
            end()
        else:
            self._ends.append(end)

    def _keep(self, leased: tuple[T, Callable[[], None]]) -> T:
        self.at_end(leased[1])
        return leased[0]

    def _leave(self) -> None:
        self._left = True
        ends, self._ends = self._ends, []
        for end in ends:
            end()

    # -- who looks

    def may(self, scope: Scope) -> bool:
        """Whether the visitor may do that."""
        return self.caller.may(scope)

    def may_call(self, obj: ObjectView, method: str) -> bool:
        """Whether the visitor may call a method of an object, or set its properties (`SET_PROPERTIES`)."""
        scope = Scope.SET if method == SET_PROPERTIES else Scope.CALL
        called = called_object(remote_object(obj))
        return self.may(scope) and not self.services.access.rules.refusal(self.caller, method, called)

    def still_in(self) -> bool:
        """Whether the visitor's session goes on, and may read the same.

        If not, the browser is sent to log in, or gets the page anew.
        """
        if not self.services.access.still(self.caller):
            ui.navigate.to("/login")
            return False
        if not self.services.readers.is_of(self.site.client, self.caller):
            ui.navigate.reload()
            return False
        return True

    # -- what is around every page

    @contextmanager
    def page(self, title: str, desc: str = "", *, heading: bool = True) -> Iterator[None]:
        """The frame of a page; its contents are made in the block."""
        ui.page_title(f"{cut(title)} – QMF")
        ui.add_head_html(
            f'<link rel="stylesheet" href="{asset("console.css")}"><script src="{asset("console.js")}"></script>'
        )
        broker = self._build_head()
        help_text = ui.dialog().props('aria-label="Keys"')
        with help_text, ui.element("div").classes("qmf-dialog"):
            ui.html(_keys(), sanitize=False)
        ui.button(on_click=help_text.open).props("id=qmf-help").classes("sr-only").props(
            'aria-label="Keys" tabindex=-1'
        )
        banner = ui.element("div").classes("qmf-banner").props('role="alert"')
        with banner:
            words = ui.label()
        with ui.element("main").classes("qmf-main").props('id="main" tabindex="-1"') as main:
            finding = ui.label().classes("qmf-finding").props('role="status"')
            if heading:
                ui.html(f"<h1>{cut_html(title)}</h1>", sanitize=False)
            if desc:
                ui.html(f'<p class="qmf-desc">{html.escape(desc)}</p>', sanitize=False)
            yield
        ui.html(
            f'<footer class="qmf-foot">QMF {__version__}. Times are in {html.escape(time.tzname[time.daylight])}, '
            "the zone of the server. Press ? for keys.</footer>",
            sanitize=False,
        )

        def connection() -> None:
            state = self.site.connection
            text = connection_text(state, time.time())
            banner.set_visibility(not state.connected)
            words.set_text(text)
            search = finding_text(self.site.client.finding_agents) if state.connected else ""
            show_text(finding, search)
            url = clean(state.url)
            broker.set_text(url if state.connected else f"not connected: {url}")
            for element, name in ((main, "qmf-lost"), (broker, "lost")):
                element.classes(add=None if state.connected else name, remove=name if state.connected else None)

        connection()
        self._show_connection = connection
        ui.timer(self.site.interval / 2, self._tick, immediate=False)

    async def wait_for_count(self) -> None:
        """Wait for the first count of objects, if that is quick."""
        await self.site.first_count(FIRST_WAIT)

    async def until(self, condition: Callable[[], bool], seconds: float = FIRST_WAIT) -> None:
        """Wait for a condition, so that the page is sent with its contents; not longer than so many seconds."""
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:  # noqa: ASYNC110 - there is no event for most conditions
            await asyncio.sleep(0.02)

    def show_address(self, path: str, query: Iterable[tuple[str, object]] = ()) -> None:
        """Change the address that the browser shows, without loading it."""
        ui.navigate.history.replace(with_query(path, query))

    def follow_theme(self, box: ui.checkbox) -> None:
        """Keep a checkbox equal to whether the page is dark, for what is drawn by the server's choice of colours."""
        ui.run_javascript(
            f"const box = () => getElement({box.id}).$emit('update:model-value', window.qmfDark());"
            "window.addEventListener('qmf-theme', box); box();"
        )

    async def call(self, obj: ObjectView, method: str, inputs: Mapping[str, Any]) -> Mapping[str, object]:
        """Call a method for the visitor.

        Raises:
            Problem: 403, the rules deny it.
            QmfError: see `RemoteObject.call`.
        """
        access = self.services.access
        with access.acting(self.caller, "call", remote_object(obj), method, method=method, arguments=inputs) as (
            called,
            record,
        ):
            outputs: Mapping[str, object] = await called.call(method, **inputs)
            record["outputs"] = outputs
        return outputs

    async def set_properties(self, obj: ObjectView, values: Mapping[str, Any]) -> None:
        """Set properties for the visitor.

        Raises:
            Problem: 403, the rules deny it.
            QmfError: see `RemoteObject.set`.
        """
        access = self.services.access
        with access.acting(self.caller, "set", remote_object(obj), SET_PROPERTIES, properties=values) as (changed, _):
            await changed.set(**values)

    def on_update(self, update: Callable[[], Awaitable[None] | None], *, counts: bool = False) -> None:
        """Call `update` twice per interval while the page is open: what an agent publishes is shown soon after.

        Args:
            update: makes the page new.
            counts: the page has numbers of objects, which are counted from time to time.
        """
        self._update = update
        self._counts = counts

    async def _tick(self) -> None:
        self._show_connection()  # together with what it says about the values below
        if self.still_in():
            if self._counts:
                self.site.count_objects()
            result = self._update()
            if inspect.isawaitable(result):
                await result

    def _build_head(self) -> ui.label:
        """Make what is above every page; returns the state of the broker in it."""
        links = "".join(
            f'<a href="{path}" accesskey="{key}"{self._current(path)}>{title}</a>' for path, title, key in _PLACES
        )
        user = ""
        if self.caller.name:
            user = (
                f'<form method="post" action="/logout" style="display:inline"><button>{html.escape(self.caller.name)}: '
                "log out</button></form>"
            )
        _bare_html('<a class="qmf-skip" href="#main">To the contents</a>')
        with ui.element("header").classes("qmf-head"):
            _bare_html(f'<a class="qmf-brand" href="/">QMF</a><nav class="qmf-nav" aria-label="Views">{links}</nav>')
            with ui.element("div").classes("qmf-right"):
                broker = ui.label().classes("qmf-state").props('title="The broker"')
                _bare_html(f'{user}<button type="button" id="qmf-theme" aria-label="Colours">◐</button>')
        return broker

    def _current(self, path: str) -> str:
        return ' aria-current="page"' if path == self.here else ""


def _bare_html(text: str) -> None:
    """HTML as a part of what is around it."""
    ui.html(text, sanitize=False).style("display: contents")


def _keys() -> str:
    rows = "".join(f"<dt><kbd>{html.escape(keys)}</kbd></dt><dd>{html.escape(what)}</dd>" for keys, what in _KEYS)
    return f"<h2>Keys</h2><dl>{rows}</dl>"


def cut_html(text: str) -> str:
    """A text as HTML; of a long one the beginning, with all of it as its title and on a button that copies it."""
    shown = cut(text)
    if shown == text:
        return html.escape(text)
    full = html.escape(text)
    return (
        f'<span title="{full}">{html.escape(shown)}</span>'
        f'<button type="button" class="qmf-mini" data-copy="{full}">Copy</button>'
    )
