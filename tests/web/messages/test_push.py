"""Push consumers: messages arrive at URLs, are tried again, refused or kept; registrations survive."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI, Request, Response
from support.waiting import until
from support.web import served

from qmf.messaging import Session

from .conftest import QUEUE, TOPIC

PUSH = f"/queues/{QUEUE}/push-consumers"
XML = {"Content-Type": "application/xml"}


class Target:
    """A server that messages are pushed to.

    Attributes:
        requests: method, path, headers and body of each.
        answers: statuses of the next requests; afterwards 200.
        headers: of the answers.
        url: where it is.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, httpx.Headers, bytes]] = []
        self.answers: list[int] = []
        self.headers: dict[str, str] = {}
        self.url = ""
        self.app = FastAPI()
        self.app.add_api_route("/{path:path}", self._take, methods=["HEAD", "POST", "PUT"])

    async def _take(self, request: Request) -> Response:
        body = await request.body()
        self.requests.append((request.method, request.url.path, httpx.Headers(request.headers.raw), body))
        status = self.answers.pop(0) if self.answers else 200
        return Response(status_code=status, headers=self.headers)

    @property
    def bodies(self) -> list[bytes]:
        return [body for _, _, _, body in self.requests]


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    target = Target()
    async with served(target.app) as client:
        target.url = str(client.base_url).rstrip("/")
        yield target


def document(link: str, *more: str, root: str = "push-registration") -> str:
    return f"<{root}>{link}<retryWaitMillis>1</retryWaitMillis>{''.join(more)}</{root}>"


async def register(http: httpx.AsyncClient, text: str, path: str = PUSH) -> str:
    """Register; where the registration is."""
    created = await http.post(path, content=text, headers=XML)
    assert created.status_code == 201, created.text
    return str(created.headers["Location"])


async def create(http: httpx.AsyncClient, *bodies: str, path: str = f"/queues/{QUEUE}", **headers: str) -> None:
    for body in bodies:
        assert (await http.post(f"{path}/create", content=body, headers=headers)).status_code == 201


async def test_messages_of_a_queue_are_pushed(http: httpx.AsyncClient, target: Target, session: Session) -> None:
    await create(http, "before")
    location = await register(http, document(f'<link href="{target.url}/in" method="PUT" type="text/css"/>'))
    await create(http, "<order/>", **{"Content-Type": "application/xml", "X-Kind": "tea"})
    await until(lambda: len(target.requests) == 2, "both messages")
    assert [(method, path) for method, path, _, _ in target.requests] == [("PUT", "/in")] * 2
    assert target.bodies == [b"before", b"<order/>"]
    assert target.requests[0][2]["Content-Type"] == "text/css"  # for those that have no type of their own
    assert (target.requests[1][2]["Content-Type"], target.requests[1][2]["X-Kind"]) == ("application/xml", "tea")
    state = await http.get(location)
    assert state.headers["Content-Type"] == "application/xml"
    assert (await http.delete(location)).status_code == 204
    assert (await http.get(location)).status_code == 404
    await create(http, "after")
    message = await asyncio.to_thread(session.receiver(QUEUE).fetch, 30)
    assert message.content == b"after"
    assert len(target.requests) == 2


async def test_messages_of_a_topic_are_pushed(http: httpx.AsyncClient, target: Target) -> None:
    text = document(
        f'<link href="{target.url}/{{id}}/in" rel="template"/>',
        "<selector><![CDATA[http_x$n <> '1']]></selector>",
        root="push-topic-registration",
    )
    await register(http, text, f"/topics/{TOPIC}/push-subscriptions")
    await create(http, "1", path=f"/topics/{TOPIC}", **{"X-N": "1"})
    await create(http, "2", path=f"/topics/{TOPIC}", **{"X-N": "2"})
    await until(lambda: target.requests, "the message")
    _, path, _, body = target.requests[0]
    assert body == b"2"
    assert path.endswith("/in")
    assert len(path) > len("//in")


async def test_a_destination_of_another_server_gets_messages_once(http: httpx.AsyncClient, session: Session) -> None:
    session.sender("other; {create: always, node: {type: queue}}").close()
    root = str(http.base_url).rstrip("/")
    await create(http, "1", "2")
    await register(http, document(f'<link rel="destination" href="{root}/queues/other"/>'))
    receiver = session.receiver("other")
    for body in (b"1", b"2"):
        assert (await asyncio.to_thread(receiver.fetch, 30)).content == body


async def test_basic_authentication_and_headers(http: httpx.AsyncClient, target: Target) -> None:
    user = "<username>guest</username><password>geheim</password>"
    secret = f"<authentication><basic-auth>{user}</basic-auth></authentication>"
    location = await register(
        http, document(f'<link href="{target.url}"/>', secret, '<header name="X-Secret">jfd</header>')
    )
    await create(http, "1")
    await until(lambda: target.requests, "the message")
    headers = target.requests[0][2]
    assert headers["Authorization"] == "Basic " + base64.b64encode(b"guest:geheim").decode()
    assert headers["X-Secret"] == "jfd"
    shown = (await http.get(location)).text
    assert "guest" in shown
    assert "geheim" not in shown
    assert "jfd" not in shown


