"""REST management: what is on the bus, objects page by page, references, methods, properties, jobs, problems."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import attrs
import httpx
import pytest
from support.shelf import store_agent
from support.web import called, memory_application, web_options

from qmf.agent import MethodError
from qmf.bus import MemoryExchange
from qmf.testing import FakeAgent
from qmf.web import Scope, WebLimits, WebOptions

API = "/api/v1"
AGENT = f"{API}/agents/example.org:store:1"
SHELF = f"{AGENT}/objects/org.example.store:shelf:a~2F"


@attrs.frozen
class Store:
    """A store's agent, and a client of the server."""

    agent: FakeAgent
    http: httpx.AsyncClient

    async def get(self, path: str, status: int = 200, **options: Any) -> Any:
        """What a path answers, of which the status is looked at."""
        answer = await self.http.get(path, **options)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def refused(self, status: int, method: str, path: str, **options: Any) -> dict[str, Any]:
        """The problem that a request is answered with."""
        answer = await self.http.request(method, path, **options)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        found: dict[str, Any] = answer.json()
        assert found["status"] == status
        assert "Traceback" not in answer.text
        return found


@contextlib.asynccontextmanager
async def store(options: WebOptions | None = None, shelves: int = 3) -> AsyncIterator[Store]:
    """A store with a server."""
    exchange = MemoryExchange()
    async with store_agent(exchange, shelves=shelves) as agent, called(memory_application(exchange, options)) as http:
        yield Store(agent, http)


async def test_agents_and_their_classes() -> None:
    async with store() as here:
        (found,) = (await here.get(f"{API}/agents"))["agents"]
        assert (found["name"], found["href"], found["subscriptions"]) == ("example.org:store:1", AGENT, True)
        keys = (await here.get(AGENT))["classes"]
        assert [(key["name"], key["kind"]) for key in keys] == [
            ("broken", "event"),
            ("sale", "event"),
            ("shelf", "object"),
            ("store", "object"),
        ]
        assert (await here.get(f"{API}/packages"))["packages"] == ["org.example.store"]
        assert (await here.get(f"{API}/classes?package=nosuch"))["classes"] == []
        assert (await here.get(API))["connected"] is True
        assert "did you mean example.org:store:1" in (await here.refused(404, "GET", f"{AGENT}1"))["detail"]


async def test_schemas_have_units_and_bounds() -> None:
    async with store() as here:
        found = await here.get(f"{API}/schemas/org.example.store/Shelf")
        by_name = {item["name"]: item for item in [*found["properties"], *found["statistics"]]}
        assert by_name["limit"]["unit"] == "item"
        assert by_name["limit"]["minimum"] == 1
        assert by_name["limit"]["json"] == {
            "type": ["integer", "string"],
            "minimum": 0,
            "maximum": "18446744073709551615",
        }
        assert by_name["items"]["values"] == ["items", "itemsHigh", "itemsLow"]
        assert by_name["storeRef"]["references"] == "Store"
        assert [item["name"] for item in found["methods"][0]["arguments"]] == ["count", "at", "total"]
        event = await here.get(f"{API}/schemas/org.example.store/sale")
        assert (event["kind"], event["severity"]) == ("event", "notice")
        same = await here.get(event["schema"])
        assert same == event
        assert (await here.refused(404, "GET", f"{API}/schemas/org.example.store/shef"))["near"] == ["shelf"]


async def test_values_are_as_json_keeps_them() -> None:
    async with store() as here:
        found = await here.get(f"{SHELF}0")
        assert found["properties"]["limit"] == "9223372036854775808"
        assert found["properties"]["built"] == "2023-11-14T22:13:20.000000001Z"
        assert found["properties"]["storeRef"]["href"] == f"{AGENT}/objects/org.example.store:store:main"
        assert found["statistics"]["items"] == 0
        assert found["deleted"] is None


async def test_objects_come_page_by_page() -> None:
    async with store(shelves=25) as here:
        path: str | None = f"{API}/objects?class=SHELF&limit=10&fields=name,sold"
        names, sizes = [], []
        while path is not None:
            page = await here.get(path)
            names += [item["values"]["name"] for item in page["objects"]]
            sizes.append(len(page["objects"]))
            assert page["total"] == 25
            path = page["next"]
        assert sizes == [10, 10, 5]
        assert sorted(names) == sorted(f"a/{number}" for number in range(25))


