"""The routes of messages, and who may use which. The service behind them is closed with the application."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator
from enum import Enum
from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response

from qmf.messaging import Message
from qmf.web.access.access import WebAccess
from qmf.web.complete_routes import add_routes
from qmf.web.late_routes import LateRoute
from qmf.web.messages import contents, requests
from qmf.web.messages.destinations import Destination, DestinationKind
from qmf.web.messages.errors import as_problems
from qmf.web.messages.openapi import creation
from qmf.web.messages.pull_routes import Name, PullRoutes
from qmf.web.messages.push_routes import PushRoutes
from qmf.web.messages.requests import no_query, read_destination
from qmf.web.messages.service import CONTAINER, MessageService
from qmf.web.messages.urls import DestinationRoutes
from qmf.web.problems import Problem
from qmf.web.scopes import Caller, Scope
from qmf.web.services import WebServices

MessageId = Annotated[str, Path(description="id that the client gives the message")]


class _CreateRoutes(DestinationRoutes):
    """The routes of queues, or of topics."""

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        noun, base = self._kind.noun, f"/{self._kind.value}/{{name}}"
        self._route(router, f"GET {base}", self.links, f"get_{noun}_links", f"The links of a {noun}", 404, 503)
        for path, endpoint, name in (
            ("create", self.create, "message"),
            ("create/{id}", self.create_once, "message_once"),
        ):
            self._route(
                router,
                f"POST {base}/{path}",
                endpoint,
                f"create_{noun}_{name}",
                f"Create a message in a {noun}",
                *(400, 404, 413, 503),
                status=201,
                openapi_extra=creation(),
            )

    async def links(self, request: Request, name: Name) -> Response:
        """Where messages are created, and consumers of them: in the headers, and as JSON."""
        destination, urls = self._destination(request, name)
        with as_problems():
            await self._service.links.check(destination)
        headers = urls.destination_links()
        return JSONResponse({"destination": str(destination), "links": headers}, headers=headers)

    async def create(self, request: Request, name: Name) -> Response:
        """Create a message from the body. Repeated, it creates another."""
        destination, urls = self._destination(request, name)
        message = await self._message(request)
        with as_problems():
            await self._service.links.send(destination, message)
        return Response(status_code=201, headers={"msg-create-next": f"{urls.base}/create"})

    async def create_once(self, request: Request, name: Name, id: MessageId) -> Response:
        """Create a message unless one with this id was created before."""
        destination, urls = self._destination(request, name)
        given = requests.read_creation_id(id)
        message = await self._message(request, given)
        with as_problems():
            await self._service.creations.create(destination, given, message)
        return Response(status_code=201, headers={"msg-create-next": f"{urls.base}/create/{uuid.uuid4().hex}"})

    async def _message(self, request: Request, id: str | None = None) -> Message:
        delivery = requests.read_delivery(request)
        message = contents.to_message(await request.body(), request.headers.items(), delivery, id)
        if self._kind is DestinationKind.TOPIC:
            # RabbitMQ 3 ends the session when a message to a topic exchange has none.
            message.subject = ""
        return message


def _may_push(access: WebAccess, owner: Caller | None, destination: Destination) -> bool:
    """Whether the owner of a push registration may still have the messages; without one, who wrote its file may."""
    if owner is None:
        return True
    topic = destination.kind is DestinationKind.TOPIC
    return access.may_still(owner, Scope.MESSAGES) and access.rules.may_consume(owner, destination.name, topic=topic)


class _DestinationRights:
    """A dependency of all routes of the queues, or of the topics: the caller may do there what the path says.

    It is checked before anybody looks whether there is such a queue or topic, so that names cannot be probed.
    """

    def __init__(self, kind: DestinationKind, access: WebAccess) -> None:
        self._kind = kind
        self._access = access

    async def __call__(self, connection: HTTPConnection) -> None:
        """Check the caller of a request.

        Raises:
            Problem: 401, unknown; 403, the scope is missing, or the rules deny it.
        """
        caller = self._access.check(connection, Scope.MESSAGES)
        if self._access.rules.current is None:
            return
        destination = read_destination(self._kind, str(connection.path_params["name"]))
        rules, topic = self._access.rules, self._kind is DestinationKind.TOPIC
        may_send = rules.may_send(caller, destination.name, topic=topic)
        may_consume = rules.may_consume(caller, destination.name, topic=topic)
        # The part behind the name: nothing, "create", or where consumers are made.
        part = connection.url.path.split("/", 4)[3:4]
        if not part:
            done, allowed = "use", may_send or may_consume
        elif part[0] == "create":
            done, allowed = "send to", may_send
        else:
            done, allowed = "consume from", may_consume
        if not allowed:
            reason = f"{caller.client} may not {done} {destination}: the rules deny it"
            self._access.audit.log_refused(
                "request", name=caller.name, address=caller.address, reason=reason, path=connection.url.path
            )
            raise Problem(403, reason)


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
        may_push=lambda registration: _may_push(services.access, registration.owner, registration.destination),
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
        may = Depends(_DestinationRights(kind, services.access))
        creations = APIRouter(tags=tags, dependencies=[may], route_class=LateRoute)
        _CreateRoutes(kind, used, services.access).add_to(creations)
        add_routes(found, creations)
        consumers = APIRouter(tags=tags, dependencies=[may, Depends(no_query)], route_class=LateRoute)
        PullRoutes(kind, used, services.access).add_to(consumers)
        PushRoutes(kind, used, services.access).add_to(consumers)
        add_routes(found, consumers)
    return found
