"""Routes of routers that are put together are those that they have alone."""

from __future__ import annotations

from fastapi import APIRouter, Depends, FastAPI
from support.web import called

from qmf.web.complete_routes import add_routes


def refuse() -> None:
    raise AssertionError


async def test_routes_have_what_their_router_has() -> None:
    outer = APIRouter(dependencies=[Depends(refuse)])
    part = APIRouter(prefix="/api", tags=["parts"])

    @part.get("/one")
    def one() -> str:
        return "here"

    add_routes(outer, part)
    app = FastAPI()
    add_routes(app.router, outer)
    async with called(app) as client:
        assert (await client.get("/api/one")).json() == "here"
    assert app.openapi()["paths"]["/api/one"]["get"]["tags"] == ["parts"]


def test_no_route_is_built_twice() -> None:
    part = APIRouter()
    part.add_api_route("/one", lambda: "here")
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    add_routes(app.router, part)
    assert app.routes == part.routes
