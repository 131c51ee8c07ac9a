"""Routes of pull consumers. They translate; what happens is `pull_consumers`."""

from __future__ import annotations

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
from qmf.web.messages.urls import ACKNOWLEDGED, AUTO_ACK, Urls
from qmf.web.problems import Problem
from qmf.web.scopes import Scope

Name = Annotated[str, Path(description="name of the queue or topic")]
Id = Annotated[str, Path(description="id of the consumer, from a link")]
Number = Annotated[int, Path(ge=0, le=2**62, description="from a link")]

_PULL = {
    200: {"description": "a message", "content": {"*/*": {}}},
    **problems(400, 404, 410, 412, 503),
}


class PullRoutes:
    """The routes of the pull consumers of queues, or of topics."""

    def __init__(self, kind: DestinationKind, service: MessageService, access: WebAccess) -> None:
        self._kind = kind
        self._service = service
        self._access = access

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        noun = self._kind.noun
        factory = Urls("", Destination(self._kind, "")).factory
        base = f"/{self._kind.value}/{{name}}/{factory}"
        parameters = ["autoAck", "selector", "idle-timeout"]
        if self._kind is DestinationKind.TOPIC:
            parameters += ["durable", "name", "delete-when-idle"]
        router.add_api_route(
            base,
            self.create,
            methods=["POST"],
            status_code=201,
            summary=f"Create a pull consumer of a {noun}",
            operation_id=f"create_{noun}_consumer",
            responses=problems(400, 404, 409, 415, 503),
            openapi_extra=form(*parameters),
            response_class=Response,
        )
        for protocol in (AUTO_ACK, ACKNOWLEDGED):
            self._add_consumer(router, f"{base}/{protocol}/{{id}}", protocol)
        router.add_api_route(
            f"{base}/{ACKNOWLEDGED}/{{id}}/acknowledgement/{{number}}",
            self.acknowledge,
            methods=["POST"],
            summary="Say what became of a message",
            operation_id=f"acknowledge_{noun}_message",
            responses=problems(400, 404, 410, 412, 415, 503),
            openapi_extra=form("acknowledge"),
            response_class=Response,
        )

    def _add_consumer(self, router: APIRouter, consumer: str, protocol: str) -> None:
        """Add the routes of consumers of a protocol, at the path `consumer`."""
        noun = self._kind.noun
        prefix = protocol.replace("-", "_")
        auto_ack = protocol == AUTO_ACK
        router.add_api_route(
            consumer,
            self.state if auto_ack else self.acknowledged_state,
            methods=["GET"],
            summary="The next step of a pull consumer",
            operation_id=f"get_{prefix}_{noun}_consumer",
            responses=problems(400, 404, 410, 503),
            response_class=Response,
        )
        router.add_api_route(
            consumer,
            self.delete if auto_ack else self.delete_acknowledged,
            methods=["DELETE"],
            status_code=204,
            summary="End a pull consumer",
            operation_id=f"delete_{prefix}_{noun}_consumer",
            responses=problems(400, 404, 410, 503),
            response_class=Response,
        )
        router.add_api_route(
            f"{consumer}/{'consume-next' if auto_ack else 'acknowledge-next'}-{{number}}",
            self.consume_next if auto_ack else self.acknowledge_next,
            methods=["POST"],
            summary="Pull the next message",
            operation_id=f"{prefix}_{noun}_next",
            responses=_PULL,
            response_class=Response,
        )

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

    async def state(self, request: Request, name: Name, id: Id) -> Response:
        """The link for the next step of an auto-acknowledge consumer."""
        return await self._state(request, name, id, auto_ack=True)

    async def acknowledged_state(self, request: Request, name: Name, id: Id) -> Response:
        """The link for the next step of a consumer with acknowledgement: to pull, or to acknowledge."""
        return await self._state(request, name, id, auto_ack=False)

    async def _state(self, request: Request, name: str, id: str, *, auto_ack: bool) -> Response:
        destination, urls = self._destination(request, name)
        with as_problems(urls.factory_link()):
            consumer = await self._find(destination, id, auto_ack=auto_ack)
            try:
                headers = urls.step(consumer.id, await consumer.next_step())
            finally:
                self._service.consumers.on_used(consumer)
        return JSONResponse({"destination": str(destination), "links": headers}, headers=headers)

    async def consume_next(self, request: Request, name: Name, id: Id, number: Number) -> Response:
        """Pull with auto-acknowledge: the message counts as acknowledged. A repeated post gets the same message."""
        return await self._pull(request, name, id, number, auto_ack=True)

    async def acknowledge_next(self, request: Request, name: Name, id: Id, number: Number) -> Response:
        """Pull a message that has to be acknowledged. A repeated post gets the same message."""
        return await self._pull(request, name, id, number, auto_ack=False)

    async def _pull(self, request: Request, name: str, id: str, number: int, *, auto_ack: bool) -> Response:
        destination, urls = self._destination(request, name)
        wait = requests.read_wait(request)
        with as_problems(urls.factory_link()):
            consumer = await self._find(destination, id, auto_ack=auto_ack)
            try:
                answer = await consumer.pull(number, wait)
            finally:
                self._service.consumers.on_used(consumer)
        return self._answer(urls, consumer, answer)

    async def acknowledge(self, request: Request, name: Name, id: Id, number: Number) -> Response:
        """Acknowledge a message (`acknowledge=true`), or give it back (`acknowledge=false`)."""
        destination, urls = self._destination(request, name)
        accept = requests.read_boolean(await requests.read_form(request, "acknowledge"), "acknowledge", None)
        with as_problems(urls.factory_link()):
            consumer = await self._find(destination, id, auto_ack=False)
            try:
                answer = await consumer.acknowledge(number, accept=accept)
            finally:
                self._service.consumers.on_used(consumer)
        return self._answer(urls, consumer, answer)

    async def delete(self, request: Request, name: Name, id: Id) -> Response:
        """End an auto-acknowledge consumer, with its subscription."""
        return await self._delete(request, name, id, auto_ack=True)

    async def delete_acknowledged(self, request: Request, name: Name, id: Id) -> Response:
        """End a consumer with acknowledgement, with its subscription; a message not acknowledged goes back."""
        return await self._delete(request, name, id, auto_ack=False)

    async def _delete(self, request: Request, name: str, id: str, *, auto_ack: bool) -> Response:
        destination, urls = self._destination(request, name)
        caller = self._access.check(request, Scope.MESSAGES)
        with (
            self._access.audit.attempt(caller, "end consumer", destination=str(destination), consumer=id),
            as_problems(urls.factory_link()),
        ):
            consumer = await self._find(destination, id, auto_ack=auto_ack)
            await self._service.consumers.delete(consumer)
        return Response(status_code=204)

    def _destination(self, request: Request, name: str) -> tuple[Destination, Urls]:
        destination = requests.read_destination(self._kind, name)
        return destination, Urls.of(request, destination)

    async def _find(self, destination: Destination, id: str, *, auto_ack: bool) -> PullConsumer:
        consumer = await self._service.consumers.find(destination, id, auto_ack=auto_ack)
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
