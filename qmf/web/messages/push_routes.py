"""Routes of push consumers."""

from __future__ import annotations

import asyncio
import uuid
from typing import Annotated

import attrs
from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import Response

from qmf.web.messages.destinations import Destination
from qmf.web.messages.errors import RETRY_AFTER, as_problems
from qmf.web.messages.openapi import registration
from qmf.web.messages.pull_routes import Name
from qmf.web.messages.push.consumers import PushConsumer, RegistrationExists
from qmf.web.messages.push.registration import (
    PushRegistration,
    RegistrationError,
    read_registration,
    registration_owner,
    write_registration,
)
from qmf.web.messages.push.store import PushStoreError
from qmf.web.messages.push.target import may_push_to
from qmf.web.messages.urls import DestinationRoutes, Urls
from qmf.web.problems import Problem
from qmf.web.scopes import Scope

_XML = "application/xml"

PushId = Annotated[str, Path(description="id of the registration, from its Location")]


class PushRoutes(DestinationRoutes):
    """The routes of the push consumers of queues, or of topics."""

    def add_to(self, router: APIRouter) -> None:
        """Add the routes."""
        noun = self._kind.noun
        base = f"/{self._kind.value}/{{name}}/{Urls('', Destination(self._kind, '')).push_factory}"
        self._route(
            router,
            f"POST {base}",
            self.create,
            f"create_{noun}_push",
            f"Have the messages of a {noun} pushed to a URL",
            *(400, 403, 404, 409, 415, 503),
            status=201,
            openapi_extra=registration(),
        )
        statuses = (400, 404, 503)
        one, what = f"{base}/{{id}}", "a push registration"
        self._route(router, f"GET {one}", self.read, f"read_{noun}_push", f"Read {what}", *statuses)
        self._route(
            router, f"DELETE {one}", self.delete, f"delete_{noun}_push", f"Delete {what}", *statuses, status=204
        )

    async def create(self, request: Request, name: Name) -> Response:
        """Register a URL, by an XML document."""
        destination, urls = self._destination(request, name)
        caller = self._access.check(request, Scope.MESSAGES)
        with self._access.audit.attempt(caller, "push", destination=str(destination)) as record:
            owner = registration_owner(caller.name, caller.proof, caller.groups)
            wanted = attrs.evolve(await self._read_registration(request, destination), owner=owner)
            record |= {"to": wanted.href, "registration": wanted.id, "durable": wanted.durable}
            await self._add(wanted)
        return Response(status_code=201, headers={"Location": f"{urls.base}/{urls.push_factory}/{wanted.id}"})

    async def _read_registration(self, request: Request, destination: Destination) -> PushRegistration:
        given = request.headers.get("content-type", _XML).partition(";")[0].strip().lower()
        if given not in (_XML, "text/xml") and not given.endswith("+xml"):
            raise Problem(415, f"the body must be XML ({_XML}), not {given[:100]!r}")
        try:
            return read_registration(await request.body(), uuid.uuid4().hex, destination)
        except RegistrationError as error:
            raise Problem(400, str(error)) from error

    async def _add(self, wanted: PushRegistration) -> None:
        push = self._service.push
        if wanted.durable and not push.durable:
            raise Problem(409, "a durable registration needs a folder: start the server with --push-dir")
        if not may_push_to(wanted.href, push.hosts):
            raise Problem(403, f"{wanted.href[:200]!r} is no host that may be pushed to; --push-to names them")
        if len(push) >= push.limit:
            raise Problem(503, f"there are {push.limit} registrations, which is the limit", headers=_RETRY)
        with as_problems():
            try:
                await push.add(wanted)
            except RegistrationExists as error:
                raise Problem(409, str(error)) from error
            except PushStoreError as error:
                raise Problem(500, str(error)) from error

    async def read(self, request: Request, name: Name, id: PushId) -> Response:
        """A registration as XML, without passwords; whether it is enabled, and how it goes, in the headers."""
        consumer = self._find(request, name, id)
        headers = {"msg-pushed": str(consumer.pushed)}
        if consumer.problem is not None:
            headers["msg-push-problem"] = consumer.problem.encode("ascii", "replace").decode()[:200]
        return Response(write_registration(consumer.registration, secrets=False), 200, headers, _XML)

    async def delete(self, request: Request, name: Name, id: PushId) -> Response:
        """End a registration, with its subscription."""
        caller = self._access.check(request, Scope.MESSAGES)
        destination, _ = self._destination(request, name)
        with self._access.audit.attempt(caller, "end push", destination=str(destination), registration=id):
            consumer = self._find(request, name, id)
            try:
                await asyncio.shield(self._service.push.delete(consumer))
            except PushStoreError as error:
                raise Problem(500, str(error)) from error
        return Response(status_code=204)

    def _find(self, request: Request, name: str, id: str) -> PushConsumer:
        destination, _ = self._destination(request, name)
        found = self._service.push.find(destination, id)
        if found is None:
            raise Problem(404, f"{destination} has no push registration {id[:100]!r}")
        return found


_RETRY = {"Retry-After": str(RETRY_AFTER)}
