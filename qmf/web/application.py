"""`create_application`: puts the parts together as one ASGI application."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qmf._version import __version__
from qmf.web.access import login
from qmf.web.access.guards import Callers, Headers, Origins, RequestLimits
from qmf.web.complete_routes import add_routes
from qmf.web.management import routes as management
from qmf.web.messages import routes as messages
from qmf.web.metrics import routes as metrics
from qmf.web.options import WebOptions
from qmf.web.problems import add_problem_handlers
from qmf.web.reports import routes as reports
from qmf.web.services import WebServices


class _Answered(Exception):
    """The headers are sent: nobody wants the rest."""


class Heads:
    """Has HEAD answered as GET, without the body; a stream ends at once."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] != "http.response.body":
                await send(message)
                return
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            raise _Answered

        try:
            await self.app({**scope, "method": "GET"}, receive, send_head)
        except _Answered:
            return


_DESCRIPTION = """Agents, schemas, objects, methods and events of a QMF bus, and messages of its broker.

Integers from -(2**53 - 1) to 2**53 - 1 are numbers, others strings of digits; times are RFC 3339. Errors are problems
(RFC 9457)."""


def create_application(options: WebOptions, *, services: WebServices | None = None, pages: bool = True) -> FastAPI:
    """The application: pages, REST for management and messages, metrics. Its lifespan opens and closes `services`.

    Args:
        services: what it stands on; None: made from the options.
        pages: with the web console.

    Raises:
        UsersError, TokensError, TlsError: files of the options cannot be used.
    """
    services = services or WebServices(options)
    routers = (
        login.router(services.access, options),
        reports.router(services),
        management.router(services),
        messages.router(services),
        metrics.router(services),
    )

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with services, contextlib.AsyncExitStack() as stack:
            for router in routers:
                await stack.enter_async_context(router.lifespan_context(app))
            yield

    app = FastAPI(
        title="qmf-web",
        version=__version__,
        description=_DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,  # its scripts would come from another server
        redoc_url=None,
        openapi_url=None,
    )
    add_problem_handlers(app)
    for router in routers:
        add_routes(app.router, router)

    @app.get("/healthz", include_in_schema=False)
    async def healthz() -> Response:
        return PlainTextResponse("ok\n" if services.client.connected else "no connection to the broker\n")

    @app.get("/api/openapi.json", include_in_schema=False)
    async def openapi() -> dict[str, object]:
        return app.openapi()

    if pages:
        from qmf.web.pages import mount

        mount(app, services)
    # The last one added is the outermost.
    app.add_middleware(Heads)
    app.add_middleware(Callers, access=services.access)
    app.add_middleware(Origins, options=options, access=services.access)
    app.add_middleware(RequestLimits, limits=options.limits, access=services.access)
    app.add_middleware(Headers, tls=options.tls)
    _describe(app)
    return app


def _head(operation: dict[str, Any]) -> dict[str, Any]:
    """The description of HEAD where there is GET: see `Heads`."""
    responses = {status: {"description": item["description"]} for status, item in operation["responses"].items()}
    return {**operation, "operationId": f"head_{operation['operationId']}", "responses": responses}


def _describe(app: FastAPI) -> None:
    """Add to the description of the interface how clients prove who they are."""

    def openapi() -> dict[str, object]:
        if app.openapi_schema is None:
            found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            for operations in found["paths"].values():
                if "get" in operations:
                    operations["head"] = _head(operations["get"])
            schemes = found.setdefault("components", {}).setdefault("securitySchemes", {})
            schemes["token"] = {"type": "http", "scheme": "bearer"}
            schemes["password"] = {"type": "http", "scheme": "basic"}
            found["security"] = [{"token": []}, {"password": []}, {}]
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
