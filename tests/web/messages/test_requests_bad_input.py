"""Bad input: the right status, a problem that names what is wrong, and no traceback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import pytest_asyncio
from support.web import served, web_options

from qmf.broker import EmbeddedBroker
from qmf.connecting import BrokerTarget
from qmf.web import Scope, create_application
from qmf.web.access.tokens import new_token

from .conftest import QUEUE, TOPIC, broker_of_the_chapter

#: One server for all of them: a bad request leaves nothing behind.
pytestmark = pytest.mark.asyncio(loop_scope="module")

CONSUMERS = f"/queues/{QUEUE}/pull-consumers"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with broker_of_the_chapter(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(broker: EmbeddedBroker) -> AsyncIterator[httpx.AsyncClient]:
    async with served(create_application(web_options(target=BrokerTarget.of(broker.url)), pages=False)) as http:
        yield http


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("HEAD", "/queues/nowhere", 404),
        ("GET", f"/topics/{QUEUE}", 404),
        ("GET", f"/queues/{TOPIC}", 404),
        ("GET", "/queues/%23", 404),
        ("GET", "/queues/" + "x" * 300, 404),
        ("POST", "/queues/nowhere/create", 404),
        ("POST", "/queues/nowhere/pull-consumers", 404),
        ("POST", "/topics/nowhere/pull-subscriptions", 404),
        ("DELETE", f"/queues/{QUEUE}", 405),
        ("GET", f"/queues/{QUEUE}/create", 405),
        ("PUT", CONSUMERS, 405),
        ("POST", f"/queues/{QUEUE}/pull-subscriptions", 404),
        ("GET", f"{CONSUMERS}/auto-ack/333", 404),
        ("DELETE", f"{CONSUMERS}/acknowledged/333", 404),
        ("POST", f"{CONSUMERS}/auto-ack/333/consume-next-1", 404),
        ("POST", f"{CONSUMERS}/auto-ack/333/consume-next-x", 422),
        ("POST", f"{CONSUMERS}/auto-ack/333/consume-next--1", 422),
        ("GET", f"/queues/{QUEUE}/push-consumers/333", 404),
    ],
)
async def test_wrong_paths(http: httpx.AsyncClient, method: str, path: str, status: int) -> None:
    answer = await http.request(method, path)
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    if method != "HEAD":
        assert answer.json()["status"] == status
        assert answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "content_type", "status", "what"),
    [
        ("autoAck=maybe", None, 400, "'autoAck' is 'maybe'"),
        ("autoAck=", None, 400, "'autoAck' is ''"),
        ("autoAck=true&autoAck=true", None, 400, "twice"),
        ("autoack=true", None, 400, "'autoack' is unknown; there is autoAck, selector, idle-timeout"),
        ("durable=true", None, 400, "'durable' is unknown"),
        ("idle-timeout=0", None, 400, "'idle-timeout'"),
        ("idle-timeout=1e3", None, 400, "'idle-timeout'"),
        ("selector=a%20%3D", None, 400, "selector"),
        ("selector=" + "x" * 4000, None, 400, "too long"),
        ("&&=", None, 400, "malformed"),
        ("%ff=%ff", None, 400, "unknown"),
        ("{}", "application/json", 415, "must be a form"),
    ],
)
async def test_wrong_forms(
    http: httpx.AsyncClient, body: str, content_type: str | None, status: int, what: str
) -> None:
    kind = content_type or "application/x-www-form-urlencoded"
    answer = await http.post(CONSUMERS, content=body, headers={"Content-Type": kind})
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json")
    assert what in answer.json()["detail"]


async def test_a_parameter_in_the_query_is_not_overlooked(http: httpx.AsyncClient) -> None:
    answer = await http.post(f"{CONSUMERS}?autoAck=false")
    assert answer.status_code == 400
    assert answer.json()["detail"] == "query parameter 'autoAck' is unknown; there is none here"


async def test_an_acknowledgement_says_what(http: httpx.AsyncClient) -> None:
    created = await http.post(CONSUMERS, data={"autoAck": "false"})
    url = f"{created.headers['Location']}/acknowledgement/2"
    for form in ({}, {"acknowledge": "yes"}):
        answer = await http.post(url, data=form)
        assert answer.status_code == 400
        assert "'acknowledge'" in answer.json()["detail"]


@pytest.mark.parametrize("wait", ["soon", "-1", "1e9", "nan", ""])
async def test_accept_wait_is_a_number_of_seconds(http: httpx.AsyncClient, wait: str) -> None:
    created = await http.post(CONSUMERS)
    answer = await http.post(created.headers["msg-consume-next"], headers={"Accept-Wait": wait})
    assert answer.status_code == 400
    assert "Accept-Wait" in answer.json()["detail"]


async def test_a_consumer_has_one_protocol(http: httpx.AsyncClient) -> None:
    created = await http.post(CONSUMERS)
    other = created.headers["Location"].replace("/auto-ack/", "/acknowledged/")
    assert (await http.post(f"{other}/acknowledge-next-1")).status_code == 404


async def test_bodies_have_a_limit(http: httpx.AsyncClient) -> None:
    answer = await http.post(f"/queues/{QUEUE}/create", content=b"x" * (1024 * 1024 + 1))
    assert answer.status_code == 413


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded(
    broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[httpx.AsyncClient, dict[str, str]]]:
    """A server with users, and tokens by their scope."""
    secrets, lines = {}, []
    for scope in Scope:
        secrets[scope.value], token = new_token(scope.value, frozenset([scope]), None)
        lines.append(token.line)
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    tokens.write_text("\n".join(lines))
    options = web_options(target=BrokerTarget.of(broker.url), users={"ann": "secret"}, tokens=tokens)
    async with served(create_application(options, pages=False)) as http:
        yield http, secrets


async def test_messages_need_their_scope(guarded: tuple[httpx.AsyncClient, dict[str, str]]) -> None:
    http, secrets = guarded
    for path in (f"/queues/{QUEUE}/create", CONSUMERS, f"/queues/{QUEUE}/push-consumers"):
        assert (await http.post(path)).status_code == 401
        for scope, secret in secrets.items():
            answer = await http.post(path, headers={"Authorization": f"Bearer {secret}"})
            assert (answer.status_code == 403) is (scope != "messages"), (path, scope)


async def test_users_have_to_name_the_hosts_that_may_be_pushed_to(
    guarded: tuple[httpx.AsyncClient, dict[str, str]],
) -> None:
    http, secrets = guarded
    answer = await http.post(
        f"/queues/{QUEUE}/push-consumers",
        content='<push-registration><link href="http://127.0.0.1/"/></push-registration>',
        headers={"Authorization": f"Bearer {secrets['messages']}", "Content-Type": "application/xml"},
    )
    assert answer.status_code == 403
    assert "--push-to" in answer.json()["detail"]
