"""REST messages on each broker: the embedded one, and those that the environment names."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import attrs
import httpx
import pytest
from support.brokers import EMBEDDED, NAMES, URLS
from support.waiting import until
from support.web import served, web_options

from qmf.broker import EmbeddedBroker
from qmf.connecting import BrokerTarget
from qmf.messaging import Connection
from qmf.web import create_application

selectors = pytest.mark.only("embedded", "qpidd", "artemis")


@attrs.frozen
class Target:
    """A broker to test with."""

    name: str
    url: str


@pytest.fixture(params=NAMES)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    name: str = request.param
    mark = request.node.get_closest_marker("only")
    if mark is not None and name not in mark.args:
        pytest.skip(f"not provided by {name}")
    if name != EMBEDDED:
        yield Target(name, URLS[name])
        return
    with EmbeddedBroker(data_dir=tmp_path / "broker") as broker:
        yield Target(name, broker.url)


@pytest.fixture
async def http(target: Target) -> AsyncIterator[httpx.AsyncClient]:
    async with served(create_application(web_options(target=BrokerTarget.of(target.url)), pages=False)) as client:
        yield client


@pytest.fixture
async def second(target: Target) -> AsyncIterator[httpx.AsyncClient]:
    """Another server on the same broker, without the memory of the first."""
    async with served(create_application(web_options(target=BrokerTarget.of(target.url)), pages=False)) as client:
        yield client


@pytest.fixture
def queue(target: Target) -> str:
    """The path of a new queue."""
    name = f"rest-{uuid.uuid4().hex[:12]}"
    with Connection.establish(target.url, timeout=30) as connection:
        connection.session().receiver(f"{name}; {{create: always, node: {{type: queue}}}}").close()
    return f"/queues/{name}"


@pytest.fixture
def topic(target: Target) -> str:
    """The path of a topic: a new one, or an exchange that is always there."""
    if target.name == "rabbitmq":
        return "/topics/amq.topic"
    name = f"rest-{uuid.uuid4().hex[:12]}"
    with Connection.establish(target.url, timeout=30) as connection:
        connection.session().sender(f"{name}; {{create: always, node: {{type: topic}}}}").close()
    return f"/topics/{name}"


WAIT = {"Accept-Wait": "30"}


async def create(http: httpx.AsyncClient, path: str, *bodies: str, **headers: str) -> None:
    url = (await http.head(path)).headers["msg-create"]
    for body in bodies:
        assert (await http.post(url, content=body, headers=headers)).status_code == 201


async def test_auto_acknowledge(http: httpx.AsyncClient, queue: str) -> None:
    created = await http.post((await http.head(queue)).headers["msg-pull-consumers"])
    assert created.status_code == 201
    await create(http, queue, "1", "2")
    first = await http.post(created.headers["msg-consume-next"], headers=WAIT)
    assert (first.status_code, first.content) == (200, b"1")
    assert (await http.post(created.headers["msg-consume-next"])).content == b"1"
    second = await http.post(first.headers["msg-consume-next"], headers=WAIT)
    assert second.content == b"2"
    empty = await http.post(second.headers["msg-consume-next"])
    assert (empty.status_code, empty.headers["Retry-After"]) == (503, "5")
    assert (await http.delete(created.headers["Location"])).status_code == 204


async def test_acknowledgement(http: httpx.AsyncClient, second: httpx.AsyncClient, queue: str) -> None:
    created = await http.post((await http.head(queue)).headers["msg-pull-consumers"], data={"autoAck": "false"})
    await create(http, queue, "1")
    pulled = await http.post(created.headers["msg-acknowledge-next"], headers=WAIT)
    assert pulled.content == b"1"
    returned = await http.post(pulled.headers["msg-acknowledgement"], data={"acknowledge": "false"})
    assert returned.status_code == 200
    pulled = await http.post(returned.headers["msg-acknowledge-next"], headers=WAIT)
    assert pulled.content == b"1"
    state = await http.get(created.headers["Location"])
    assert state.headers["msg-acknowledgement"] == pulled.headers["msg-acknowledgement"]
    settled = await http.post(pulled.headers["msg-acknowledgement"], data={"acknowledge": "true"})
    assert settled.status_code == 200
    assert (await http.post(settled.headers["msg-acknowledge-next"])).status_code == 503
    # After the loss of the server: pulls go on, acknowledgements are refused.
    path = httpx.URL(pulled.headers["msg-acknowledgement"]).path
    refused = await second.post(path, data={"acknowledge": "true"})
    assert refused.status_code == 412
    await create(second, queue, "2")
    # Either consumer may get it; the first one must not ask while the second one waits.
    await http.delete(created.headers["Location"])
    pulled = await second.post(refused.headers["msg-acknowledge-next"], headers=WAIT)
    assert pulled.content == b"2"


async def test_a_subscription(http: httpx.AsyncClient, topic: str) -> None:
    created = await http.post((await http.head(topic)).headers["msg-pull-subscriptions"])
    assert created.status_code == 201
    await create(http, topic, "news")
    assert (await http.post(created.headers["msg-consume-next"], headers=WAIT)).content == b"news"


@pytest.mark.only("embedded", "artemis", "qpidd")
async def test_a_durable_subscription(target: Target, topic: str) -> None:
    form = {"durable": "true", "name": f"n{uuid.uuid4().hex[:8]}", "autoAck": "false"}
    async with served(create_application(web_options(target=BrokerTarget.of(target.url)), pages=False)) as http:
        created = await http.post(f"{topic}/pull-subscriptions", data=form)
        assert created.status_code == 201, created.text
    async with served(create_application(web_options(target=BrokerTarget.of(target.url)), pages=False)) as http:
        await create(http, topic, "meanwhile")
        again = await http.post(f"{topic}/pull-subscriptions", data=form)
        pulled = await http.post(again.headers["msg-acknowledge-next"], headers=WAIT)
        assert pulled.content == b"meanwhile"
        assert (await http.delete(again.headers["Location"])).status_code == 204


async def test_durable_subscriptions_that_a_broker_does_not_provide_are_refused(
    target: Target, http: httpx.AsyncClient
) -> None:
    if target.name != "rabbitmq":
        pytest.skip("it provides them")
    refused = await http.post("/topics/amq.topic/pull-subscriptions", data={"durable": "true"})
    assert refused.status_code == 501


@selectors
async def test_a_selector(http: httpx.AsyncClient, queue: str) -> None:
    created = await http.post(f"{queue}/pull-consumers", data={"selector": "http_x$kind = 'tea'"})
    assert created.status_code == 201, created.text
    await create(http, queue, "coffee", **{"X-Kind": "coffee"})
    await create(http, queue, "tea", **{"X-Kind": "tea"})
    pulled = await http.post(created.headers["msg-consume-next"], headers=WAIT)
    assert (pulled.content, pulled.headers["X-Kind"]) == (b"tea", "tea")


async def test_ids_of_messages(target: Target, http: httpx.AsyncClient, second: httpx.AsyncClient, queue: str) -> None:
    # Where the broker keeps the ids, a server that begins later knows them as well.
    for server in (http, http, http if target.name == "rabbitmq" else second):
        assert (await server.post(f"{queue}/create/1", content="1")).status_code == 201
    assert (await http.post(f"{queue}/create/2", content="2")).status_code == 201
    created = await http.post(f"{queue}/pull-consumers")
    first = await http.post(created.headers["msg-consume-next"], headers=WAIT)
    following = await http.post(first.headers["msg-consume-next"], headers=WAIT)
    assert (first.content, following.content) == (b"1", b"2")
    assert (await http.post(following.headers["msg-consume-next"])).status_code == 503


async def test_unknown_queues(target: Target, http: httpx.AsyncClient) -> None:
    if target.name == "artemis":
        pytest.skip("it creates them")
    assert (await http.head(f"/queues/{uuid.uuid4()}")).status_code == 404
    assert (await http.post(f"/queues/{uuid.uuid4()}/create", content="1")).status_code == 404
    assert (await http.post(f"/queues/{uuid.uuid4()}/pull-consumers")).status_code == 404


async def test_a_push_consumer(http: httpx.AsyncClient, queue: str) -> None:
    bodies: list[bytes] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        bodies.append(await reader.readexactly(length))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        text = f'<push-registration><link href="http://127.0.0.1:{port}/"/></push-registration>'
        created = await http.post(f"{queue}/push-consumers", content=text, headers={"Content-Type": "text/xml"})
        assert created.status_code == 201
        await create(http, queue, "1", "2")
        await until(lambda: bodies == [b"1", b"2"], lambda: f"both messages; there are {bodies}")
        assert (await http.delete(created.headers["Location"])).status_code == 204
