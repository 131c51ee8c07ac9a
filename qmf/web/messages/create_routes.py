"""Routes of queues and topics themselves, and of creating messages."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from qmf.messaging import Message
from qmf.web.messages import contents, requests
from qmf.web.messages.destinations import DestinationKind
from qmf.web.messages.errors import as_problems
from qmf.web.messages.openapi import creation
from qmf.web.messages.pull_routes import Name
from qmf.web.messages.urls import DestinationRoutes

MessageId = Annotated[str, Path(description="id that the client gives the message")]


class CreateRoutes(DestinationRoutes):
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
