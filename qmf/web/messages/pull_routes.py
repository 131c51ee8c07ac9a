"""Routes of pull consumers. They translate; what happens is `pull_consumers`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Annotated

import attrs
from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from qmf.web.access.access import WebAccess
from qmf.web.messages import contents, requests
from qmf.web.messages.destinations import Destination, DestinationKind
from qmf.web.messages.errors import RETRY_AFTER, as_problems
from qmf.web.messages.openapi import form, problems
from qmf.web.messages.pull_consumers import PullAnswer, PullConsumer, PullOutcome
from qmf.web.messages.pull_protocol import LinkKind
from qmf.web.messages.service import MessageService
from qmf.web.messages.urls import ACKNOWLEDGED, AUTO_ACK, DestinationRoutes, Urls
from qmf.web.problems import Problem
from qmf.web.scopes import Scope

Name = Annotated[str, Path(description="name of the queue or topic")]
Id = Annotated[str, Path(description="id of the consumer, from a link")]
Number = Annotated[int, Path(ge=0, le=2**62, description="from a link")]

_PULL = {
    200: {"description": "a message", "content": {"*/*": {}}},
    **problems(400, 404, 410, 412, 503),
}


#: What the routes of consumers without and with acknowledgement do, for their description.
_DESCRIBED = {
    "state": (
        "The link for the next step of a consumer with acknowledgement: to pull, or to acknowledge.",
        "The link for the next step of an auto-acknowledge consumer.",
    ),
    "delete": (
        "End a consumer with acknowledgement, with its subscription; a message not acknowledged goes back.",
        "End an auto-acknowledge consumer, with its subscription.",
    ),
    "pull": (
        "Pull a message that has to be acknowledged. A repeated post gets the same message.",
        "Pull with auto-acknowledge: the message counts as acknowledged. A repeated post gets the same message.",
    ),
}


class PullRoutes(DestinationRoutes):
    """The routes of the pull consumers of queues, or of topics."""

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        noun = self._kind.noun
        base = f"/{self._kind.value}/{{name}}/{Urls('', Destination(self._kind, '')).factory}"
        parameters = ["autoAck", "selector", "idle-timeout"]
        if self._kind is DestinationKind.TOPIC:
            parameters += ["durable", "name", "delete-when-idle"]
        self._route(
            router,
            f"POST {base}",
            self.create,
            f"create_{noun}_consumer",
            f"Create a pull consumer of a {noun}",
            *(400, 404, 409, 415, 503),
            status=201,
            openapi_extra=form(*parameters),
        )
        for auto_ack in (True, False):
            _ConsumerRoutes(self._kind, self._service, self._access, auto_ack=auto_ack).add_to(router, base)

    async def create(self, request: Request, name: Name) -> Response:
        """Create a consumer; of a topic with the name of one that exists, find it."""
        destination, urls = self._destination(request, name)
        caller = self._access.check(request, Scope.MESSAGES)
        options = await requests.read_consumer_options(request, destination)
        arguments = attrs.asdict(options, filter=lambda _field, value: value is not None)
        with (
            self._access.audit.attempt(caller, "consume", destination=str(destination), arguments=arguments) as record,
            as_problems(urls.factory_link()),
        ):
            consumer = await self._service.consumers.create(destination, options)
            record["consumer"] = consumer.id
            step = await consumer.next_step()
        location = urls.consumer(consumer.id, auto_ack=consumer.options.auto_ack)
        return Response(status_code=201, headers={"Location": location, **urls.step(consumer.id, step)})


class _ConsumerRoutes(DestinationRoutes):
    """The routes of pull consumers of a protocol: with auto-acknowledge, or with acknowledgement."""

    def __init__(self, kind: DestinationKind, service: MessageService, access: WebAccess, *, auto_ack: bool) -> None:
        super().__init__(kind, service, access)
        self._auto_ack = auto_ack

    def add_to(self, router: APIRouter, base: str) -> None:
        """Add the routes; `base` is where consumers are created."""
        noun, protocol = self._kind.noun, AUTO_ACK if self._auto_ack else ACKNOWLEDGED
        one, prefix = f"{base}/{protocol}/{{id}}", protocol.replace("-", "_")
        described = {name: texts[self._auto_ack] for name, texts in _DESCRIBED.items()}
        self._route(
            router,
            f"GET {one}",
            self.state,
            f"get_{prefix}_{noun}_consumer",
            "The next step of a pull consumer",
            *(400, 404, 410, 503),
            description=described["state"],
        )
        self._route(
            router,
            f"DELETE {one}",
            self.delete,
            f"delete_{prefix}_{noun}_consumer",
            "End a pull consumer",
            *(400, 404, 410, 503),
            status=204,
            description=described["delete"],
        )
        self._route(
            router,
            f"POST {one}/{'consume-next' if self._auto_ack else 'acknowledge-next'}-{{number}}",
            self.pull,
            f"{prefix}_{noun}_next",
            "Pull the next message",
            responses=_PULL,
            description=described["pull"],
        )
        if not self._auto_ack:
            self._route(
                router,
                f"POST {one}/acknowledgement/{{number}}",
                self.acknowledge,
                f"acknowledge_{noun}_message",
                "Say what became of a message",
                *(400, 404, 410, 412, 415, 503),
                openapi_extra=form("acknowledge"),
            )

    async def state(self, request: Request, name: Name, id: Id) -> Response:
        """The link for the next step."""
        async with self._consumer_of(request, name, id) as (urls, consumer):
            headers = urls.step(consumer.id, await consumer.next_step())
        return JSONResponse({"destination": str(urls.destination), "links": headers}, headers=headers)

    async def pull(self, request: Request, name: Name, id: Id, number: Number) -> Response:
        """Pull the next message."""
        self._destination(request, name)  # its mistakes are told first
        wait = requests.read_wait(request)
        async with self._consumer_of(request, name, id) as (urls, consumer):
            answer = await consumer.pull(number, wait)
        return self._answer(urls, consumer, answer)

    async def acknowledge(self, request: Request, name: Name, id: Id, number: Number) -> Response:
        """Acknowledge a message (`acknowledge=true`), or give it back (`acknowledge=false`)."""
        self._destination(request, name)
        accept = requests.read_boolean(await requests.read_form(request, "acknowledge"), "acknowledge", None)
        async with self._consumer_of(request, name, id) as (urls, consumer):
            answer = await consumer.acknowledge(number, accept=accept)
        return self._answer(urls, consumer, answer)

    async def delete(self, request: Request, name: Name, id: Id) -> Response:
        """End a consumer."""
        destination, urls = self._destination(request, name)
        caller = self._access.check(request, Scope.MESSAGES)
        with (
            self._access.audit.attempt(caller, "end consumer", destination=str(destination), consumer=id),
            as_problems(urls.factory_link()),
        ):
            await self._service.consumers.delete(await self._find(destination, id))
        return Response(status_code=204)

    @contextlib.asynccontextmanager
    async def _consumer_of(self, request: Request, name: str, id: str) -> AsyncIterator[tuple[Urls, PullConsumer]]:
        """A consumer that a request is about: its idle time begins at the end of the block. Errors become problems."""
        destination, urls = self._destination(request, name)
        with as_problems(urls.factory_link()):
            consumer = await self._find(destination, id)
            try:
                yield urls, consumer
            finally:
                self._service.consumers.on_used(consumer)

    async def _find(self, destination: Destination, id: str) -> PullConsumer:
        consumer = await self._service.consumers.find(destination, id, auto_ack=self._auto_ack)
        if consumer is None:
            raise Problem(404, f"{destination} has no consumer {id[:100]!r}")
        return consumer

    @staticmethod
    def _answer(urls: Urls, consumer: PullConsumer, answer: PullAnswer) -> Response:
        headers = urls.step(consumer.id, answer.next_step)
        match answer.outcome:
            case PullOutcome.MESSAGE:
                assert answer.message is not None
                found = contents.to_http(answer.message)
                return Response(found.body, 200, {**found.headers, **headers, "content-type": found.content_type})
            case PullOutcome.SETTLED:
                return Response(status_code=200, headers=headers)
            case PullOutcome.EMPTY:
                headers["Retry-After"] = str(RETRY_AFTER)
                return Problem(503, f"{urls.destination} has no message", headers=headers).response()
        what = "the link is not the one of the next step"
        if answer.next_step.kind is LinkKind.ACKNOWLEDGE_NEXT:
            what += "; a message that was not acknowledged has gone back, if there was one"
        name = answer.next_step.kind.value
        return Problem(412, f"{what}: use msg-{name}", headers=headers).response()
