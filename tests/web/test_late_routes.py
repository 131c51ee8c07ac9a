"""Routes that are worked out late are those that FastAPI makes at once."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Depends, FastAPI, Query
from fastapi.routing import APIRoute
from support.web import called

from qmf.web.complete_routes import add_routes
from qmf.web.late_routes import LateRoute


def wanted(q: str) -> str:
    return q


def application(route_class: type[APIRoute]) -> FastAPI:
    router = APIRouter(prefix="/api", tags=["parts"], responses={404: {"description": "none"}}, route_class=route_class)

    @router.get("/parts/{name}", summary="A part", status_code=203)
    def part(name: str, q: Annotated[str, Depends(wanted)], limit: Annotated[int, Query(ge=1)] = 3) -> list[object]:
        return [name, q, limit]

    router.add_api_route("/parts", lambda: "made", methods=["post"], name="making")
    router.add_api_route("/parts", lambda: "set", methods=["PUT", "DELETE"], include_in_schema=False)
    app = FastAPI()
    add_routes(app.router, router)
    return app


APPLICATIONS = pytest.mark.parametrize("route_class", [APIRoute, LateRoute])


@APPLICATIONS
async def test_requests_are_answered_the_same(route_class: type[APIRoute]) -> None:
    async with called(application(route_class)) as client:
        answers = [
            await client.get("/api/parts/wheel?q=a"),
            await client.get("/api/parts/wheel?q=a&limit=0"),
            await client.get("/api/parts/wheel"),
            await client.put("/api/parts"),
            await client.post("/api/parts"),
            await client.get("/api/parts"),
        ]
    assert [answer.status_code for answer in answers] == [203, 422, 422, 200, 200, 405]
    assert answers[0].json() == ["wheel", "a", 3]
    assert answers[5].headers["allow"] == "POST"


@APPLICATIONS
def test_addresses_are_found_by_name(route_class: type[APIRoute]) -> None:
    app = application(route_class)
    assert app.url_path_for("part", name="wheel") == "/api/parts/wheel"
    assert app.url_path_for("making") == "/api/parts"


def test_the_description_is_the_same() -> None:
    assert application(LateRoute).openapi() == application(APIRoute).openapi()


def test_a_route_is_worked_out_when_it_is_called() -> None:
    asked: list[object] = []

    class Watched(LateRoute):
        def __getattr__(self, name: str) -> Any:
            asked.append(self)
            return super().__getattr__(name)

    application(Watched)
    assert not asked


def test_a_mistake_in_an_endpoint_is_named_at_each_request() -> None:
    def endpoint(name: Annotated[str, Query()]) -> str:
        return name

    route = LateRoute("/parts/{name}", endpoint)
    for _ in range(2):
        with pytest.raises(AssertionError, match="Cannot use `Query` for path param 'name'"):
            assert route.dependant


def test_what_no_route_has_is_an_error() -> None:
    route = LateRoute("/one", wanted)
    assert not hasattr(route, "nothing")
    assert route.dependant.call is wanted
    assert not hasattr(route, "nothing")