async def test_a_push_is_tried_again(http: httpx.AsyncClient, target: Target) -> None:
    target.answers = [500, 404, 503]
    await register(http, document(f'<link href="{target.url}"/>', "<maxRetries>5</maxRetries>"))
    await create(http, "1", "2")
    await until(lambda: len(target.requests) == 5, "all attempts")
    assert target.bodies == [b"1"] * 4 + [b"2"]


async def test_a_message_that_is_refused_is_rejected(http: httpx.AsyncClient, target: Target) -> None:
    target.answers = [400]
    await register(http, document(f'<link href="{target.url}"/>'))
    await create(http, "wrong", "right")
    await until(lambda: len(target.requests) == 2, "both messages")
    assert target.bodies == [b"wrong", b"right"]


@pytest.mark.parametrize("answers", [[500, 500], [403]])
async def test_a_registration_is_disabled_when_all_attempts_have_failed(
    http: httpx.AsyncClient, target: Target, session: Session, answers: list[int]
) -> None:
    target.answers = list(answers)
    location = await register(
        http,
        document(f'<link href="{target.url}"/>', "<maxRetries>2</maxRetries><disableOnFailure>true</disableOnFailure>"),
    )
    await create(http, "kept")

    async def disabled() -> bool:
        return "<enabled>false</enabled>" in (await http.get(location)).text

    while not await disabled():
        await asyncio.sleep(0.01)
    assert (await http.get(location)).headers["msg-push-problem"].startswith("status ")
    message = await asyncio.to_thread(session.receiver(QUEUE).fetch, 30)
    assert message.content == b"kept"
    assert len(target.requests) == len(answers)


async def test_without_disabling_a_message_is_pushed_when_the_url_takes_it(
    http: httpx.AsyncClient, target: Target
) -> None:
    target.answers = [401, 401]
    await register(http, document(f'<link href="{target.url}"/>', "<maxRetries>1</maxRetries>"))
    await create(http, "1")
    await until(lambda: len(target.requests) == 3, "the message")
    assert target.bodies == [b"1"] * 3


async def test_redirections_are_followed(http: httpx.AsyncClient, target: Target) -> None:
    target.answers = [307]
    target.headers = {"Location": "/elsewhere"}
    await register(http, document(f'<link href="{target.url}/here"/>'))
    await create(http, "1")
    await until(lambda: len(target.requests) == 2, "the message")
    assert [path for _, path, _, _ in target.requests] == ["/here", "/elsewhere"]


@pytest.mark.parametrize(("kind", "name"), [("queues", QUEUE), ("topics", TOPIC)])
async def test_durable_registrations_outlive_the_server(
    serve: Callable[..., FastAPI], target: Target, tmp_path: Path, kind: str, name: str
) -> None:
    folder = tmp_path / "push"
    factory = "push-consumers" if kind == "queues" else "push-subscriptions"
    text = document(f'<link href="{target.url}"/>', "<durable>true</durable>")
    async with served(serve(push_dir=folder)) as http:
        location = await register(http, text, f"/{kind}/{name}/{factory}")
    (file,) = folder.glob("*.xml")
    assert file.stat().st_mode & 0o077 == 0
    async with served(serve()) as http:
        await create(http, "meanwhile", path=f"/{kind}/{name}")
    async with served(serve(push_dir=folder)) as http:
        await until(lambda: target.bodies == [b"meanwhile"], "the message")
        assert (await http.delete(httpx.URL(location).path)).status_code == 204
    assert list(folder.iterdir()) == []


async def test_a_durable_registration_needs_a_folder(http: httpx.AsyncClient) -> None:
    refused = await http.post(PUSH, content=document('<link href="http://a"/>', "<durable>true</durable>"), headers=XML)
    assert refused.status_code == 409
    assert "--push-dir" in refused.json()["detail"]


async def test_hosts_that_may_be_pushed_to(serve: Callable[..., FastAPI], target: Target) -> None:
    port = httpx.URL(target.url).port
    async with served(serve(push_to=(f"127.0.0.1:{port}",))) as http:
        refused = await http.post(PUSH, content=document('<link href="http://10.0.0.1/"/>'), headers=XML)
        assert refused.status_code == 403
        # Not by a redirection either.
        target.answers = [307]
        target.headers = {"Location": "http://127.0.0.1:1/"}
        location = await register(
            http,
            document(
                f'<link href="{target.url}"/>', "<maxRetries>1</maxRetries>", "<disableOnFailure>1</disableOnFailure>"
            ),
        )
        await create(http, "1")
        while "msg-push-problem" not in (state := await http.get(location)).headers:
            await asyncio.sleep(0.01)
        assert "no host that may be pushed to" in state.headers["msg-push-problem"]


async def test_what_is_wrong_with_a_registration_is_named(http: httpx.AsyncClient) -> None:
    refused = await http.post(PUSH, content="<push-registration/>", headers=XML)
    assert (refused.status_code, refused.json()["detail"]) == (400, "there must be one link, not 0")
    refused = await http.post(PUSH, content="{}", headers={"Content-Type": "application/json"})
    assert refused.status_code == 415
