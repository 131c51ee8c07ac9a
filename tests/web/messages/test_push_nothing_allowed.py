"""Push registrations have the rights of their owners: who may consume nothing gets nothing, and disturbs nobody."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from support.web import served
from web.messages.conftest import QUEUE, TOPIC
from web.messages.test_push import PUSH, XML, Target, document, register, target

from qmf.messaging import Session
from qmf.web import Scope
from qmf.web.access.tokens import new_token

__all__ = ["target"]

pytestmark = pytest.mark.slow

ANN, BOB, CARL = (httpx.BasicAuth(name, name[0]) for name in ("ann", "bob", "carl"))
OF_ANN = "acl allow ann@QPID all\n"
DENIED = "acl deny all all\n"
DURABLE = "<durable>true</durable>"
USERS = {"ann": "a", "bob": "b", "carl": "c"}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """The file of rules: bob may consume from a queue of his own."""
    path = tmp_path / "rules"
    path.write_text(f"{OF_ANN}acl allow bob@QPID consume queue name=${{user}}.*\n{DENIED}")
    return path


Serve = Callable[..., contextlib.AbstractAsyncContextManager[httpx.AsyncClient]]


@pytest.fixture
def serve_users(serve: Callable[..., FastAPI], rules: Path, tmp_path: Path) -> Serve:
    """Serves the application with users, rules and a folder of registrations; the client is ann."""

    @contextlib.asynccontextmanager
    async def opened(**options: object) -> AsyncIterator[httpx.AsyncClient]:
        given = {"users": USERS, "rules": rules, "push_to": ("127.0.0.1",), "push_dir": tmp_path / "push", **options}
        async with served(serve(**given)) as http:
            http.auth = ANN
            yield http

    return opened


async def disabled(http: httpx.AsyncClient, location: str) -> str | None:
    """Wait until a registration is disabled; its problem."""
    while "<enabled>false</enabled>" not in (answer := await http.get(httpx.URL(location).path)).text:
        assert answer.status_code == 200, answer.text
        await asyncio.sleep(0.01)
    problem: str | None = answer.headers.get("msg-push-problem")
    return problem


async def put(session: Session, *bodies: str) -> None:
    """Have messages in the queue."""
    sender = await asyncio.to_thread(session.sender, QUEUE)
    for body in bodies:
        await asyncio.to_thread(sender.send, body)


async def taken(session: Session) -> object:
    """The content of the message that is first in the queue."""
    message = await asyncio.to_thread(session.receiver(QUEUE).fetch, 30)
    await asyncio.to_thread(session.acknowledge, message)
    return message.content


async def test_neither_strangers_nor_users_without_rights(serve_users: Serve, target: Target, session: Session) -> None:
    text = document(f'<link href="{target.url}/mine"/>')
    async with serve_users() as http:
        named = document(f'<link href="{target.url}"/>', '<owner name="bob" proof="password"/>')
        refused = await http.post(PUSH, content=named, headers=XML)
        assert (refused.status_code, refused.json()["detail"]) == (400, "element 'owner' is not known")
        location = await register(http, document(f'<link href="{target.url}/ann"/>', DURABLE))
        assert "owner" not in (await http.get(location)).text
        paths = [
            PUSH,
            f"/topics/{TOPIC}/push-subscriptions",
            "/queues/none/push-consumers",
            f"/queues/{QUEUE}/pull-consumers",
        ]
        for auth, status in ((BOB, 403), (httpx.BasicAuth("bob", "wrong"), 401), (httpx.Auth(), 401)):
            http.auth = auth
            for path in paths:
                refused = await http.post(path, content=text, headers=XML)
                assert refused.status_code in (status, 429), (path, refused.text)
            for method in ("GET", "DELETE", "HEAD"):
                assert (await http.request(method, httpx.URL(location).path)).status_code in (status, 429)
        http.auth = ANN
        await put(session, "1")
        while not target.requests:
            await asyncio.sleep(0.01)
        assert [(path, body) for _, path, _, body in target.requests] == [("/ann", b"1")]


async def test_an_id_of_another_destination_is_taken(
    serve_users: Serve, target: Target, session: Session, tmp_path: Path
) -> None:
    await asyncio.to_thread(session.sender, "bob.jobs; {create: always}")
    named = '<push-registration id="{0}"><link href="{1}/{0}"/>' + DURABLE + "</push-registration>"
    async with serve_users() as http:
        await register(http, named.format("ann-1", target.url))
        kept = (tmp_path / "push" / "ann-1.xml").read_bytes()
        http.auth = BOB
        bobs = "/queues/bob.jobs/push-consumers"
        refused = await http.post(bobs, content=named.format("ann-1", target.url), headers=XML)
        assert (refused.status_code, refused.json()["detail"]) == (409, "there is a registration 'ann-1'")
        answers = await asyncio.gather(
            *(http.post(bobs, content=named.format("bob-1", target.url), headers=XML) for _ in range(3))
        )
        assert sorted(answer.status_code for answer in answers) == [201, 409, 409]
        assert (await http.request("DELETE", f"{bobs}/ann-1")).status_code == 404
    assert (tmp_path / "push" / "ann-1.xml").read_bytes() == kept


async def test_an_owner_loses_the_right(serve_users: Serve, target: Target, session: Session, rules: Path) -> None:
    rules.write_text(f"{OF_ANN}acl allow bob@QPID consume queue name={QUEUE}\n{DENIED}")
    async with serve_users() as http:
        http.auth = BOB
        location = await register(http, document(f'<link href="{target.url}"/>', DURABLE))
        await put(session, "1")
        while not target.requests:
            await asyncio.sleep(0.01)
        rules.write_text(OF_ANN + DENIED)
        await put(session, "2")
        http.auth = ANN
        assert await disabled(http, location) == "its owner may not consume there any more"
        assert await taken(session) == "2"
        assert target.bodies == [b"1"]


async def test_owners_are_gone_after_a_restart(
    serve_users: Serve, target: Target, session: Session, rules: Path, tmp_path: Path
) -> None:
    """By their user, scope and token; a file without an owner was written by hand."""
    rules.write_text("acl allow all all\n")
    secret, token = new_token("robot", frozenset({Scope.MESSAGES}), None)
    tokens = tmp_path / "tokens"
    tokens.write_text(token.line + "\n")
    text = document(f'<link href="{target.url}"/>', DURABLE)
    owners = {"bob": (BOB, {}), "carl": (CARL, {}), "robot": (httpx.Auth(), {"Authorization": f"Bearer {secret}"})}
    locations = []
    async with serve_users(tokens=tokens) as http:
        for auth, headers in owners.values():
            http.auth = auth
            created = await http.post(PUSH, content=text, headers={**XML, **headers})
            assert created.status_code == 201, created.text
            locations.append(created.headers["Location"])
    tokens.write_text("")
    await put(session, "1", "2", "3")
    users, grants = {"ann": "a", "carl": "c"}, {"carl": frozenset({Scope.READ})}
    async with serve_users(tokens=tokens, users=users, grants=grants) as http:
        for location in locations:
            await disabled(http, location)
    assert target.requests == []
    by_hand = document(f'<link href="{target.url}"/>', DURABLE, f"<destination>{QUEUE}</destination>")
    (tmp_path / "push" / "hand.xml").write_text(by_hand)
    async with serve_users(tokens=tokens, users=users, grants=grants):
        while len(target.requests) < 3:
            await asyncio.sleep(0.01)
    assert sorted(target.bodies) == [b"1", b"2", b"3"]
