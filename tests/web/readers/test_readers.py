"""A reader with rights for a part: nothing else is in lists, counts, values, errors, streams, metrics or messages.

Everything that may not be read has ``secret`` in its name, so that no answer may have that word.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs
import httpx
import pytest
from support.secret_store import RULES, SecretStore, secret_store
from support.waiting import WAIT_LIMIT
from support.web import called, memory_application, served, web_options

from qmf.bus import MemoryExchange

pytestmark = pytest.mark.slow

API = "/api/v1"
STORE = f"{API}/agents/example.org:store:1"
SHELF = f"{STORE}/objects/org.example.store:shelf:"
BOB, ANN = ("bob", "b"), ("ann", "a")


@attrs.frozen
class Web:
    """A server over both agents."""

    agents: SecretStore
    http: httpx.AsyncClient

    async def get(self, path: str, status: int = 200, auth: tuple[str, str] = BOB) -> Any:
        """What bob is answered, of which the status is looked at; it has no secret."""
        answer = await self.http.get(path, auth=auth)
        assert answer.status_code == status, answer.text
        if auth is BOB:
            assert "secret" not in (answer.text + str(answer.headers)).lower().replace(quote(path), ""), answer.text
        return answer.json() if "json" in answer.headers["content-type"] else answer.text

    async def seen(self) -> None:
        """Wait until the server knows all classes and has all events."""
        while len((await self.get(f"{API}/classes", auth=ANN))["classes"]) < 7:
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def web(tmp_path: Path, *, over_network: bool = False, rules: str = RULES) -> AsyncIterator[Web]:
    file = tmp_path / "rules"
    file.write_text(rules)
    exchange = MemoryExchange()
    options = web_options(users={"bob": "b", "ann": "a"}, rules=file)
    app = memory_application(exchange, options)
    opened = served(app, options) if over_network else called(app)
    async with secret_store(exchange) as agents, opened as http:
        found = Web(agents, http)
        await found.seen()
        yield found


async def test_lists_and_counts(tmp_path: Path) -> None:
    async with web(tmp_path) as here:
        assert len((await here.get(f"{API}/agents", auth=ANN))["agents"]) == 2
        assert [agent["name"] for agent in (await here.get(f"{API}/agents"))["agents"]] == ["example.org:store:1"]
        assert [key["name"] for key in (await here.get(STORE))["classes"]] == ["sale", "shelf"]
        assert (await here.get(f"{API}/packages"))["packages"] == ["org.example.store"]
        assert [key["name"] for key in (await here.get(f"{API}/classes"))["classes"]] == ["sale", "shelf"]
        for query in ("", "&sort=-sold", "&limit=2", "&package=org.example.store", "&agent=example.org:store:1"):
            page = await here.get(f"{API}/objects?class=Shelf{query}")
            assert page["total"] == 3
            assert page["failures"] == {}
        first = await here.get(f"{API}/objects?class=shelf&limit=2")
        rest = await here.get(first["next"])
        names = [obj["name"].rpartition(":")[2] for obj in (*first["objects"], *rest["objects"])]
        assert names == ["a/0", "a/1", "a/2"]
        assert (await here.get(f"{API}/objects?class=shelf", auth=ANN))["total"] == 6
        assert (await here.get(f"{API}/schemas/org.example.store/shelf"))["name"] == "shelf"


async def test_values_that_refer_to_what_is_withheld(tmp_path: Path) -> None:
    async with web(tmp_path) as here:
        found = await here.get(f"{SHELF}a~2F1")
        assert found["properties"]["storeRef"] is None
        assert found["statistics"]["sold"] == 10
        assert (await here.get(f"{SHELF}a~2F1", auth=ANN))["properties"]["storeRef"]["name"].endswith("secret main")
        assert await here.get(f"{SHELF}a~2F1/references") == {"outgoing": [], "incoming": [], "failures": {}}
        # A filter does not show what the value is.
        main = '{"name":"org.example.store:store:secret main"}'
        for where in (f'{{"storeRef":{main}}}', '["exists","storeRef"]', '["not",["eq","storeRef",["quote",1]]]'):
            page = await here.http.get(f"{API}/objects", params={"class": "shelf", "where": where}, auth=BOB)
            assert (page.status_code, page.json().get("total")) == (200, 0), page.text
        page = await here.http.get(f"{API}/objects", params={"class": "shelf", "where": '{"name":"a/1"}'}, auth=BOB)
        assert page.json()["total"] == 1


#: What is there and withheld, and what is not there.
PAIRS = [
    (f"{API}/agents/secret.org:vault:1", f"{API}/agents/secret.org:vault:2"),
    (f"{SHELF}secret~2F0", f"{SHELF}secret~2F9"),
    (f"{SHELF}secret~2F0/references", f"{SHELF}secret~2F9/references"),
    (f"{STORE}/objects/org.example.store:store:secret main", f"{STORE}/objects/org.example.store:store:secret maon"),
    (f"{API}/schemas/org.secret.vault/vault", f"{API}/schemas/org.secret.vault/vaolt"),
    (f"{API}/schemas/org.example.store/store", f"{API}/schemas/org.example.store/stora"),
    (f"{API}/schemas/org.example.store/broken", f"{API}/schemas/org.example.store/brokan"),
    (f"{API}/objects?class=vault", f"{API}/objects?class=vaolt"),
    (f"{API}/objects?class=store", f"{API}/objects?class=stora"),
    (f"{API}/objects?class=shelf&package=org.secret.vault", f"{API}/objects?class=shelf&package=org.secret.vaolt"),
    (f"{API}/objects?class=shelf&agent=secret.org:vault:1", f"{API}/objects?class=shelf&agent=secret.org:vault:2"),
    (f"{API}/objects?class=shelf&fields=secretLimit", f"{API}/objects?class=shelf&fields=secretLimat"),
    (f'{API}/objects?class=shelf&where={{"secretLimit":1}}', f'{API}/objects?class=shelf&where={{"secretLimat":1}}'),
    (f"{API}/classes?agent=secret.org:vault:1", f"{API}/classes?agent=secret.org:vault:2"),
    (f"{API}/changes?class=vault", f"{API}/changes?class=vaolt"),
]


#: What differs between them.
ASKED = re.compile("va[ou]lt:?[12]?|secret(~2F|/)[09]|ma[io]n|stor[ea]|brok[ea]n|Lim[ai]t")


async def test_what_is_withheld_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    async with web(tmp_path) as here:
        for pair in PAIRS:
            withheld, missing = [await here.http.get(path, auth=BOB) for path in pair]
            assert withheld.status_code == missing.status_code >= 400, withheld.text
            assert ASKED.sub("X", withheld.text) == ASKED.sub("X", missing.text)


async def test_methods_and_properties(tmp_path: Path) -> None:
    async with web(tmp_path) as here:

        async def call(shelf: str, method: str, inputs: dict[str, object]) -> httpx.Response:
            return await here.http.post(f"{SHELF}{shelf}/methods/{method}", json=inputs, auth=BOB)

        assert (await call("a~2F1", "add", {"count": 1})).json() == {"total": 7}
        refused = await call("a~2F2", "add", {"count": 1})
        assert (refused.status_code, refused.json()["detail"]) == (
            403,
            "user bob may not call add of org.example.store:shelf: the rules deny it",
        )
        # A method may be called of what may not be read; what may neither be read nor called is not there.
        assert (await call("secret~2F0", "clear", {"filter": {}})).status_code == 200
        hidden, missing = [await call(f"secret~2F{number}", "add", {"count": 1}) for number in (0, 9)]
        assert (hidden.status_code, missing.status_code) == (404, 404)
        assert hidden.text == missing.text.replace("secret/9", "secret/0")
        answer = await here.http.patch(f"{SHELF}secret~2F0/properties", json={"limit": 3}, auth=BOB)
        assert answer.status_code == 404


async def test_events(tmp_path: Path) -> None:
    async with web(tmp_path) as here:
        here.agents.sell()
        while len((await here.get(f"{API}/events", auth=ANN))["events"]) < 4:
            await asyncio.sleep(0.01)
        found = await here.get(f"{API}/events")  # from before bob's first request
        assert [event["data"]["arguments"] for event in found["events"]] == [{"shelf": "a/1", "count": 7}]
        here.agents.sell()
        while len((found := await here.get(f"{API}/events"))["events"]) < 2:
            await asyncio.sleep(0.01)
        # Numbers of records do not count the others.
        assert [event["id"].rpartition("-")[2] for event in found["events"]] == ["1", "2"]
        assert found["last"].endswith("-2")


async def test_streams_end_when_rights_change(tmp_path: Path) -> None:
    async with web(tmp_path, over_network=True) as here, asyncio.timeout(WAIT_LIMIT):
        async with here.http.stream("GET", f"{API}/changes?class=shelf&interval=1", auth=BOB) as changes:
            text = ""
            async for line in changes.aiter_lines():
                text += line + "\n"
                if line.startswith("event: complete"):
                    break
            assert text.count("event: added") == 3
            assert "secret" not in text
        async with here.http.stream("GET", f"{API}/events/stream", auth=BOB) as events:
            lines = events.aiter_lines()
            await anext(lines)
            here.agents.sell()
            while not (line := await anext(lines)).startswith("data"):
                pass
            assert '"count":7' in line
            (tmp_path / "rules").write_text("acl allow ann@QPID access\nacl deny all all\n")
            here.agents.sell()
            assert "a/1" not in "".join([line async for line in lines])
        assert (await here.get(f"{API}/agents"))["agents"] == []


async def test_metrics(tmp_path: Path) -> None:
    async with web(tmp_path) as here:
        text = await here.get("/metrics")
        assert len(re.findall(r"^org_example_store_shelf_sold_items_total\{", text, re.M)) == 3
        assert text.count("qmf_agent_heard_timestamp_seconds{") == 1
        assert "qmf_web_scrape_series" not in text  # would count what others scrape
        assert "secret_org_vault_shelf" not in text
        whole = await here.get("/metrics", auth=ANN)
        assert "qmf_web_scrape_series" in whole
        assert len(re.findall(r"^org_example_store_shelf_sold_items_total\{", whole, re.M)) == 5


async def test_a_report_is_about_everything(tmp_path: Path) -> None:
    async with web(tmp_path) as here:
        assert "user bob" in (await here.get("/report/page", 403))["detail"]
        assert "no recording" in (await here.get("/report/page", 404, ANN))["detail"]


async def test_messages(tmp_path: Path) -> None:
    async with web(tmp_path) as here:
        for method, path, status in (
            # Who may, gets as far as a parameter that is wrong.
            ("POST", "/queues/bob.jobs/create?priority=x", 400),
            ("POST", "/queues/bob.jobs/pull-consumers?x=1", 400),
            ("POST", "/topics/bob.news/pull-subscriptions?x=1", 400),
            ("POST", "/topics/bob.news/create", 403),
            ("GET", "/queues/secret", 403),
            ("POST", "/queues/secret/create", 403),
            ("POST", "/queues/secret/create/1", 403),
            ("POST", "/queues/secret/pull-consumers", 403),
            ("GET", "/queues/secret/pull-consumers/auto-ack/1", 403),
            ("POST", "/queues/secret/push-consumers", 403),
            ("POST", "/topics/qmf.default.topic/pull-subscriptions", 403),
            ("POST", "/topics/qmf.default.topic/push-subscriptions", 403),
        ):
            answer = await here.http.request(method, path, auth=BOB)
            assert answer.status_code == status, answer.text
            if status == 403:
                assert "the rules deny it" in answer.json()["detail"]


async def test_who_may_read_everything_has_the_servers_console(tmp_path: Path) -> None:
    async with web(tmp_path, rules="acl allow all access\nacl deny all all\n") as here:
        assert (await here.http.get(f"{API}/objects?class=shelf", auth=BOB)).json()["total"] == 6