async def test_a_page_goes_on_behind_the_last_object_whatever_came_and_went() -> None:
    async with store(shelves=9) as here:
        first = await here.get(f"{API}/objects?class=shelf&limit=4&fields=name")
        # Another query of the same cursor: the answer that was kept is not its own, so the agent is asked.
        answer = await here.get(first["next"].replace("class=shelf", "class=Shelf"))
        assert [item["values"]["name"] for item in answer["objects"]] == ["a/4", "a/5", "a/6", "a/7"]
        for cursor in ("x", "MQ", "!!!!", "a" * 1000):
            found = await here.refused(422, "GET", f"{API}/objects?class=shelf&cursor={cursor}")
            assert "query.cursor" in found["detail"]


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ('{"name": "a/1"}', ["a/1"]),
        ('["gt", "sold", ["quote", 5]]', ["a/1", "a/2"]),
        ('{"storeRef": {"name": "org.example.store:store:main"}, "sold": 20}', ["a/2"]),
        ("{}", ["a/0", "a/1", "a/2"]),
    ],
)
async def test_filters(where: str, names: list[str]) -> None:
    async with store() as here:
        found = await here.get(f"{API}/objects", params={"class": "shelf", "fields": "name", "where": where})
        assert [item["values"]["name"] for item in found["objects"]] == names


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("", "query.class"),
        ("class=shelf&limit=0", "query.limit"),
        ("class=shelf&limit=x", "query.limit"),
        ("class=shelf&where=x", "query.where"),
        ("class=shelf&where=1", "query.where"),
        ('class=shelf&where=["nosuch"]', "predicate"),
        ('class=shelf&where={"nme": 1}', "did you mean name"),
        ("class=shelf&fields=sod", "did you mean sold"),
        ("class=shelf&hash=x", "query.hash"),
        ("class=shelf&timeout=-1", "query.timeout"),
        ("class=shelf&where=" + "[" * 5000, "query.where"),
    ],
)
async def test_a_wrong_query_is_named(query: str, text: str) -> None:
    async with store() as here:
        assert text in (await here.refused(422, "GET", f"{API}/objects?{query}"))["detail"]


async def test_objects_of_no_class_and_no_agent() -> None:
    async with store() as here:
        assert (await here.refused(404, "GET", f"{API}/objects?class=shef"))["near"] == ["shelf"]
        await here.refused(404, "GET", f"{API}/objects?class=shelf&package=nosuch")
        await here.refused(404, "GET", f"{API}/changes?class=shef")
        await here.refused(404, "GET", f"{API}/objects?class=shelf&agent=nosuch")
        await here.refused(404, "GET", f"{SHELF}9")


async def test_a_class_without_objects_has_values_all_the_same() -> None:
    async with store(shelves=0) as here:
        assert (await here.get(f"{API}/objects?class=shelf&fields=sold&sort=name"))["objects"] == []
        for query in ("fields=sod", "sort=-sod"):
            found = await here.refused(422, "GET", f"{API}/objects?class=shelf&{query}")
            assert "did you mean sold" in found["detail"]
        await here.refused(422, "GET", f"{API}/changes?class=shelf&fields=sod")


@pytest.mark.parametrize(
    ("sort", "names"),
    [
        ("sold", ["a/0", "a/1", "a/2", "b"]),
        ("-sold", ["b", "a/2", "a/1", "a/0"]),
        ("open,-name", ["b", "a/2", "a/1", "a/0"]),
        ("-label, name", ["a/1", "a/0", "a/2", "b"]),  # without a label at the end
        ("label,-sold", ["a/1", "b", "a/2", "a/0"]),
        ("storeRef,name", ["a/0", "a/1", "a/2", "b"]),
    ],
)
async def test_an_order(sort: str, names: list[str]) -> None:
    async with store() as here:
        new = here.agent.add("Shelf", name="b", limit=1)
        new.sold.set(1000)
        await here.http.patch(f"{SHELF}1/properties", json={"label": "x"})
        for limit in (10, 1, 3):
            path: str | None = f"{API}/objects?class=shelf&fields=name&limit={limit}&sort={sort}"
            found: list[str] = []
            while path is not None:
                page = await here.get(path)
                found += [item["values"]["name"] for item in page["objects"]]
                path = page["next"]
            assert found == names


