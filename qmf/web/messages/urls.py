"""The URLs of this interface, the headers that carry them, and what its routes have in common. Clients are to follow
URLs that they got, and to build none.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import attrs
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from qmf.web.access.access import WebAccess
from qmf.web.messages.destinations import Destination, DestinationKind
from qmf.web.messages.openapi import problems
from qmf.web.messages.pull_protocol import LinkKind, NextStep
from qmf.web.messages.requests import read_destination
from qmf.web.messages.service import MessageService

#: The parts of paths that name protocols.
AUTO_ACK, ACKNOWLEDGED = "auto-ack", "acknowledged"


@attrs.frozen
class Urls:
    """The URLs of a destination.

    Attributes:
        root: of the server, with a slash at its end.
        destination: the queue or topic.
    """

    root: str
    destination: Destination

    @classmethod
    def of(cls, request: Request, destination: Destination) -> Urls:
        """Under the name by which the client addresses this server."""
        return cls(str(request.base_url), destination)

    @property
    def base(self) -> str:
        """Of the destination."""
        return self.root + self.destination.path

    @property
    def factory(self) -> str:
        """Name of the resource that creates pull consumers."""
        return "pull-consumers" if self.destination.kind is DestinationKind.QUEUE else "pull-subscriptions"

    @property
    def push_factory(self) -> str:
        """Name of the resource that registers push consumers."""
        return "push-consumers" if self.destination.kind is DestinationKind.QUEUE else "push-subscriptions"

    def destination_links(self) -> dict[str, str]:
        """Headers of the destination itself."""
        return {
            "msg-create": f"{self.base}/create",
            "msg-create-with-id": f"{self.base}/create/{{id}}",
            **self.factory_link(),
            f"msg-{self.push_factory}": f"{self.base}/{self.push_factory}",
        }

    def factory_link(self) -> dict[str, str]:
        """The header that names where pull consumers are created."""
        return {f"msg-{self.factory}": f"{self.base}/{self.factory}"}

    def consumer(self, id: str, *, auto_ack: bool) -> str:
        """Of a pull consumer."""
        return f"{self.base}/{self.factory}/{AUTO_ACK if auto_ack else ACKNOWLEDGED}/{quote(id)}"

    def step(self, id: str, step: NextStep) -> dict[str, str]:
        """The headers that tell a client its next step, and where its consumer is."""
        consumer = self.consumer(id, auto_ack=step.kind is LinkKind.CONSUME_NEXT)
        slash = "/" if step.kind is LinkKind.ACKNOWLEDGEMENT else "-"
        return {f"msg-{step.kind.value}": f"{consumer}/{step.kind.value}{slash}{step.number}", "msg-consumer": consumer}


class DestinationRoutes:
    """Routes of queues, or of topics: base class. Their methods are the endpoints, whose docstrings describe them."""

    def __init__(self, kind: DestinationKind, service: MessageService, access: WebAccess) -> None:
        self._kind = kind
        self._service = service
        self._access = access

    @staticmethod
    def _route(
        router: APIRouter,
        call: str,
        endpoint: Callable[..., Awaitable[Response]],
        operation: str,
        summary: str,
        *statuses: int,
        status: int = 200,
        **described: Any,
    ) -> None:
        """Add a route.

        Args:
            router: gets it.
            call: method and path.
            endpoint: answers.
            operation, summary: its id and its name.
            statuses: those of the problems that it may answer with.
            status: of other answers.
            described: more of FastAPI's arguments.
        """
        method, path = call.split(" ", 1)
        described.setdefault("responses", problems(*statuses))
        router.add_api_route(
            path,
            endpoint,
            methods=[method],
            status_code=status,
            operation_id=operation,
            summary=summary,
            response_class=Response,
            **described,
        )

    def _destination(self, request: Request, name: str) -> tuple[Destination, Urls]:
        """The destination that a path names, and its URLs."""
        destination = read_destination(self._kind, name)
        return destination, Urls.of(request, destination)
