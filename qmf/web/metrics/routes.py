"""The route ``/metrics``."""

# No postponed annotations: those of routes name what only their function knows.

import contextlib
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from qmf.web.consoles import WebConsole
from qmf.web.late_routes import LateRoute
from qmf.web.management.parameters import no_unknown_parameters, problems
from qmf.web.metrics.collecting import Collected, collect
from qmf.web.metrics.exposition import OPENMETRICS, TEXT, exposition
from qmf.web.metrics.followed_classes import ClassPatterns, FollowedClasses
from qmf.web.metrics.own import OwnMetrics
from qmf.web.parts import PartsResponse, gzip_parts, text_parts
from qmf.web.readers.readers import PerReader
from qmf.web.scopes import Caller, Scope
from qmf.web.services import WebServices
from qmf.web.sharing import SharedWork

#: Seconds for which the same text is the answer to all who ask for it.
_MAX_AGE = 1.0


def router(services: WebServices) -> APIRouter:
    """The route; those of an application share `services`."""
    options = services.options.metrics
    whole = _Metrics(services, services.client)
    readers = PerReader(services.readers, whole, lambda console: _Metrics(services, console), _Metrics.close)

    @contextlib.asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(whole.close)
            if options.otlp is not None:
                # Imported here: its libraries are large.
                from qmf.web.metrics.otlp import OtlpExport

                export = OtlpExport(services.client, whole.followed, options)
                export.open()
                stack.push_async_callback(export.close)
            yield

    routes = APIRouter(lifespan=lifespan, tags=["metrics"], responses=problems(503), route_class=LateRoute)

    @routes.get(
        "/metrics",
        summary="Values of objects for Prometheus",
        dependencies=[Depends(no_unknown_parameters)],
        response_class=Response,
        responses={
            200: {
                "content": {kind: {"schema": {"type": "string"}} for kind in (OPENMETRICS, TEXT)},
                "description": "Metrics; OpenMetrics where `Accept` asks for it",
            }
        },
    )
    async def metrics(
        request: Request,
        caller: Annotated[Caller, Depends(services.access.require(Scope.READ))],
        classes: Annotated[
            list[str], Query(alias="class", max_length=100, description="Patterns of class or package:class")
        ] = [],  # noqa: B006
        family: Annotated[list[str], Query(max_length=100, description="Patterns of names of families")] = [],  # noqa: B006
        with_own: Annotated[
            bool | None, Query(alias="own", description="With what agents and consoles create for themselves")
        ] = None,
    ) -> Response:
        wanted = (
            ClassPatterns(tuple(classes)),
            (*family,) or options.families,
            options.own if with_own is None else with_own,
            "application/openmetrics-text" in request.headers.get("accept", ""),
            "gzip" in request.headers.get("accept-encoding", ""),
        )
        parts = await readers.of(services.readers.console_of(caller)).get(*wanted)
        *_, openmetrics, packed = wanted
        headers = {"Vary": "Accept, Accept-Encoding", **({"Content-Encoding": "gzip"} if packed else {})}
        return PartsResponse(parts, OPENMETRICS if openmetrics else TEXT, headers)

    return routes


class _Metrics:
    """The metrics of those who have the same console."""

    def __init__(self, services: WebServices, console: WebConsole) -> None:
        options = services.options.metrics
        self.followed = FollowedClasses(console, ClassPatterns(options.classes), options.interval)
        self._services = services
        self._own = OwnMetrics(services, console)
        self._scrapes: SharedWork[Sequence[bytes]] = SharedWork(max_age=_MAX_AGE)

    async def get(
        self, classes: ClassPatterns, families: Sequence[str], own_objects: bool, openmetrics: bool, packed: bool
    ) -> Sequence[bytes]:
        """The text, made once a moment for all who ask for the same."""
        wanted = classes, families, own_objects, openmetrics, packed
        return await self._scrapes.get(wanted, lambda: self._scrape(*wanted))

    async def close(self) -> None:
        """End it."""
        await self._scrapes.close()
        await self.followed.close()

    async def _scrape(
        self, classes: ClassPatterns, families: Sequence[str], own_objects: bool, openmetrics: bool, packed: bool
    ) -> Sequence[bytes]:
        own = self._own
        async with self._services.work.turn():
            begin = time.perf_counter()
            objects = await self.followed.objects(classes, own=own_objects)
            found = collect(objects, families, self._services.options.metrics.limit)
            own.series, own.seconds = found.series, time.perf_counter() - begin
            own.left_out, own.collecting = found.left_out, self.followed.collecting
            parts = text_parts(_texts(found, own, openmetrics=openmetrics))
            return [part async for part in (gzip_parts(parts) if packed else parts)]


def _texts(found: Collected, own: OwnMetrics, *, openmetrics: bool) -> Iterator[str]:
    yield from exposition(found.families, openmetrics=openmetrics)
    yield own.text(openmetrics=openmetrics)
