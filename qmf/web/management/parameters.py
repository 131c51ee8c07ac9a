"""Parameters that several routes have, and the problems that they describe."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from starlette.requests import HTTPConnection

from qmf.errors import NotFoundError
from qmf.web.addresses import API, from_segment
from qmf.web.late_routes import LateRoute
from qmf.web.problems import MEDIA_TYPE, Problem


def name(segment: str) -> str:
    """The name that a path parameter stands for."""
    return from_segment(segment)


AgentName = Annotated[
    str, Path(min_length=1, max_length=3000, description="Agent as in `href`, or `broker` for the connected broker's")
]
ObjectName = Annotated[str, Path(min_length=1, max_length=6000, description="Object as in `href`")]
Package = Annotated[str, Path(min_length=1, max_length=1000)]
ClassName = Annotated[str, Path(min_length=1, max_length=1000, description="Class in any case, or event")]
MethodName = Annotated[str, Path(min_length=1, max_length=1000)]

Timeout = Annotated[
    float | None, Query(gt=0, le=300, description="Seconds to wait for the agent; default: that of the server")
]

_PROBLEM: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": ["integer", "null"], "description": "QMF code of the agent's exception"},
        "text": {"type": "string", "description": "Text of the agent's exception"},
        "agent": {"type": ["string", "null"]},
        "near": {"type": "array", "items": {"type": "string"}, "description": "Names like the one that is unknown"},
    },
}

_WHY = {
    400: "Malformed request",
    401: "The caller is unknown",
    403: "The caller, or the agent, does not allow it",
    404: "There is no such agent, class, object or method",
    408: "The body did not come in time",
    409: "The agent refused",
    413: "The body is too long",
    415: "The body is no JSON",
    421: "The server has another name",
    422: "A value does not fit",
    429: "Too many requests, streams or jobs",
    500: "A fault of the server",
    501: "The agent does not implement it",
    502: "The agent sent nonsense, or is gone",
    503: "There is no connection to the broker",
    504: "The agent did not answer in time",
}


async def no_unknown_parameters(connection: HTTPConnection) -> None:
    """A dependency of routes: refuses query parameters that the route does not have.

    Raises:
        Problem: 422, names one.
    """
    known = list(_query_parameters(connection.scope["route"].dependant))
    for name in connection.query_params:
        if name not in known:
            error = NotFoundError("query parameter", name[:100], known)
            has = f"there is {', '.join(known)}" if known else "there is none"
            raise Problem(422, str(error) if error.near else f"{error}; {has}", near=list(error.near))


def _query_parameters(dependant: Any) -> Iterator[str]:
    """The names that a route, or something that it depends on, has."""
    for item in dependant.query_params:
        yield item.alias
    for inner in dependant.dependencies:
        yield from _query_parameters(inner)


def api_router(tag: str, *statuses: int) -> APIRouter:
    """A router of this interface, whose routes have a tag and answer with these problems."""
    return APIRouter(
        prefix=API,
        tags=[tag],
        dependencies=[Depends(no_unknown_parameters)],
        responses=problems(*statuses),
        route_class=LateRoute,
    )


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The description of the problems that a route answers with, besides those that all have."""
    content = {MEDIA_TYPE: {"schema": _PROBLEM}}
    always = (400, 401, 403, 421, 422, 429, 500)
    return {status: {"description": _WHY[status], "content": content} for status in sorted({*always, *statuses})}


#: Of routes that ask agents.
AGENT_PROBLEMS = (404, 409, 501, 502, 503, 504)
#: Of routes with a body.
BODY_PROBLEMS = (400, 408, 413)