async def test_an_order_goes_on_behind_the_last_object_in_a_new_answer() -> None:
    async with store(shelves=9) as here:
        first = await here.get(f"{API}/objects?class=shelf&limit=4&fields=name&sort=-sold")
        assert [item["values"]["name"] for item in first["objects"]] == ["a/8", "a/7", "a/6", "a/5"]
        gone = first["next"].replace("class=shelf", "class=Shelf")
        page = await here.get(gone)
        assert [item["values"]["name"] for item in page["objects"]] == ["a/4", "a/3", "a/2", "a/1"]
        found = await here.refused(422, "GET", first["next"].replace("sort=-sold", "sort=-sold,name"))
        assert "another order" in found["detail"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/objects?class=shelf&sortby=name", "no query parameter 'sortby'; did you mean sort?"),
        ("/objects?class=shelf&x=2", "no query parameter 'x'; there is fields, sort, limit"),
        ("/agents?limit=2", "no query parameter 'limit'; there is none"),
        ("/events?sevrity=warn", "did you mean severity"),
        ("/changes?class=shelf&limit=2", "no query parameter 'limit'"),
        ("/schemas/org.example.store/shelf?version=1", "no query parameter 'version'; there is hash"),
    ],
)
async def test_an_unknown_parameter(path: str, text: str) -> None:
    async with store() as here:
        assert text in (await here.refused(422, "GET", API + path))["detail"]
        assert (await here.http.get("/metrics?classes=shelf")).status_code == 422


async def test_head_wherever_there_is_get() -> None:
    async with store() as here:
        for path in (
            API, f"{API}/agents", AGENT, f"{API}/packages", f"{API}/classes", f"{API}/schemas/org.example.store/shelf",
            f"{API}/objects?class=shelf", f"{SHELF}0", f"{SHELF}0/references", f"{API}/jobs", f"{API}/events",
            "/metrics", "/healthz", "/api/openapi.json", "/login",
        ):  # fmt: skip
            got, head = await here.http.get(path), await here.http.head(path)
            assert (head.status_code, head.content) == (got.status_code, b""), path
            if path != "/metrics":  # it says how long the last scrape took
                assert head.headers.get("content-length") == got.headers.get("content-length"), path
            assert head.headers.get("content-type") == got.headers.get("content-type"), path
        # Streams, which would not end.
        for path in (f"{API}/events/stream", f"{API}/changes?class=shelf"):
            head = await here.http.head(path)
            assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert (await here.http.head(f"{API}/nosuch")).status_code == 404
        assert (await here.http.head(f"{SHELF}0/methods/add")).status_code == 405


async def test_those_who_ask_at_once_share_the_answer() -> None:
    async with store() as here:
        path = f"{API}/objects?class=shelf&fields=name"
        await here.get(path)
        before = len(here.agent.requests)
        answers = await asyncio.gather(*(here.http.get(path) for _ in range(50)))
        assert {answer.status_code for answer in answers} == {200}
        assert len({answer.content for answer in answers}) == 1
        # How many are there at the same moment depends on the machine: see `test_sharing`.
        assert len(here.agent.requests) - before < 25
        # One who asks later learns what is so by then.
        await here.http.patch(f"{SHELF}0/properties", json={"limit": 77})
        found = await here.get(f"{API}/objects?class=shelf&fields=limit")
        assert found["objects"][0]["values"] == {"limit": 77}


async def test_too_much_at_once_is_refused() -> None:
    async with store(web_options(limits=WebLimits(work=1, waiting_work=1))) as here:
        paths = [f"{API}/objects?class=shelf&limit={number}" for number in range(1, 20)]
        answers = await asyncio.gather(*(here.http.get(path) for path in paths))
        assert [answer.status_code for answer in answers].count(200) >= 2
        refused = [answer for answer in answers if answer.status_code != 200]
        assert refused
        for answer in refused:
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
            assert answer.json()["detail"] == "the server has too much to do"
        # All is as before.
        assert [(await here.http.get(path)).status_code for path in paths] == [200] * len(paths)


