"""The route ``/metrics``: what Prometheus reads, choosing, the limit, agents that come and go."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from support.scripted_agent import WIDGET
from support.shelf import store_agent
from support.web import called, memory_application, web_options

from qmf.broker import EmbeddedBroker
from qmf.bus import MemoryExchange
from qmf.connecting import BrokerTarget
from qmf.messaging import Connection
from qmf.schema import parse_schema
from qmf.testing import FakeAgent
from qmf.web import create_application
from qmf.web.metrics import followed_classes, routes
from qmf.web.options import MetricsOptions

OPENMETRICS = {"accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
SOLD = "org_example_store_shelf_sold_items_total"


def samples(answer: httpx.Response) -> dict[tuple[str, str], float]:
    """Values by name of the series and by the label `name`."""
    assert answer.status_code == 200, answer.text
    parse: Any = parse_openmetrics if "openmetrics" in answer.headers["content-type"] else parse_text
    return {
        (sample.name, sample.labels.get("name", "")): sample.value
        for family in parse(answer.text)
        for sample in family.samples
    }


@pytest.mark.parametrize("headers", [{}, OPENMETRICS, {"accept-encoding": "identity"}])
async def test_values_of_objects(headers: dict[str, str]) -> None:
    exchange = MemoryExchange()
    async with store_agent(exchange) as agent, called(memory_application(exchange)) as http:
        shelf: Any = next(obj for obj in agent.agent.objects if getattr(obj, "name", None) == "a/1")
        shelf.waiting.sample(3 * 10**9)
        shelf.waiting.sample(10**9)
        found = samples(await http.get("/metrics", headers=headers))
        begin = "org_example_store_shelf"
        assert found[SOLD, "a/2"] == 20
        assert found[f"{begin}_items", "a/2"] == found[f"{begin}_high_items", "a/2"] == 2
        assert found[f"{begin}_open", "a/0"] == 0
        assert found[f"{begin}_built_timestamp_seconds", "a/0"] == 1_700_000_000
        assert [found[f"{begin}_waiting_{which}_seconds", "a/1"] for which in ("min", "max", "mean")] == [1, 3, 2]
        assert found[f"{begin}_waiting_samples", "a/1"] == 2
        # Nobody waited there: there is no shortest time.
        assert found[f"{begin}_waiting_samples", "a/2"] == 0
        assert (f"{begin}_waiting_min_seconds", "a/2") not in found
        assert found["qmf_web_connected", ""] == 1


async def test_labels_keep_every_text() -> None:
    exchange = MemoryExchange()
    names = ['quote " and \\', "line\nend", "é ∂", "", "}{,="]
    async with store_agent(exchange, shelves=0) as agent, called(memory_application(exchange)) as http:
        for name in names:
            agent.add("Shelf", name=name, limit=1)
        for headers in ({}, OPENMETRICS):
            found = samples(await http.get("/metrics?family=*_sold_*", headers=headers))
            assert {label for name, label in found if name == SOLD} == set(names)


async def test_help_type_and_unit() -> None:
    exchange = MemoryExchange()
    async with store_agent(exchange) as agent, called(memory_application(exchange)) as http:
        for shelf in agent.agent.objects:
            if hasattr(shelf, "waiting"):
                shelf.waiting.sample(1)
        text = (await http.get("/metrics", headers=OPENMETRICS)).text
        assert text.endswith("# EOF\n")
        name = SOLD.removesuffix("_total")
        assert f"# TYPE {name} counter\n# UNIT {name} items\n# HELP {name} Items sold\n" in text
        parse: Any = parse_openmetrics
        families = list(parse(text))
        assert {family.unit for family in families if family.name.endswith("waiting_max_seconds")} == {"seconds"}
        # Of an interval there is nothing that only grows.
        assert {family.type for family in families if "waiting" in family.name} == {"gauge"}


async def test_what_an_agent_changes_and_its_end() -> None:
    exchange = MemoryExchange()
    app = memory_application(exchange, web_options(metrics=MetricsOptions(interval=0.1)))
    async with store_agent(exchange) as agent, called(app) as http:
        assert (SOLD, "a/0") in samples(await http.get("/metrics"))
        new = agent.add("Shelf", name="new", limit=1)
        new.sold.set(7)
        await agent.publish()

        async def value() -> float | None:
            return samples(await http.get("/metrics")).get((SOLD, "new"))

        while await value() != 7:
            await asyncio.sleep(0.02)
        await agent.close()
        while await value() is not None:
            await asyncio.sleep(0.02)
        assert not [name for name, _ in samples(await http.get("/metrics")) if name.startswith("org_")]


async def test_references_are_short() -> None:
    exchange = MemoryExchange()
    schema = parse_schema(
        b"""<schema package="org.example.store">
          <class name="Store"><property name="name" type="sstr" access="RC" index="y"/></class>
          <class name="Door">
            <property name="storeRef" type="objId" access="RC" index="y" references="Store"/>
            <property name="side" type="sstr" access="RC" index="y"/>
            <statistic name="opened" type="count32"/>
          </class>
          <class name="Lock">
            <property name="doorRef" type="objId" access="RC" index="y" references="Door"/>
            <statistic name="turned" type="count32"/>
          </class>
        </schema>""",
        "door.xml",
    )
    fake = FakeAgent(exchange, schema, name="example.org:store:1")
    store = fake.add("Store", name="main:1")
    door = fake.add("Door", storeRef=store, side="left")
    fake.add("Lock", doorRef=door)
    async with fake, called(memory_application(exchange)) as http:
        lines = (await http.get("/metrics")).text.splitlines()
        agent = 'agent="example.org:store:1"'
        assert f'org_example_store_door_opened_total{{{agent},store="main:1",side="left"}} 0' in lines
        assert f'org_example_store_lock_turned_total{{{agent},door="main:1,left"}} 0' in lines


@pytest.mark.slow
async def test_what_the_tools_create_for_themselves_is_left_out() -> None:
    with EmbeddedBroker(host="127.0.0.1", port=0, management=0.1) as broker, Connection.establish(broker.url) as own:
        own.session().receiver("orders; {create: always}")
        options = web_options(target=BrokerTarget.of(broker.url), metrics=MetricsOptions(interval=0.1))
        async with called(create_application(options, pages=False)) as http:

            async def labels(query: str, name: str) -> set[str]:
                text = (await http.get(f"/metrics?family=org_*{query}")).text
                return set(re.findall(rf'\b{name}="([^"]*)"', text))

            while "orders" not in await labels("&class=queue", "name"):
                await asyncio.sleep(0.02)
            for query, name in (("&class=queue", "name"), ("", "queue"), ("", "binding_key")):
                assert not [text for text in await labels(query, name) if "qmf-in-" in text or "qmf-out-" in text]
            assert await labels("&class=queue", "name") == {"orders"}
            # The connection of the test, and its session, and not the server's own.
            assert len(await labels("&class=connection", "address")) == 1
            own_queues = await labels("&class=queue&own=true", "name")
            assert [text for text in own_queues if "qmf-in-" in text]
            assert len(await labels("&class=connection&own=true", "address")) > 1


async def test_those_who_scrape_at_once_share_the_text() -> None:
    exchange = MemoryExchange()
    async with store_agent(exchange), called(memory_application(exchange)) as http:
        await http.get("/metrics")
        answers = await asyncio.gather(*(http.get("/metrics?family=*") for _ in range(100)))
        assert {answer.status_code for answer in answers} == {200}
        # The time that collecting took is in it: it was collected once.
        assert len({answer.text for answer in answers}) == 1


async def test_two_agents_of_one_class() -> None:
    exchange = MemoryExchange()
    async with (
        store_agent(exchange),
        store_agent(exchange, name="example.org:store:2"),
        called(memory_application(exchange)) as http,
    ):
        text = (await http.get("/metrics?family=*_sold_*")).text
        assert text.count(f"# TYPE {SOLD} counter") == 1
        for number in (1, 2):
            assert f'{SOLD}{{agent="example.org:store:{number}",name="a/1"}} 10\n' in text


async def test_choosing() -> None:
    exchange = MemoryExchange()
    options = web_options(metrics=MetricsOptions(classes=("org.example.*:Shelf",), families=("*_sold_*", "*_open")))
    async with store_agent(exchange), called(memory_application(exchange, options)) as http:

        async def names(query: str) -> set[str]:
            found = samples(await http.get(f"/metrics{query}"))
            return {name.removeprefix("org_example_store_shelf_") for name, _ in found if name.startswith("org_")}

        assert await names("") == {"sold_items_total", "open"}
        assert await names("?class=nosuch") == set()
        assert await names("?class=shelf&family=*_total") == {"sold_items_total"}


async def test_more_series_than_the_limit_are_refused() -> None:
    exchange = MemoryExchange()
    options = web_options(metrics=MetricsOptions(limit=20))
    async with store_agent(exchange, shelves=5), called(memory_application(exchange, options)) as http:
        answer = await http.get("/metrics")
        assert answer.status_code == 503
        found = answer.json()
        assert found["detail"].startswith("60 series are more than the limit of 20: org.example.store:shelf 60.")
        assert "--metrics-limit" in found["detail"]
        assert (await http.get("/metrics?family=*_sold_*")).status_code == 200


async def test_classes_with_the_most_series_are_left_out() -> None:
    exchange = MemoryExchange()
    options = web_options(metrics=MetricsOptions(limit=20))
    widgets = FakeAgent(exchange, WIDGET, name="example.org:widgets:1")
    async with store_agent(exchange, shelves=5), widgets, called(memory_application(exchange, options)) as http:
        widgets.add("widget", name="w")
        found = samples(await http.get("/metrics"))
        names = {name for name, _ in found}
        assert "org_example_widgets_widget_turns_total" in names
        assert not [name for name in names if name.startswith("org_example_store")]
        text = (await http.get("/metrics")).text
        assert 'qmf_web_scrape_left_out_series{class="org.example.store:shelf"} 60.0' in text


async def test_the_first_scrape_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_classes, "FIRST", 0.0)
    monkeypatch.setattr(routes, "_MAX_AGE", 0.0)
    exchange = MemoryExchange()
    async with store_agent(exchange), called(memory_application(exchange)) as http:

        async def lacks() -> float:
            text = (await http.get("/metrics")).text
            (line,) = re.findall("^qmf_web_scrape_collecting_classes (.*)$", text, re.MULTILINE)
            return float(line)

        assert await lacks() > 0
        while await lacks():
            pass
        assert "org_example_store_shelf" in (await http.get("/metrics")).text


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)")
async def test_promtool_accepts_it() -> None:
    exchange = MemoryExchange()
    async with store_agent(exchange), called(memory_application(exchange)) as http:
        text = (await http.get("/metrics")).text
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
