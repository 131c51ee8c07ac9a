"""Creating messages: how they are sent, ids of clients, and what is refused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import httpx
import pytest
from fastapi import FastAPI
from support.web import served

from qmf.messaging import Empty, Session

from .conftest import QUEUE, TOPIC

CREATE = f"/queues/{QUEUE}/create"


def left(session: Session) -> list[object]:
    """The content of all messages in the queue."""
    found: list[object] = []
    receiver = session.receiver(QUEUE)
    try:
        while True:
            found.append(receiver.fetch(timeout=0).content)
    except Empty:
        return found
    finally:
        session.acknowledge()
        receiver.close()


async def test_each_answer_says_where_the_next_message_is_created(http: httpx.AsyncClient, session: Session) -> None:
    url = (await http.head(f"/queues/{QUEUE}")).headers["msg-create"]
    for number in range(3):
        created = await http.post(url, content=str(number))
        assert created.status_code == 201
        url = created.headers["msg-create-next"]
    assert left(session) == [b"0", b"1", b"2"]


async def test_how_a_message_is_sent(http: httpx.AsyncClient, session: Session) -> None:
    expiration = int(time.time() * 1000) + 100_000
    for query in ("durable=true&priority=7", "ttl=50000", f"expiration={expiration}", "ttl=0&expiration=0"):
        assert (await http.post(f"{CREATE}?{query}", content="x")).status_code == 201
    receiver = session.receiver(QUEUE, capacity=10)
    first, second, third, fourth = [await asyncio.to_thread(receiver.fetch, 30) for _ in range(4)]
    assert (first.durable, first.priority, first.ttl) == (True, 7, None)
    assert (second.durable, second.priority) == (False, None)
    assert second.ttl is not None
    assert 0 < second.ttl <= 50
    assert third.ttl is not None
    assert 50 < third.ttl <= 100
    assert fourth.ttl is None


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("durable=maybe", "'durable'"),
        ("priority=10", "0 to 9"),
        ("priority=high", "'high'"),
        ("ttl=-1", "'ttl'"),
        ("ttl=99999999999999", "'ttl'"),
        ("expiration=1", "past"),
        ("color=red", "'color' is unknown"),
        ("ttl=1&ttl=2", "twice"),
    ],
)
async def test_wrong_parameters_are_named(http: httpx.AsyncClient, query: str, what: str) -> None:
    refused = await http.post(f"{CREATE}?{query}", content="x")
    assert refused.status_code == 400
    assert what in refused.json()["detail"]


async def test_a_message_with_an_id_is_created_once(http: httpx.AsyncClient, session: Session) -> None:
    template = (await http.head(f"/queues/{QUEUE}")).headers["msg-create-with-id"]
    url = template.replace("{id}", "13582001787372")
    answers = await asyncio.gather(*(http.post(url, content="1") for _ in range(5)))
    assert [answer.status_code for answer in answers] == [201] * 5
    following = answers[0].headers["msg-create-next"]
    assert following.startswith(template.replace("{id}", ""))
    assert following != url
    for _ in range(2):
        assert (await http.post(following, content="2")).status_code == 201
    assert left(session) == [b"1", b"2"]


async def test_an_id_is_one_of_its_destination(http: httpx.AsyncClient, session: Session) -> None:
    session.sender("other; {create: always, node: {type: queue}}").close()
    for path in (f"/queues/{QUEUE}", "/queues/other", f"/topics/{TOPIC}"):
        assert (await http.post(f"{path}/create/1", content="1")).status_code == 201
    assert left(session) == [b"1"]
    assert session.receiver("other").fetch(timeout=30).content == b"1"


async def test_ids_are_known_after_a_restart_and_by_no_memory_of_this_process(
    serve: Callable[[], FastAPI], session: Session
) -> None:
    for _ in range(2):
        async with served(serve()) as http:
            for id in ("a", "b"):
                assert (await http.post(f"{CREATE}/{id}", content=id)).status_code == 201
    assert left(session) == [b"a", b"b"]


async def test_a_refused_message_with_an_id_can_be_created_later(http: httpx.AsyncClient, session: Session) -> None:
    limited = "small; {create: always, node: {type: queue, x-declare: {arguments: {'qpid.max_count': 1}}}}"
    session.sender(limited).send("full")
    refused = await http.post("/queues/small/create/1", content="1")
    assert refused.status_code == 503
    assert refused.headers["Retry-After"] == "5"
    receiver = session.receiver("small")
    receiver.fetch(timeout=30)
    session.acknowledge()
    assert (await http.post("/queues/small/create/1", content="1")).status_code == 201
    assert (await http.post("/queues/small/create/1", content="1")).status_code == 201
    assert (await asyncio.to_thread(receiver.fetch, 30)).content == b"1"


async def test_an_id_of_an_unknown_queue_is_refused_and_others_go_on(http: httpx.AsyncClient, session: Session) -> None:
    assert (await http.post("/queues/nowhere/create/1", content="1")).status_code == 404
    assert (await http.post(f"{CREATE}/1", content="1")).status_code == 201
    assert left(session) == [b"1"]


@pytest.mark.parametrize("id", ["%C3%A4", "x" * 300, "%01"])
async def test_ids_that_are_none(http: httpx.AsyncClient, id: str) -> None:
    refused = await http.post(f"{CREATE}/{id}", content="1")
    assert refused.status_code == 400
    assert "id of a message" in refused.json()["detail"]


async def test_names_with_any_characters(http: httpx.AsyncClient, session: Session) -> None:
    session.sender("'my queue/ä;{x}'; {create: always, node: {type: queue}}").close()
    path = "/queues/my%20queue~2F~C3~A4;%7Bx%7D"
    links = await http.get(path)
    assert links.status_code == 200, links.text
    assert (await http.post(links.headers["msg-create"], content="1")).status_code == 201
    created = await http.post(links.headers["msg-pull-consumers"])
    assert (await http.post(created.headers["msg-consume-next"])).content == b"1"
