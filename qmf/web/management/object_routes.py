"""Routes for objects: queries, one object, its references, its properties, its methods."""

# No postponed annotations: those of routes name what only their function knows.

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlencode

import attrs
from fastapi import APIRouter, Body, Depends, Header, Query, Request, Response

from qmf.console.aio import RemoteObject
from qmf.errors import QmfError
from qmf.schema import ClassSchema, Kind, Property, Statistic
from qmf.views.references import may_refer, reference_members
from qmf.views.references import references as references_of
from qmf.web.access.rules import SET_PROPERTIES
from qmf.web.addresses import API, object_href
from qmf.web.consoles import WebConsole
from qmf.web.json_values import json_bytes, reference
from qmf.web.management import calls
from qmf.web.management.job_routes import job_json, job_location
from qmf.web.management.managements import Managements, ReadingCaller
from qmf.web.management.ordering import ObjectOrdering
from qmf.web.management.parameters import (
    AGENT_PROBLEMS,
    BODY_PROBLEMS,
    AgentName,
    MethodName,
    ObjectName,
    Timeout,
    api_router,
    name,
    problems,
)
from qmf.web.management.schema_routes import failures_json
from qmf.web.management.selection import ClassSelection, Fields, check_fields, fields_of, read_fields, selection
from qmf.web.parts import PartsResponse, parts_of
from qmf.web.scopes import Scope


@attrs.frozen
class Referrer:
    """An object that names another one.

    Attributes:
        property: by which property or statistic.
        object: the object.
    """

    property: str
    object: RemoteObject


async def incoming(
    client: WebConsole, obj: RemoteObject, timeout: float | None
) -> tuple[list[Referrer], dict[str, str]]:
    """The objects of the same agent that name an object; `timeout`: seconds for each request.

    Returns:
        them, and the errors of classes that could not be asked for, by class.
    """
    keys = [key for key in await client.classes(agent=obj.agent, timeout=timeout) if key.kind is Kind.DATA]
    schemas = await asyncio.gather(*(client.schema(key) for key in keys), return_exceptions=True)
    failures = {str(key): str(error) for key, error in zip(keys, schemas, strict=True) if isinstance(error, QmfError)}
    wanted = [
        (schema, item)
        for schema in schemas
        if isinstance(schema, ClassSchema)
        for item in reference_members(schema)
        if may_refer(schema, item, obj.class_key)
    ]

    async def ask(schema: ClassSchema, item: Property | Statistic) -> list[Referrer]:
        found = await client.objects(
            class_key=schema.key, agent=obj.agent, where={item.name: obj.object_id}, timeout=timeout
        )
        return [Referrer(item.name, other) for other in found]

    answers = await asyncio.gather(*(ask(*each) for each in wanted), return_exceptions=True)
    found: list[Referrer] = []
    for (schema, _), answer in zip(wanted, answers, strict=True):
        if isinstance(answer, QmfError):
            failures[str(schema.key)] = str(answer)
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found += answer
    return found, failures


#: Objects in a page where nothing is said.
DEFAULT_PAGE = 500

Sort = Annotated[
    str | None,
    Query(
        max_length=1000, description="Order: names of values separated by commas; `-` in front for the greatest first"
    ),
]

_WAIT = re.compile(r"\bwait=(\d{1,3})\b")


def _json(content: object, headers: Mapping[str, str] | None = None) -> Response:
    return Response(json_bytes(content), media_type="application/json", headers=dict(headers or {}))


