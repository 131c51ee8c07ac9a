"""Adds the pages to an application, with what they show to all who may read the same (`PageState`).

NiceGUI keeps its state in modules: it can serve one application of a process at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, Self

import attrs
from fastapi import FastAPI, Request
from nicegui import APIRouter, core, ui
from starlette.responses import FileResponse, Response
from starlette.routing import Match, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from qmf.views.events import EventView, LostEvents
from qmf.web.addresses import from_segment
from qmf.web.consoles import WebConsole
from qmf.web.pages.live.shared_state import SharedState
from qmf.web.pages.screens.agents_screen import agent_screen, agents_screen
from qmf.web.pages.screens.classes_screen import classes_screen
from qmf.web.pages.screens.events_screen import events_screen
from qmf.web.pages.screens.graph_screen import graph_screen
from qmf.web.pages.screens.object_screen import object_screen
from qmf.web.pages.screens.objects_screen import objects_screen
from qmf.web.pages.screens.open_page import ASSETS, STATIC, OpenPage
from qmf.web.pages.screens.overview_screen import overview_screen
from qmf.web.pages.screens.plots_screen import plots_screen
from qmf.web.pages.screens.report_screen import report_screen
from qmf.web.pages.views.object_table import ClassTables
from qmf.web.pages.views.page_urls import AgentsUrl, ClassesUrl, EventsUrl, GraphUrl, ObjectsUrl, PlotsUrl, object_of
from qmf.web.readers.readable_console import ReadableConsole
from qmf.web.readers.readers import PerReader
from qmf.web.reports.making import ReportQuestion
from qmf.web.scopes import Scope as WebScope
from qmf.web.services import WebServices


@attrs.frozen(eq=False)
class PageState:
    """The parts.

    Attributes:
        state: what the bus is like.
        tables: of classes.
    """

    state: SharedState
    tables: ClassTables

    @classmethod
    def on(cls, console: WebConsole, interval: float) -> Self:
        """A state that is not started yet, with so many seconds between updates."""
        state = SharedState(console, interval)
        return cls(state, ClassTables(state))

    def for_reader(self, console: ReadableConsole) -> PageState:
        """Another one, started, for those who have a console; with the events of this one that they may read."""

        def is_readable(event: EventView) -> bool:
            if isinstance(event, LostEvents):
                return console.sees_agent(event.agent)
            name = event.short_name if event.package else ""
            return console.sees_event(event.package, name, event.agent, event.object_id, event.values.values())

        made = PageState.on(console, self.state.interval)
        made.state.start(self.state.events, is_readable)
        return made

    async def close(self) -> None:
        """End it."""
        await self.state.close()


#: Where NiceGUI's own files and its websocket are.
_NICEGUI = "/_nicegui"
#: Seconds that a browser that lost its connection has to come back, before its page is forgotten.
_RECONNECT = 30.0


def mount(app: FastAPI, services: WebServices, *, interval: float = 2.0) -> None:
    """Add the pages to `app`; those of an application share `services`.

    Args:
        app: the application.
        services: what it stands on.
        interval: seconds between the publications of agents to this console, and between updates of pages.
    """
    whole = PageState.on(services.client, interval)
    readers = PerReader(services.readers, whole, whole.for_reader, PageState.close)
    app.include_router(_pages(readers, services))
    app.mount(ASSETS, _Assets(directory=STATIC))
    opened = app.router.lifespan_context

    @contextlib.asynccontextmanager
    async def lifespan(owner: Any) -> AsyncIterator[Any]:
        async with opened(owner) as state:
            whole.state.start()
            try:
                yield state
            finally:
                await services.readers.close()
                await whole.close()

    app.router.lifespan_context = lifespan
    _attach_nicegui(app)


def _pages(readers: PerReader[PageState], services: WebServices) -> APIRouter:
    router = APIRouter()

    def visit(request: Request) -> OpenPage:
        caller = services.access.check(request, WebScope.READ)
        site = readers.of(services.readers.console_of(caller))
        return OpenPage(site.state, site.tables, services, request, caller)

    def overview(request: Request) -> Awaitable[None]:
        return overview_screen(visit(request))

    def agents(request: Request) -> Awaitable[None]:
        return agents_screen(visit(request), AgentsUrl.parse(request.query_params))

    def one_agent(request: Request, name: str) -> Awaitable[None]:
        return agent_screen(visit(request), from_segment(name))

    def classes(request: Request) -> Awaitable[None]:
        return classes_screen(visit(request), ClassesUrl.parse(request.query_params))

    def objects(request: Request, package: str, name: str) -> Awaitable[None]:
        return objects_screen(visit(request), ObjectsUrl.parse(package, name, request.query_params))

    def one_object(request: Request, agent: str, name: str) -> Awaitable[None]:
        return object_screen(visit(request), object_of(agent, name))

    def events(request: Request) -> Awaitable[None]:
        return events_screen(visit(request), EventsUrl.parse(request.query_params))

    def plots(request: Request) -> Awaitable[None]:
        query = request.query_params
        return plots_screen(visit(request), PlotsUrl.parse(query.getlist("v"), query))

    def graph(request: Request) -> Awaitable[None]:
        return graph_screen(visit(request), GraphUrl.parse(request.query_params))

    def report(request: Request) -> Awaitable[None]:
        return report_screen(visit(request), ReportQuestion.parse(request.query_params))

    for path, page in (
        ("/", overview),
        ("/agents", agents),
        ("/agent/{name}", one_agent),
        ("/classes", classes),
        ("/objects/{package}/{name}", objects),
        ("/object/{agent}/{name}", one_object),
        ("/events", events),
        ("/plots", plots),
        ("/graph", graph),
        ("/report", report),
    ):
        ui.page(path, api_router=router, response_timeout=30.0, include_in_schema=False)(page)
    return router


class _Assets(StaticFiles):
    """Style and script, which browsers may keep: their addresses change with their contents."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if response.status_code < 400:
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response


class _NiceGuiFiles(Mount):
    """NiceGUI's own files and websocket, and nothing else: other unknown paths are the application's to answer."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if not scope.get("path", "").startswith(_NICEGUI):
            return Match.NONE, {}
        return super().matches(scope)


def _attach_nicegui(app: FastAPI) -> None:
    favicon = Path(STATIC / "favicon.svg")

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return FileResponse(favicon, headers={"Cache-Control": "public, max-age=86400"})

    ui.run_with(
        app,
        title="QMF",
        favicon=favicon,
        dark=None,
        language="en-US",
        tailwind=False,
        binding_refresh_interval=None,
        reconnect_timeout=_RECONNECT,
        show_welcome_message=False,
    )
    # `run_with` mounts NiceGUI at every path.
    app.router.routes[-1] = _NiceGuiFiles("/", core.app)
