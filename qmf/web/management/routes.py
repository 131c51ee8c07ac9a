"""Routes of REST management; `/api/v1` has links to all of them."""

from __future__ import annotations

from fastapi import APIRouter

from qmf.web.complete_routes import add_routes
from qmf.web.management import event_routes, job_routes, object_routes, schema_routes
from qmf.web.management.managements import Managements
from qmf.web.services import WebServices


def router(services: WebServices) -> APIRouter:
    """The routes; those of an application share `services`."""
    managements = Managements(services)
    routes = APIRouter(lifespan=managements.run)
    for part in (schema_routes, object_routes, job_routes, event_routes):
        add_routes(routes, part.router(managements))
    return routes
