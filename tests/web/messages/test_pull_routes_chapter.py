"""Every exchange of the chapter "Consuming Messages via Pull", in its order and with its names."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from qmf.messaging import Empty, Message, Session

from .conftest import QUEUE, TOPIC

ORDER = b"<order>...</order>"
XML = {"Content-Type": "application/xml"}


async def links(http: httpx.AsyncClient, path: str) -> httpx.Headers:
    """The headers of a destination."""
    found = await http.head(path)
    assert found.status_code == 200
    return found.headers


async def create(http: httpx.AsyncClient, body: bytes = ORDER, path: str = f"/queues/{QUEUE}") -> None:
    created = await http.post((await links(http, path))["msg-create"], content=body, headers=XML)
    assert created.status_code == 201


async def consumer(http: httpx.AsyncClient, path: str = f"/queues/{QUEUE}", **form: str) -> httpx.Response:
    """A new pull consumer."""
    headers = await links(http, path)
    factory = headers.get("msg-pull-consumers") or headers["msg-pull-subscriptions"]
    found = await http.post(factory, data=form)
    assert found.status_code == 201
    return found


def root(http: httpx.AsyncClient) -> str:
    return str(http.base_url).rstrip("/")


def last(url: str) -> str:
    return url.rpartition("/")[2]


# Creating consumers


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_the_links_of_a_queue(http: httpx.AsyncClient, method: str) -> None:
    found = await http.request(method, f"/queues/{QUEUE}")
    assert found.status_code == 200
    base = f"{root(http)}/queues/{QUEUE}"
    assert {name: value for name, value in found.headers.items() if name.startswith("msg-")} == {
        "msg-create": f"{base}/create",
        "msg-create-with-id": f"{base}/create/{{id}}",
        "msg-pull-consumers": f"{base}/pull-consumers",
        "msg-push-consumers": f"{base}/push-consumers",
    }


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_the_links_of_a_topic(http: httpx.AsyncClient, method: str) -> None:
    found = await http.request(method, f"/topics/{TOPIC}")
    assert found.status_code == 200
    base = f"{root(http)}/topics/{TOPIC}"
    assert {name: value for name, value in found.headers.items() if name.startswith("msg-")} == {
        "msg-create": f"{base}/create",
        "msg-create-with-id": f"{base}/create/{{id}}",
        "msg-pull-subscriptions": f"{base}/pull-subscriptions",
        "msg-push-subscriptions": f"{base}/push-subscriptions",
    }


async def test_an_empty_post_creates_an_auto_acknowledge_consumer(http: httpx.AsyncClient) -> None:
    found = await http.post((await links(http, f"/queues/{QUEUE}"))["msg-pull-consumers"])
    assert found.status_code == 201
    location = found.headers["Location"]
    assert location.startswith(f"{root(http)}/queues/{QUEUE}/pull-consumers/auto-ack/")
    assert found.headers["msg-consume-next"] == f"{location}/consume-next-1"


async def test_a_durable_auto_acknowledge_subscription(http: httpx.AsyncClient) -> None:
    found = await consumer(http, f"/topics/{TOPIC}", durable="true")
    location = found.headers["Location"]
    assert location.startswith(f"{root(http)}/topics/{TOPIC}/pull-subscriptions/auto-ack/")
    assert found.headers["msg-consume-next"] == f"{location}/consume-next-1"


async def test_a_consumer_with_acknowledgement(http: httpx.AsyncClient) -> None:
    found = await consumer(http, autoAck="false")
    location = found.headers["Location"]
    assert location.startswith(f"{root(http)}/queues/{QUEUE}/pull-consumers/acknowledged/")
    assert found.headers["msg-acknowledge-next"] == f"{location}/acknowledge-next-1"
    assert "msg-consume-next" not in found.headers


async def test_a_durable_subscription_with_acknowledgement(http: httpx.AsyncClient) -> None:
    found = await consumer(http, f"/topics/{TOPIC}", durable="true", autoAck="false")
    location = found.headers["Location"]
    assert location.startswith(f"{root(http)}/topics/{TOPIC}/pull-subscriptions/acknowledged/")
    assert found.headers["msg-acknowledge-next"] == f"{location}/acknowledge-next-1"


# Auto-acknowledge


async def test_pulling_several_messages(http: httpx.AsyncClient, session: Session) -> None:
    created = await consumer(http)
    await create(http)
    first = await http.post(created.headers["msg-consume-next"])
    assert (first.status_code, first.content) == (200, ORDER)
    assert first.headers["Content-Type"] == "application/xml"
    assert first.headers["msg-consumer"] == created.headers["Location"]
    assert last(first.headers["msg-consume-next"]) == "consume-next-2"

    empty = await http.post(first.headers["msg-consume-next"])
    assert empty.status_code == 503
    assert empty.headers["Retry-After"] == "5"
    assert empty.headers["msg-consume-next"] == first.headers["msg-consume-next"]
    assert empty.headers["Content-Type"] == "application/problem+json"

    await create(http, b"<order>2</order>")
    second = await http.post(empty.headers["msg-consume-next"])
    assert (second.status_code, second.content) == (200, b"<order>2</order>")
    assert last(second.headers["msg-consume-next"]) == "consume-next-3"
    # Both are acknowledged: nobody else can get them.
    assert (await http.delete(created.headers["Location"])).status_code == 204
    with pytest.raises(Empty):
        session.receiver(QUEUE).fetch(timeout=0)


async def test_a_repeated_pull_returns_the_cached_message_with_a_new_link(http: httpx.AsyncClient) -> None:
    created = await consumer(http)
    await create(http, b"1")
    await create(http, b"2")
    pulls = [await http.post(created.headers["msg-consume-next"]) for _ in range(3)]
    assert [(pull.status_code, pull.content) for pull in pulls] == [(200, b"1")] * 3
    assert {last(pull.headers["msg-consume-next"]) for pull in pulls} == {"consume-next-2"}
    assert (await http.post(pulls[0].headers["msg-consume-next"])).content == b"2"


async def test_a_client_that_crashed_finds_its_state_by_the_consumer(http: httpx.AsyncClient) -> None:
    created = await consumer(http)
    await create(http)
    pulled = await http.post(created.headers["msg-consume-next"])
    for method in ("HEAD", "GET"):
        state = await http.request(method, created.headers["Location"])
        assert state.status_code == 200
        assert state.headers["msg-consume-next"] == pulled.headers["msg-consume-next"]


async def test_a_subscription_that_is_created_again_has_the_same_state(http: httpx.AsyncClient) -> None:
    path = f"/topics/{TOPIC}"
    created = await consumer(http, path, durable="true", name="mine")
    await create(http, path=path)
    pulled = await http.post(created.headers["msg-consume-next"])
    assert pulled.content == ORDER
    again = await consumer(http, path, durable="true", name="mine")
    assert again.headers["Location"] == created.headers["Location"]
    assert again.headers["msg-consume-next"] == pulled.headers["msg-consume-next"]


async def test_after_a_server_crash_consume_next_is_refused_with_the_right_link(
    http: httpx.AsyncClient, second: httpx.AsyncClient
) -> None:
    created = await consumer(http)
    for body in (b"1", b"2"):
        await create(http, body)
    pulled = await http.post(created.headers["msg-consume-next"])
    # The other server knows as much as this one would after a crash.
    for link in (created.headers["msg-consume-next"], pulled.headers["msg-consume-next"]):
        refused = await second.post(httpx.URL(link).path)
        assert refused.status_code == 412
        assert refused.headers["Content-Type"] == "application/problem+json"
    following = await second.post(refused.headers["msg-consume-next"])
    assert (following.status_code, following.content) == (200, b"2")


# Acknowledgement


async def test_consuming_and_acknowledging(http: httpx.AsyncClient, session: Session) -> None:
    created = await consumer(http, autoAck="false")
    await create(http)
    pulled = await http.post(created.headers["msg-acknowledge-next"])
    assert (pulled.status_code, pulled.content) == (200, ORDER)
    location = created.headers["Location"]
    assert pulled.headers["msg-acknowledgement"] == f"{location}/acknowledgement/2"
    assert pulled.headers["msg-consumer"] == location
    assert "msg-acknowledge-next" not in pulled.headers

    settled = await http.post(pulled.headers["msg-acknowledgement"], data={"acknowledge": "true"})
    assert settled.status_code == 200
    assert settled.headers["msg-acknowledge-next"] == f"{location}/acknowledge-next-2"
    empty = await http.post(settled.headers["msg-acknowledge-next"])
    assert empty.status_code == 503
    assert empty.headers["msg-acknowledge-next"] == settled.headers["msg-acknowledge-next"]


async def test_a_message_that_is_not_acknowledged_comes_again(http: httpx.AsyncClient, session: Session) -> None:
    created = await consumer(http, autoAck="false")
    await create(http)
    pulled = await http.post(created.headers["msg-acknowledge-next"])
    settled = await http.post(pulled.headers["msg-acknowledgement"], data={"acknowledge": "false"})
    assert settled.status_code == 200
    # Another program gets it: it is no longer the consumer's.
    assert session.receiver(QUEUE).fetch(timeout=30).content == ORDER
    session.acknowledge()
    assert (await http.post(settled.headers["msg-acknowledge-next"])).status_code == 503


async def test_repeated_posts_of_both_kinds_are_answered_alike(http: httpx.AsyncClient) -> None:
    created = await consumer(http, autoAck="false")
    await create(http, b"1")
    await create(http, b"2")
    pulls = [await http.post(created.headers["msg-acknowledge-next"]) for _ in range(2)]
    assert [(pull.status_code, pull.content) for pull in pulls] == [(200, b"1")] * 2
    assert len({pull.headers["msg-acknowledgement"] for pull in pulls}) == 1
    url = pulls[0].headers["msg-acknowledgement"]
    settled = [await http.post(url, data={"acknowledge": "true"}) for _ in range(2)]
    assert [answer.status_code for answer in settled] == [200, 200]
    assert len({answer.headers["msg-acknowledge-next"] for answer in settled}) == 1
    refused = await http.post(url, data={"acknowledge": "false"})
    assert refused.status_code == 412
    assert (await http.post(refused.headers["msg-acknowledge-next"])).content == b"2"


async def test_after_a_server_crash_acknowledge_next_is_just_posted_again(
    http: httpx.AsyncClient, second: httpx.AsyncClient
) -> None:
    created = await consumer(http, autoAck="false")
    await create(http)
    pulled = await second.post(httpx.URL(created.headers["msg-acknowledge-next"]).path)
    assert (pulled.status_code, pulled.content) == (200, ORDER)
    settled = await second.post(pulled.headers["msg-acknowledgement"], data={"acknowledge": "true"})
    assert settled.status_code == 200


async def test_after_a_server_crash_an_acknowledgement_is_refused_with_the_right_link(
    http: httpx.AsyncClient, second: httpx.AsyncClient
) -> None:
    created = await consumer(http, autoAck="false")
    await create(http)
    pulled = await http.post(created.headers["msg-acknowledge-next"])
    refused = await second.post(httpx.URL(pulled.headers["msg-acknowledgement"]).path, data={"acknowledge": "true"})
    assert refused.status_code == 412
    assert last(refused.headers["msg-acknowledge-next"]).startswith("acknowledge-next-")


async def test_the_state_of_a_consumer_is_to_acknowledge_or_to_pull(http: httpx.AsyncClient) -> None:
    created = await consumer(http, autoAck="false")
    await create(http)
    pulled = await http.post(created.headers["msg-acknowledge-next"])
    for method in ("HEAD", "GET"):
        state = await http.request(method, created.headers["Location"])
        assert state.headers["msg-acknowledgement"] == pulled.headers["msg-acknowledgement"]
        assert "msg-acknowledge-next" not in state.headers
    settled = await http.post(pulled.headers["msg-acknowledgement"], data={"acknowledge": "true"})
    state = await http.get(created.headers["Location"])
    assert state.headers["msg-acknowledge-next"] == settled.headers["msg-acknowledge-next"]
    assert "msg-acknowledgement" not in state.headers


async def test_an_acknowledged_subscription_that_is_created_again_has_the_same_state(http: httpx.AsyncClient) -> None:
    path = f"/topics/{TOPIC}"
    form = {"durable": "true", "autoAck": "false", "name": "mine"}
    created = await consumer(http, path, **form)
    await create(http, path=path)
    pulled = await http.post(created.headers["msg-acknowledge-next"])
    again = await consumer(http, path, **form)
    assert again.headers["msg-acknowledgement"] == pulled.headers["msg-acknowledgement"]


# Blocking pulls and cleaning up


async def test_accept_wait_blocks_until_there_is_a_message(http: httpx.AsyncClient) -> None:
    created = await consumer(http)
    pull = asyncio.create_task(http.post(created.headers["msg-consume-next"], headers={"Accept-Wait": "30"}))
    state = asyncio.create_task(http.get(created.headers["Location"]))  # answered after the pull
    await create(http)
    pulled = await pull
    assert (pulled.status_code, pulled.content) == (200, ORDER)
    assert (await state).headers["msg-consume-next"] in (
        created.headers["msg-consume-next"],
        pulled.headers["msg-consume-next"],
    )


async def test_accept_wait_ends_without_a_message(http: httpx.AsyncClient) -> None:
    created = await consumer(http)
    pulled = await http.post(created.headers["msg-consume-next"], headers={"Accept-Wait": "0.05"})
    assert pulled.status_code == 503


async def test_a_deleted_consumer_is_gone_and_its_message_is_back(http: httpx.AsyncClient, session: Session) -> None:
    created = await consumer(http, autoAck="false")
    await create(http)
    await http.post(created.headers["msg-acknowledge-next"])
    assert (await http.delete(created.headers["Location"])).status_code == 204
    assert session.receiver(QUEUE).fetch(timeout=30).content == ORDER
    gone = await http.post(created.headers["msg-acknowledge-next"])
    assert gone.status_code == 410
    assert gone.headers["msg-pull-consumers"] == (await links(http, f"/queues/{QUEUE}"))["msg-pull-consumers"]


async def test_a_selector_of_http_headers(http: httpx.AsyncClient, session: Session) -> None:
    created = await consumer(http, selector="http_x$kind = 'tea'")
    url = (await links(http, f"/queues/{QUEUE}"))["msg-create"]
    await http.post(url, content=b"coffee", headers={"X-Kind": "coffee"})
    await http.post(url, content=b"tea", headers={"X-Kind": "tea"})
    pulled = await http.post(created.headers["msg-consume-next"])
    assert (pulled.content, pulled.headers["X-Kind"]) == (b"tea", "tea")
    assert (await http.post(pulled.headers["msg-consume-next"])).status_code == 503
    message: Message = session.receiver(QUEUE).fetch(timeout=30)
    assert message.content == b"coffee"
