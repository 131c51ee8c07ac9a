"""Routes for events and changes of objects: the latest ones, and streams as server-sent events and websockets."""

# No postponed annotations: those of routes name what only their function knows.

import glob
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response, WebSocket

from qmf.errors import NotFoundError
from qmf.schema import Severity
from qmf.views.conditions.tree import Search
from qmf.views.event_filter import EventFilter
from qmf.views.events import parse_severity
from qmf.web.management.change_feeds import FeedKey
from qmf.web.management.event_feed import EventSelection
from qmf.web.management.managements import Managements, ReadingCaller
from qmf.web.management.parameters import api_router, problems
from qmf.web.management.selection import ClassSelection, Fields, read_fields, selection
from qmf.web.problems import Problem
from qmf.web.scopes import Scope
from qmf.web.streams.serving import EventStream, Source, log_source, serve_socket

_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: `event` says what happened, `data` is JSON",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}

LastId = Annotated[str | None, Header(alias="Last-Event-ID", max_length=200, description="Go on behind this record")]
LastIdQuery = Annotated[str | None, Query(alias="last", max_length=200, description="The same as `Last-Event-ID`")]
Interval = Annotated[float, Query(ge=1, le=3600, description="Seconds between publications of agents")]


def event_filter(
    severity: Annotated[str | None, Query(max_length=10, description="The least severity, e.g. `warn`")] = None,
    name: Annotated[str | None, Query(alias="class", max_length=255, description="Pattern of the class")] = None,
    package: Annotated[str | None, Query(max_length=255)] = None,
    agent: Annotated[str | None, Query(max_length=1000)] = None,
    text: Annotated[
        str | None, Query(max_length=1000, description="Text in class, severity, agent or an argument")
    ] = None,
) -> EventSelection:
    """A dependency of routes: the filter of their query.

    Raises:
        Problem: 422, no such severity.
    """
    try:
        least = parse_severity(severity) if severity else Severity.DEBUG
    except NotFoundError:
        names = ", ".join(item.schema_name for item in Severity)
        raise Problem(422, f"query.severity: must be one of {names}") from None
    classes = [f"{glob.escape(package) if package else '*'}:{name or '*'}"] if package or name else []
    condition = Search(text) if text else None
    return EventSelection(filter=EventFilter(severity=least, classes=classes, condition=condition), agent=agent or None)


def router(managements: Managements) -> APIRouter:
    """The routes."""
    services = managements.services
    routes = api_router("events and changes")
    Reading = Annotated[ReadingCaller, Depends(managements.require(Scope.READ))]
    Wanted = Annotated[EventSelection, Depends(event_filter)]
    Chosen = Annotated[ClassSelection, Depends(selection)]

    @routes.get("/events", summary="The latest events, oldest first")
    async def events(
        reader: Reading,
        wanted: Wanted,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
        after: Annotated[str | None, Query(max_length=200, description="Only those behind this record")] = None,
    ) -> dict[str, Any]:
        log = reader.management.events.log
        position = log.position(after)
        kept = log.records(log.end, after=position)
        found = [record for record in kept if wanted(record.data)]
        # Of the latest, the last ones; behind a record, the first ones, so that nothing is left out in between.
        shown = found[-limit:] if position is None else found[:limit]
        complete = position is None or len(found) <= limit
        return {
            "events": [{"id": record.id, "type": record.kind, "data": record.data} for record in shown],
            "last": log.last_id if complete or not shown else shown[-1].id,
            "missed": 0 if position is None else max(0, log.begin - position),
        }

    def source(reader: ReadingCaller, last_id: str | None, wanted: EventSelection) -> Source:
        """A stream that begins behind the record that its reader has, else at what comes next."""
        log = reader.management.events.log
        position = log.position(last_id)
        return log_source(log, log.end if position is None else position, wanted)

    @routes.get("/events/stream", summary="Events as they come", response_class=Response, responses=_STREAM)
    async def event_stream(reader: Reading, wanted: Wanted, last: LastId = None, since: LastIdQuery = None) -> Response:
        records = source(reader, last or since, wanted)
        return EventStream(records, services, reader.caller, reader.management.client)

    @routes.websocket("/events/socket")
    async def event_socket(socket: WebSocket, reader: Reading, wanted: Wanted, since: LastIdQuery = None) -> None:
        records = source(reader, since, wanted)
        await serve_socket(socket, records, services, reader.caller, reader.management.client)

    async def find_changes(
        reader: Reading, chosen: Chosen, fields: Fields = None, interval: Interval = 5.0
    ) -> Callable[[str | None], Source]:
        """A dependency: the changes that the query asks for, behind a record of which the id is given."""
        key = FeedKey(chosen, read_fields(fields), interval)
        management = reader.management
        await management.check(chosen, key.fields or ())
        management.changes.check(key)
        return partial(management.changes.read, key)

    Changes = Annotated[Callable[[str | None], Source], Depends(find_changes)]

    @routes.get(
        "/changes",
        summary="Objects of a class, and their changes as they come",
        response_class=Response,
        responses={**problems(404, 503), **_STREAM},
    )
    async def change_stream(
        reader: Reading, changes: Changes, last: LastId = None, since: LastIdQuery = None
    ) -> Response:
        return EventStream(changes(last or since), services, reader.caller, reader.management.client)

    @routes.websocket("/changes/socket")
    async def change_socket(socket: WebSocket, reader: Reading, changes: Changes, since: LastIdQuery = None) -> None:
        await serve_socket(socket, changes(since), services, reader.caller, reader.management.client)

    return routes