async def test_references_both_ways() -> None:
    async with store() as here:
        found = await here.get(f"{SHELF}0/references")
        (outgoing,) = found["outgoing"]
        assert outgoing["property"] == "storeRef"
        back = await here.get(f"{outgoing['object']['href']}/references")
        assert [(item["property"], item["object"]["href"]) for item in back["incoming"]] == [
            ("storeRef", f"{SHELF}{number}") for number in range(3)
        ]
        assert back["failures"] == {}


async def test_methods() -> None:
    async with store() as here:
        here.agent.on("Shelf", "add", lambda _, count, at: {"total": 2**60 + count})
        answer = await here.http.post(f"{SHELF}0/methods/add", json={"count": 3, "at": "2026-01-01T00:00:00Z"})
        assert (answer.status_code, answer.json()) == (200, {"total": "1152921504606846979"})
        assert here.agent.calls[-1] == ("add", {"count": 3, "at": 1767225600 * 10**9})


@pytest.mark.parametrize(
    ("method", "arguments", "status", "text"),
    [
        ("add", {"count": 0}, 422, "must be at least 1"),
        ("add", {"count": "many"}, 422, "argument 'count'"),
        ("add", {}, 422, "must be given"),
        ("add", {"cont": 1}, 422, "did you mean count"),
        ("add", {"count": 1, "at": "soon"}, 422, "must be a time"),
        ("ad", {}, 404, "did you mean add"),
    ],
)
async def test_wrong_calls(method: str, arguments: object, status: int, text: str) -> None:
    async with store() as here:
        found = await here.refused(status, "POST", f"{SHELF}0/methods/{method}", json=arguments)
        assert text in found["detail"]
        assert here.agent.calls == []


async def test_what_the_agent_refuses_keeps_code_and_text() -> None:
    async with store() as here:

        def full(*_: object, **__: object) -> None:
            raise MethodError("the shelf is full", code=70000)

        here.agent.on("Shelf", "add", full)
        found = await here.refused(409, "POST", f"{SHELF}0/methods/add", json={"count": 1})
        assert (found["code"], found["text"], found["agent"]) == (70000, "the shelf is full", "example.org:store:1")
        here.agent.refusal = "nobody may"
        found = await here.refused(403, "POST", f"{SHELF}0/methods/add", json={"count": 1})
        assert "nobody may" in found["detail"]


async def test_an_agent_that_is_silent() -> None:
    async with store(web_options(timeout=0.2)) as here:
        await here.get(f"{SHELF}0")
        here.agent.silent = True
        found = await here.refused(504, "GET", f"{SHELF}0")
        assert "within 0.2 s" in found["detail"]


async def test_a_job_is_asked_for_later() -> None:
    async with store() as here:
        may_end = asyncio.Event()

        async def add(_: object, count: int, at: int) -> dict[str, object]:
            await may_end.wait()
            return {"total": count}

        here.agent.on("Shelf", "add", add)
        prefer = {"prefer": "respond-async, wait=30"}
        answer = await here.http.post(f"{SHELF}0/methods/add", json={"count": 7}, headers=prefer)
        assert answer.status_code == 202
        where = answer.headers["location"]
        assert (await here.get(where))["state"] == "running"
        may_end.set()

        async def done() -> bool:
            return bool((await here.get(where))["state"] == "done")

        while not await done():
            await asyncio.sleep(0.01)
        assert (await here.get(where))["result"] == {"total": 7}
        assert [job["href"] for job in (await here.get(f"{API}/jobs"))["jobs"]] == [where]
        assert (await here.http.delete(where)).status_code == 204
        await here.refused(404, "GET", where)


async def test_jobs_fail_and_are_limited() -> None:
    async with store(web_options(limits=WebLimits(jobs=1))) as here:
        path, prefer = f"{SHELF}0/methods/add", {"prefer": "respond-async"}
        answer = await here.http.post(path, json={"count": 0}, headers=prefer)
        where = answer.headers["location"]
        while (await here.get(where))["state"] == "running":
            await asyncio.sleep(0.01)
        assert (await here.get(where))["problem"]["status"] == 422
        assert "1 jobs already" in (await here.refused(429, "POST", path, json={"count": 1}, headers=prefer))["detail"]


