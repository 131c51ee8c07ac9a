"""The route ``/metrics``."""

# No postponed annotations: those of routes name what only their function knows.

import asyncio
import contextlib
import time
import zlib
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response, StreamingResponse

from qmf.web.access.caller import Scope
from qmf.web.management.parameters import problems
from qmf.web.metrics.collecting import Collected, collect
from qmf.web.metrics.exposition import OPENMETRICS, TEXT, exposition
from qmf.web.metrics.followed_classes import ClassPatterns, FollowedClasses
from qmf.web.metrics.own import OwnMetrics
from qmf.web.services import WebServices

#: A fast compression: text of metrics becomes a twentieth even so.
_LEVEL = 1


def router(services: WebServices) -> APIRouter:
    """The route; those of an application share `services`."""
    options = services.options.metrics
    followed = FollowedClasses(services.client, ClassPatterns(options.classes), options.interval)
    own = OwnMetrics(services)

    @contextlib.asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(followed.close)
            if options.otlp is not None:
                # Imported here: its libraries are large.
                from qmf.web.metrics.otlp import OtlpExport

                export = OtlpExport(services.client, followed, options)
                export.open()
                stack.push_async_callback(export.close)
            yield

    routes = APIRouter(lifespan=lifespan, tags=["metrics"], responses=problems(503))

    @routes.get(
        "/metrics",
        summary="Values of objects for Prometheus",
        dependencies=[Depends(services.access.require(Scope.READ))],
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
        classes: Annotated[
            list[str], Query(alias="class", max_length=100, description="Patterns of class or package:class")
        ] = [],  # noqa: B006
        family: Annotated[list[str], Query(max_length=100, description="Patterns of names of families")] = [],  # noqa: B006
        with_own: Annotated[
            bool | None, Query(alias="own", description="With what agents and consoles create for themselves")
        ] = None,
    ) -> Response:
        begin = time.perf_counter()
        wants_own = options.own if with_own is None else with_own
        objects = await followed.objects(ClassPatterns(tuple(classes)), own=wants_own)
        found = collect(objects, [*family] or list(options.families), options.limit)
        own.series, own.seconds = found.series, time.perf_counter() - begin
        openmetrics = "application/openmetrics-text" in request.headers.get("accept", "")
        parts = _parts(found, own, openmetrics=openmetrics)
        headers = {"Vary": "Accept, Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            parts = _compressed(parts)
            headers["Content-Encoding"] = "gzip"
        return StreamingResponse(parts, headers=headers, media_type=OPENMETRICS if openmetrics else TEXT)

    return routes


async def _parts(found: Collected, own: OwnMetrics, *, openmetrics: bool) -> AsyncIterator[bytes]:
    for part in exposition(found.families, openmetrics=openmetrics):
        yield part.encode()
        await asyncio.sleep(0)  # others have their turn
    yield own.text(openmetrics=openmetrics)


async def _compressed(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packer = zlib.compressobj(_LEVEL, wbits=31)
    async for part in parts:
        # On a thread: the library works without Python's lock.
        if packed := await asyncio.to_thread(packer.compress, part):
            yield packed
    yield packer.flush()
