"""Subscriptions of topics: durable and named ones, their idle timeout, and what ends with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import pytest
from fastapi import FastAPI
from support.waiting import until
from support.web import served

from qmf.messaging import LinkClosed, NotFound, Session

from .conftest import QUEUE, TOPIC

SUBSCRIPTIONS = f"/topics/{TOPIC}/pull-subscriptions"


async def subscribe(http: httpx.AsyncClient, **form: str) -> httpx.Response:
    found = await http.post(SUBSCRIPTIONS, data=form)
    assert found.status_code == 201, found.text
    return found


async def publish(http: httpx.AsyncClient, *bodies: str, **headers: str) -> None:
    for body in bodies:
        assert (await http.post(f"/topics/{TOPIC}/create", content=body, headers=headers)).status_code == 201


async def test_each_subscription_gets_its_own_copy(http: httpx.AsyncClient) -> None:
    subscriptions = [await subscribe(http) for _ in range(2)]
    await publish(http, "news")
    for subscription in subscriptions:
        assert (await http.post(subscription.headers["msg-consume-next"])).content == b"news"


async def test_a_subscription_that_is_not_durable_ends_with_the_server(
    http: httpx.AsyncClient, second: httpx.AsyncClient
) -> None:
    subscription = await subscribe(http)
    gone = await second.post(httpx.URL(subscription.headers["msg-consume-next"]).path)
    assert gone.status_code == 410
    assert gone.headers["msg-pull-subscriptions"] == f"{str(second.base_url).rstrip('/')}{SUBSCRIPTIONS}"


@pytest.mark.parametrize("form", [{"name": "mine"}, {}])
async def test_a_durable_subscription_collects_messages_while_no_server_runs(
    serve: Callable[[], FastAPI], session: Session, form: dict[str, str]
) -> None:
    async with served(serve()) as http:
        created = await subscribe(http, durable="true", autoAck="false", **form)
    session.sender(f"{TOPIC}/any").send("meanwhile")
    async with served(serve()) as http:
        pulled = await http.post(httpx.URL(created.headers["msg-acknowledge-next"]).path)
        assert pulled.content == b"meanwhile"
        settled = await http.post(pulled.headers["msg-acknowledgement"], data={"acknowledge": "true"})
        assert settled.status_code == 200
        if form:
            again = await subscribe(http, durable="true", autoAck="false", **form)
            assert again.headers["msg-acknowledge-next"] == settled.headers["msg-acknowledge-next"]


async def test_deleting_ends_a_durable_subscription(http: httpx.AsyncClient) -> None:
    created = await subscribe(http, durable="true", name="mine")
    assert (await http.delete(created.headers["Location"])).status_code == 204
    await publish(http, "nobody has it")
    again = await subscribe(http, durable="true", name="mine")
    assert (await http.post(again.headers["msg-consume-next"])).status_code == 503
    # It is a consumer like any other again.
    await publish(http, "new")
    assert (await http.post(again.headers["msg-consume-next"])).content == b"new"


async def test_a_name_has_one_set_of_options(http: httpx.AsyncClient) -> None:
    await subscribe(http, durable="true", name="mine")
    refused = await http.post(SUBSCRIPTIONS, data={"durable": "true", "name": "mine", "autoAck": "false"})
    assert refused.status_code == 409
    assert "auto_ack" in refused.json()["detail"]


def is_gone(session: Session, name: str) -> bool:
    """True if there is no such queue."""
    try:
        session.sender(name).close()
    except (NotFound, LinkClosed):  # the latter if it goes while it is asked for
        return True
    return False


async def wait_until_closed(http: httpx.AsyncClient, location: str, link: str) -> httpx.Response:
    """Wait until the consumer has ended since it was idle; asking for its state would keep it from that."""
    while True:
        answer = await http.post(link)
        if answer.status_code != 503:
            return answer
        await asyncio.sleep(0.3)  # longer than the idle timeout of these tests


async def test_an_idle_consumer_ends_and_its_durable_subscription_stays(http: httpx.AsyncClient) -> None:
    created = await subscribe(http, **{"durable": "true", "name": "mine", "idle-timeout": "20"})
    closed = await wait_until_closed(http, created.headers["Location"], created.headers["msg-consume-next"])
    assert closed.status_code == 412
    await publish(http, "kept")
    again = await subscribe(http, **{"durable": "true", "name": "mine", "idle-timeout": "20"})
    pulled = await http.post(again.headers["msg-consume-next"])
    while pulled.status_code == 412:  # idle again
        pulled = await http.post(pulled.headers["msg-consume-next"])
    assert pulled.content == b"kept"


async def test_delete_when_idle_ends_even_a_durable_subscription(http: httpx.AsyncClient, session: Session) -> None:
    form = {"durable": "true", "name": "mine", "idle-timeout": "20", "delete-when-idle": "true"}
    created = await subscribe(http, **form)
    # Its queue is deleted: nobody can look into it any more.
    await until(lambda: is_gone(session, f"qmf-web_mine@{TOPIC}"), "the end of the subscription")
    # No old link makes it again.
    for method, link in (("POST", "msg-consume-next"), ("GET", "Location"), ("DELETE", "Location")):
        answer = await http.request(method, created.headers[link])
        assert answer.status_code == 410
        assert "idle for too long" in answer.json()["detail"]
        assert answer.headers["msg-pull-subscriptions"].endswith(SUBSCRIPTIONS)
    assert is_gone(session, f"qmf-web_mine@{TOPIC}")


async def test_an_idle_queue_consumer_gives_its_message_back(http: httpx.AsyncClient, session: Session) -> None:
    await http.post(f"/queues/{QUEUE}/create", content="1")
    while True:
        created = await http.post(f"/queues/{QUEUE}/pull-consumers", data={"autoAck": "false", "idle-timeout": "20"})
        pulled = await http.post(created.headers["msg-acknowledge-next"])
        if pulled.status_code != 410:  # idle again
            break
    assert pulled.content == b"1"
    assert (await asyncio.to_thread(session.receiver(QUEUE).fetch, 30)).content == b"1"
    late = await http.post(pulled.headers["msg-acknowledgement"], data={"acknowledge": "true"})
    assert late.status_code == 410
    assert late.headers["msg-pull-consumers"].endswith(f"/queues/{QUEUE}/pull-consumers")
    assert (await http.post(created.headers["msg-acknowledge-next"])).status_code == 410


async def test_a_durable_subscription_keeps_its_selector_over_servers(serve: Callable[[], FastAPI]) -> None:
    async with served(serve()) as http:
        created = await subscribe(http, durable="true", selector="http_x$kind = 'tea'")
    async with served(serve()) as http:
        await publish(http, "coffee", **{"X-Kind": "coffee"})
        await publish(http, "tea", **{"X-Kind": "tea"})
        refused = await http.post(httpx.URL(created.headers["msg-consume-next"]).path)
        assert refused.status_code == 412
        assert (await http.post(refused.headers["msg-consume-next"])).content == b"tea"


async def test_a_subscription_that_another_server_uses_is_refused(
    http: httpx.AsyncClient, second: httpx.AsyncClient
) -> None:
    created = await subscribe(http, durable="true")
    refused = await second.get(httpx.URL(created.headers["Location"]).path)
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