def router(managements: Managements) -> APIRouter:
    """The routes."""
    services = managements.services
    access = services.access
    routes = api_router("objects", *AGENT_PROBLEMS)
    Reading = Annotated[ReadingCaller, Depends(managements.require(Scope.READ))]
    largest = services.limits.page

    @routes.get("/objects", summary="Objects of a class, page by page")
    async def objects(
        request: Request,
        reader: Reading,
        chosen: Annotated[ClassSelection, Depends(selection)],
        fields: Fields = None,
        sort: Sort = None,
        limit: Annotated[int, Query(ge=1, le=largest)] = min(DEFAULT_PAGE, largest),
        cursor: Annotated[str | None, Query(max_length=20_000, description="From `next` of the page before")] = None,
        timeout: Timeout = None,
    ) -> Response:
        management = reader.management
        arguments, names, order = chosen.arguments(), read_fields(fields), ObjectOrdering.parse(sort)

        async def work() -> tuple[Sequence[bytes], str | None]:
            async with services.work.turn():
                page = await management.page(chosen, arguments, cursor, limit, order, timeout)
                wanted = (*(names or ()), *order.names)
                if page.objects:
                    check_fields(list(page.objects), wanted)
                elif not page.total and not page.failures:
                    await management.check(chosen, wanted)
                following = None
                if page.next is not None:
                    query = [(key, value) for key, value in request.query_params.multi_items() if key != "cursor"]
                    following = f"{API}/objects?{urlencode([*query, ('cursor', page.next)])}"
                content = {
                    "objects": [management.writer.json(obj, fields_of(obj, names)) for obj in page.objects],
                    "total": page.total,
                    "next": following,
                    "failures": failures_json(page.failures),
                }
                return parts_of(json_bytes(content)), following

        parts, following = await management.lists.get(str(request.query_params), work)
        headers = {} if following is None else {"Link": f'<{following}>; rel="next"'}
        return PartsResponse(parts, "application/json", headers)

    where = "/agents/{agent}/objects/{object_name}"

    @routes.get(where, summary="An object")
    async def one(
        reader: Reading, agent: AgentName, object_name: ObjectName, fields: Fields = None, timeout: Timeout = None
    ) -> Response:
        found = await reader.management.object(name(agent), name(object_name), timeout)
        names = read_fields(fields)
        check_fields([found], names or ())
        return _json(reader.management.writer.json(found, names))

    @routes.get(f"{where}/references", summary="References both ways")
    async def references(
        reader: Reading, agent: AgentName, object_name: ObjectName, timeout: Timeout = None
    ) -> dict[str, Any]:
        async with services.work.turn():
            found = await reader.management.object(name(agent), name(object_name), timeout)
            referrers, failures = await incoming(reader.management.client, found, timeout)
        named = references_of(found.schema, found.typed_values) if found.schema is not None else ()
        return {
            "outgoing": [{"property": key, "object": reference(value)} for key, value in named],
            "incoming": [{"property": item.property, "object": reference(item.object.object_id)} for item in referrers],
            "failures": failures,
        }

    @routes.patch(
        f"{where}/properties",
        summary="Set properties, all or none",
        responses=problems(*BODY_PROBLEMS),
    )
    async def set_properties(
        agent: AgentName,
        object_name: ObjectName,
        reader: Annotated[ReadingCaller, Depends(managements.require(Scope.SET))],
        values: Annotated[dict[str, Any], Body(description="New values by name", examples=[{"threshold": 90}])],
        timeout: Timeout = None,
    ) -> Response:
        found = await managements.acted_on(reader, SET_PROPERTIES, name(agent), name(object_name), timeout)
        await calls.set_properties(found, values, caller=reader.caller, access=access, timeout=timeout)
        await found.update(timeout)
        shown = managements.readable(reader, found)
        write = reader.management.writer.json
        return _json(write(found, tuple(values)) if shown is None else write(shown))

    @routes.post(
        f"{where}/methods/{{method}}",
        summary="Call a method",
        responses={
            **problems(*BODY_PROBLEMS),
            200: {"description": "The outputs by name"},
            202: {"description": "A job was begun; `Location` is where to ask for it"},
        },
    )
    async def call(
        agent: AgentName,
        object_name: ObjectName,
        method: MethodName,
        response: Response,
        reader: Annotated[ReadingCaller, Depends(managements.require(Scope.CALL))],
        arguments: Annotated[dict[str, Any] | None, Body(description="Inputs by name", examples=[{}])] = None,
        timeout: Timeout = None,
        prefer: Annotated[
            str | None,
            Header(max_length=200, description="`respond-async` begins a job (RFC 7240); `wait=N` limits the seconds"),
        ] = None,
    ) -> dict[str, Any]:
        wanted = (prefer or "").lower()
        wait = _WAIT.search(wanted)
        seconds = timeout if timeout is not None else (float(wait[1]) or None) if wait else None
        called, caller = name(method), reader.caller
        found = await managements.acted_on(reader, called, name(agent), name(object_name), None)
        inputs = dict(arguments or {})

        async def work() -> dict[str, object]:
            return await calls.call(found, called, inputs, caller=caller, access=access, timeout=seconds)

        if "respond-async" not in wanted:
            return await work()
        job = managements.jobs.begin(caller, f"{called} of {object_href(found.object_id)}", work)
        response.status_code = 202
        response.headers["Location"] = job_location(job)
        response.headers["Preference-Applied"] = "respond-async"
        return job_json(job)

    return routes
