"""Who may, from outside: logging in, tokens, scopes, other sites, limits."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from support.web import called, memory_application, web_options

from qmf.bus import MemoryExchange
from qmf.users.verifiers import hash_password
from qmf.web import Scope, WebLimits
from qmf.web.access.tokens import new_token

PAGE = {"accept": "text/html,*/*"}
USERS = {"ann": "secret", "bob": "other"}


def problem(response: httpx.Response) -> str:
    """The detail of a problem."""
    assert response.headers["content-type"] == "application/problem+json"
    content = response.json()
    assert content["status"] == response.status_code
    return str(content["detail"])


async def test_without_users_everybody_on_this_machine_is_let_in() -> None:
    async with called(memory_application(MemoryExchange())) as client:
        assert (await client.get("/api/openapi.json")).status_code == 200
        assert (await client.get("/login")).headers["location"] == "/"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8672", "", "127.0.0.1.evil.example", "10.0.0.1"])
async def test_a_name_that_is_not_this_servers_is_refused(host: str) -> None:
    async with called(memory_application(MemoryExchange())) as client:
        answer = await client.get("/healthz", headers={"host": host})
        assert answer.status_code == 421
        assert "this server is not" in problem(answer)


async def test_more_names_of_the_server() -> None:
    async with called(memory_application(MemoryExchange(), web_options(hosts=("mq.example",)))) as client:
        assert (await client.get("/healthz", headers={"host": "MQ.example:443"})).status_code == 200
        assert (await client.get("/healthz", headers={"host": "localhost:1"})).status_code == 200


async def test_a_password_lets_in() -> None:
    users = {"ann": hash_password("secret")}
    async with called(memory_application(MemoryExchange(), web_options(users=users))) as client:
        assert (await client.get("/api/openapi.json", auth=("ann", "secret"))).status_code == 200
        for auth in [("ann", "wrong"), ("nobody", "secret"), ("ann", "x" * 5000)]:
            answer = await client.get("/api/openapi.json", auth=auth)
            assert (answer.status_code, problem(answer)) == (401, "the user or the password is wrong")
        answer = await client.get("/api/openapi.json", headers={"authorization": "Basic !"})
        assert (answer.status_code, problem(answer)) == (401, "the header Authorization is malformed")


async def test_a_person_logs_in_and_out() -> None:
    async with called(memory_application(MemoryExchange(), web_options(users=USERS))) as client:
        answer = await client.get("/objects?class=queue", headers=PAGE)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=/objects%3Fclass%3Dqueue")
        form = (await client.get(answer.headers["location"])).text
        assert 'value="/objects?class=queue"' in form
        answer = await client.post("/login", data={"user": "ann", "password": "no", "next": "/x"})
        assert answer.status_code == 401
        assert "The user or the password is wrong." in answer.text
        answer = await client.post("/login", data={"user": "ann", "password": "secret", "next": "/x"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/x")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert (await client.get("/api/openapi.json")).status_code == 200
        await client.post("/logout")
        assert (await client.get("/api/openapi.json")).status_code == 401
        # The secret that the browser had is worth nothing any more.
        old = cookie.partition(";")[0]
        assert (await client.get("/api/openapi.json", headers={"cookie": old})).status_code == 401


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil.example", "x", "/a\r\nb: c"])
async def test_logging_in_leads_to_this_server_only(target: str) -> None:
    async with called(memory_application(MemoryExchange(), web_options(users=USERS))) as client:
        answer = await client.post("/login", data={"user": "ann", "password": "secret", "next": target})
        assert (answer.status_code, answer.headers["location"]) == (303, "/")


async def test_with_tls_the_cookie_stays_with_it() -> None:
    options = web_options(users=USERS, tls=True)
    async with called(memory_application(MemoryExchange(), options), "https://127.0.0.1:8672") as client:
        answer = await client.post("/login", data={"user": "ann", "password": "secret"})
        assert answer.headers["set-cookie"].startswith("__Host-qmf-session=")
        assert "; Secure" in answer.headers["set-cookie"]
        assert answer.headers["strict-transport-security"] == "max-age=31536000"


async def test_tokens_let_in_until_they_end(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    secret, token = new_token("ci", frozenset({Scope.READ}), None)
    past, old = new_token("old", frozenset({Scope.READ}), datetime.date(2020, 1, 1))
    file.write_text(f"# programs\n\n{token.line}\n{old.line}\n")
    options = web_options(users=USERS, tokens=file)
    async with called(memory_application(MemoryExchange(), options)) as client:

        async def ask(secret: str) -> httpx.Response:
            return await client.get("/api/openapi.json", headers={"authorization": f"Bearer {secret}"})

        assert (await ask(secret)).status_code == 200
        for wrong in (past, "qmf_nosuch", ""):
            answer = await ask(wrong)
            assert answer.status_code == 401
            assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        file.write_text("# none any more\n")
        assert (await ask(secret)).status_code == 401


async def test_guessing_is_slowed_down() -> None:
    options = web_options(users=USERS, limits=WebLimits(logins=3))
    async with called(memory_application(MemoryExchange(), options)) as client:
        for _ in range(3):
            assert (await client.get("/api/openapi.json", auth=("ann", "guess"))).status_code == 401
        answer = await client.get("/api/openapi.json", auth=("ann", "secret"))
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) > 0


async def test_guessing_locks_nobody_out(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    secret, token = new_token("ci", frozenset({Scope.READ}), None)
    file.write_text(token.line)
    options = web_options(users=USERS, tokens=file)
    app = memory_application(MemoryExchange(), options)
    async with called(app) as client:
        for _ in range(20):
            await client.get("/api/openapi.json", auth=("ann", "guess"))
            await client.get("/api/openapi.json", headers={"authorization": "Bearer guess"})
        assert (await client.get("/api/openapi.json", auth=("ann", "secret"))).status_code == 429
        assert (await client.get("/api/openapi.json", headers={"authorization": "Bearer guess"})).status_code == 429
        # Another user, and a token that is right.
        assert (await client.get("/api/openapi.json", auth=("bob", "other"))).status_code == 200
        assert (await client.get("/api/openapi.json", headers={"authorization": f"Bearer {secret}"})).status_code == 200
        # The same user from elsewhere.
        elsewhere = httpx.ASGITransport(app, client=("192.0.2.7", 1))
        async with httpx.AsyncClient(transport=elsewhere, base_url="http://127.0.0.1:8672") as other:
            assert (await other.get("/api/openapi.json", auth=("ann", "secret"))).status_code == 200


@pytest.mark.parametrize("hosts", [("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "evil.example")])
@pytest.mark.parametrize("users", [None, USERS])
async def test_two_names_of_the_server_in_one_request(hosts: tuple[str, str], users: dict[str, str] | None) -> None:
    async with called(memory_application(MemoryExchange(), web_options(users=users))) as client:
        answer = await client.get("/healthz", headers=[("host", host) for host in hosts])
        assert (answer.status_code, problem(answer)) == (400, "a request has one header Host, not 2")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "http://127.0.0.1:9999"},
    ],
)
async def test_what_another_sites_page_asks_for_is_refused(headers: dict[str, str]) -> None:
    async with called(memory_application(MemoryExchange())) as client:
        answer = await client.post("/logout", headers=headers)
        assert answer.status_code == 403
        assert "the request comes from" in problem(answer)


async def test_our_own_pages_may_ask() -> None:
    headers = {"origin": "http://127.0.0.1:8672", "sec-fetch-site": "same-origin"}
    async with called(memory_application(MemoryExchange())) as client:
        assert (await client.post("/logout", headers=headers)).status_code == 303


async def test_a_huge_body_is_refused_before_it_is_read() -> None:
    options = web_options(users=USERS, limits=WebLimits(body=1000))
    async with called(memory_application(MemoryExchange(), options)) as client:
        answer = await client.post("/login", content=b"x" * 1001)
        assert (answer.status_code, problem(answer)) == (413, "the body is longer than 1000 bytes")

        async def parts() -> AsyncIterator[bytes]:
            for _ in range(10):
                yield b"x" * 500

        answer = await client.post("/login", content=parts())
        assert (answer.status_code, problem(answer)) == (413, "the body is longer than 1000 bytes")


async def test_too_many_requests() -> None:
    options = web_options(limits=WebLimits(rate=0.001, burst=2))
    async with called(memory_application(MemoryExchange(), options)) as client:
        assert [(await client.get("/healthz")).status_code for _ in range(3)] == [200, 200, 429]


async def test_every_answer_has_security_headers() -> None:
    async with called(memory_application(MemoryExchange())) as client:
        for path in ("/healthz", "/nosuch", "/api/openapi.json"):
            headers = (await client.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
            assert headers["cache-control"] == "no-store"


async def test_an_unknown_path_and_a_wrong_method_are_problems() -> None:
    async with called(memory_application(MemoryExchange())) as client:
        assert problem(await client.get("/nosuch")) == "Not Found"
        answer = await client.post("/healthz")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