async def test_properties_are_set_all_or_none() -> None:
    async with store() as here:
        path = f"{SHELF}0/properties"
        answer = await here.http.patch(path, json={"limit": "18446744073709551615", "label": "new"})
        assert answer.status_code == 200
        assert answer.json()["properties"]["limit"] == "18446744073709551615"
        assert answer.json()["properties"]["label"] == "new"
        for values, text in [
            ({"limit": 5, "name": "x"}, "cannot be set by a console"),
            ({"limit": 0}, "at least 1"),
            ({"limi": 1}, "did you mean limit"),
            ({}, "at least one property"),
        ]:
            assert text in (await here.refused(422, "PATCH", path, json=values))["detail"]
        assert (await here.get(f"{SHELF}0"))["properties"]["limit"] == "18446744073709551615"


@pytest.mark.parametrize("body", ["{", "[]", '"x"', "nul", ""])
async def test_bodies_that_are_no_object(body: str) -> None:
    async with store() as here:
        headers = {"content-type": "application/json"}
        answer = await here.http.patch(f"{SHELF}0/properties", content=body, headers=headers)
        assert answer.status_code in (400, 422)
        assert "body" in answer.json()["detail"]


async def test_scopes_and_the_users_name() -> None:
    users = {name: name for name in ("reader", "caller", "setter", "messenger")}
    grants = {
        "reader": frozenset({Scope.READ}),
        "caller": frozenset({Scope.CALL}),
        "setter": frozenset({Scope.SET}),
        "messenger": frozenset({Scope.MESSAGES}),
    }
    call, change = (f"{SHELF}0/methods/add", {"count": 1}), (f"{SHELF}0/properties", {"limit": 5})
    async with store(web_options(users=users, grants=grants)) as here:
        here.agent.on("Shelf", "add", lambda _, count, at: {"total": 1})
        statuses = {}
        for name in users:
            auth = (name, name)
            statuses[name] = (
                (await here.http.get(f"{SHELF}0", auth=auth)).status_code,
                (await here.http.post(call[0], json=call[1], auth=auth)).status_code,
                (await here.http.patch(change[0], json=change[1], auth=auth)).status_code,
            )
        assert statuses == {
            "reader": (200, 403, 403),
            "caller": (403, 200, 403),
            "setter": (403, 403, 200),
            "messenger": (403, 403, 403),
        }
        found = await here.refused(403, "POST", call[0], json=call[1], auth=("reader", "reader"))
        assert found["scopes"] == ["call"]
        asked = [request for request in here.agent.requests if request.method == "add"]
        assert [request.on_behalf_of for request in asked] == ["caller"]


async def test_events_that_were_received() -> None:
    async with store() as here:
        here.agent.raise_event("sale", shelf="a/1", count=2**60)
        here.agent.raise_event("broken", shelf="a/2")

        async def listed(query: str = "") -> list[Any]:
            return [item["data"] for item in (await here.get(f"{API}/events{query}"))["events"]]

        while len(await listed()) < 2:
            await asyncio.sleep(0.01)
        sale, broken = await listed()
        assert sale["arguments"] == {"shelf": "a/1", "count": "1152921504606846976"}
        assert (broken["severity"], broken["class"]) == ("error", "broken")
        assert await listed("?severity=warn") == [broken]
        assert await listed("?class=SA*") == [sale]
        assert await listed("?text=A/1") == [sale]
        assert await listed("?agent=nosuch") == []
        assert await listed("?limit=1") == [broken]
        last = (await here.get(f"{API}/events"))["last"]
        here.agent.raise_event("sale", shelf="a/3", count=1)
        while not await listed(f"?after={last}"):
            await asyncio.sleep(0.01)
        assert [item["arguments"]["shelf"] for item in await listed(f"?after={last}")] == ["a/3"]
        await here.refused(422, "GET", f"{API}/events?severity=awful")


async def test_a_lost_broker_is_a_problem() -> None:
    exchange = MemoryExchange()
    app = memory_application(exchange)
    async with store_agent(exchange), called(app) as http:
        exchange.stop()
        answer = await http.get(f"{API}/objects?class=shelf")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "5"
        assert "not connected" in answer.json()["detail"]
        assert (await http.get("/healthz")).text == "no connection to the broker\n"
