"""The routes of messages. The service behind them is closed with the application."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from enum import Enum

from fastapi import APIRouter, Depends

from qmf.web.complete_routes import add_routes
from qmf.web.messages.create_routes import CreateRoutes
from qmf.web.messages.destinations import DestinationKind
from qmf.web.messages.pull_routes import PullRoutes
from qmf.web.messages.push_routes import PushRoutes
from qmf.web.messages.requests import no_query
from qmf.web.messages.rights import DestinationRights, may_push
from qmf.web.messages.service import CONTAINER, MessageService
from qmf.web.services import WebServices

#: Seconds between attempts to connect again.
_FIRST, _LAST = 0.1, 5.0
#: Seconds after which a silent broker is asked for a sign of life. It learns of a dead server by this as well.
HEARTBEAT = 10.0


def router(services: WebServices, *, service: MessageService | None = None) -> APIRouter:
    """The routes; those of an application share `services`."""
    used = service or MessageService(
        lambda: services.messaging(
            reconnect=True,
            reconnect_interval_min=_FIRST,
            reconnect_interval_max=_LAST,
            heartbeat=HEARTBEAT,
            container_id=CONTAINER,
            client_properties={"qpid.client_process": "qmf-web"},
        ),
        push_dir=services.options.push_dir,
        push_to=services.options.push_hosts,
        may_push=lambda registration: may_push(services.access, registration.owner, registration.destination),
    )

    @contextlib.asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        try:
            used.open()
            yield
        finally:
            await used.close()

    tags: list[str | Enum] = ["messages"]
    found = APIRouter(lifespan=lifespan)
    for kind in DestinationKind:
        may = Depends(DestinationRights(kind, services.access))
        creations = APIRouter(tags=tags, dependencies=[may])
        CreateRoutes(kind, used, services.access).add_to(creations)
        add_routes(found, creations)
        consumers = APIRouter(tags=tags, dependencies=[may, Depends(no_query)])
        PullRoutes(kind, used, services.access).add_to(consumers)
        PushRoutes(kind, used, services.access).add_to(consumers)
        add_routes(found, consumers)
    return found
