"""Logging in with an identity provider, which runs in the test."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import attrs
import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from support.identity_provider import IdentityProvider, identity_provider
from support.web import called, memory_application, web_options

from qmf.bus import MemoryExchange
from qmf.web import Scope, WebOptions
from qmf.web.access.oidc import LOGIN_TIME, LoginRefused, OidcLogins, OidcOptionError, ProviderError
from qmf.web.options import OidcOptions

BACK = "https://mq.example/login/callback"
READ = frozenset({Scope.READ})


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[IdentityProvider]:
    with identity_provider(tmp_path) as found:
        monkeypatch.setenv("SSL_CERT_FILE", str(found.ca_file))
        yield found


def oidc(provider: IdentityProvider, **changes: object) -> OidcOptions:
    options = OidcOptions(issuer=provider.url, client=provider.client, secret=provider.secret, scopes=READ)
    return attrs.evolve(options, **changes)  # type: ignore[arg-type]


async def agree(url: str, provider: IdentityProvider) -> dict[str, str]:
    """What a browser comes back with from the provider."""
    status, headers, _ = provider.answer("GET", url.removeprefix(provider.url), {}, "")
    assert status == 302
    return dict(httpx.URL(headers["Location"]).params)


async def logged_in(logins: OidcLogins, provider: IdentityProvider) -> str:
    url, state = await logins.begin_login(BACK, "/x")
    return (await logins.end_login(await agree(url, provider), state)).name


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_login(provider: IdentityProvider, method: str) -> None:
    provider.methods = [method]
    provider.claims = {"email": "ann@example.com", "sub": "7", "roles": ["operators", "guests"]}
    logins = OidcLogins(oidc(provider, user_claim="email", groups_claim="roles", request=("email",)))
    url, state = await logins.begin_login(BACK, "/objects?class=queue")
    assert httpx.URL(url).params["scope"] == "openid email"
    user = await logins.end_login(await agree(url, provider), state)
    assert (user.name, user.groups) == ("ann@example.com", frozenset({"operators", "guests"}))
    assert user.target == "/objects?class=queue"


async def test_a_public_client(provider: IdentityProvider) -> None:
    provider.secret = ""
    assert await logged_in(OidcLogins(oidc(provider, secret=None)), provider) == "ann"


async def test_a_login_is_ended_once_by_the_browser_that_began_it(provider: IdentityProvider) -> None:
    now = 0.0
    logins = OidcLogins(oidc(provider), clock=lambda: now)
    url, state = await logins.begin_login(BACK, "/")
    answer = await agree(url, provider)
    for wrong_answer, kept in [(answer, "another"), (answer, state), ({"code": "code0"}, ""), ({}, "")]:
        with pytest.raises(LoginRefused, match="not begun here"):
            await logins.end_login(wrong_answer, kept)
    url, state = await logins.begin_login(BACK, "/")
    answer = await agree(url, provider)
    now = LOGIN_TIME + 1
    with pytest.raises(LoginRefused, match="too long ago"):
        await logins.end_login(answer, state)


@pytest.mark.parametrize(
    ("claims", "error", "text"),
    [
        ({"nonce": "another"}, LoginRefused, "the token belongs to another login"),
        ({"azp": "another"}, LoginRefused, "the token is for another client"),
        ({"aud": "another"}, ProviderError, "the token is not accepted: Audience doesn't match"),
        ({"iss": "https://evil"}, ProviderError, "the token is not accepted: Invalid issuer"),
        ({"exp": 1}, ProviderError, "the token is not accepted: Signature has expired"),
        ({"sub": ""}, ProviderError, "claim 'sub' of the token is no name"),
    ],
)
async def test_a_token_that_is_not_for_this_login(
    provider: IdentityProvider, claims: dict[str, object], error: type[Exception], text: str
) -> None:
    provider.claims.update(claims)
    with pytest.raises(error, match=text):
        await logged_in(OidcLogins(oidc(provider)), provider)


async def test_a_token_of_another_key(provider: IdentityProvider) -> None:
    provider.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    with pytest.raises(ProviderError, match="Signature verification failed"):
        await logged_in(OidcLogins(oidc(provider)), provider)


async def test_an_answer_of_another_provider(provider: IdentityProvider) -> None:
    logins = OidcLogins(oidc(provider))
    url, state = await logins.begin_login(BACK, "/")
    with pytest.raises(LoginRefused, match="another identity provider"):
        await logins.end_login({**await agree(url, provider), "iss": "https://evil"}, state)


async def test_a_provider_that_refuses(provider: IdentityProvider) -> None:
    provider.error = "access_denied"
    with pytest.raises(LoginRefused, match=f"refused by {provider.url}: access_denied"):
        await logged_in(OidcLogins(oidc(provider)), provider)
    provider.error = ""
    with pytest.raises(ProviderError, match="/token answered with 401: invalid_client"):
        await logged_in(OidcLogins(oidc(provider, secret="wrong")), provider)


@pytest.mark.parametrize(
    ("metadata", "text"),
    [
        ({"issuer": "https://evil"}, "is about 'https://evil'"),
        ({"token_endpoint": "http://127.0.0.1/"}, "token_endpoint is no https URL"),
        ({"jwks_uri": None}, "jwks_uri is no https URL"),
        ({"x": "x" * 300_000}, "answered with more than 262144 bytes"),
    ],
    ids=["issuer", "plain", "keys", "large"],
)
async def test_metadata_that_cannot_be_used(provider: IdentityProvider, metadata: dict[str, object], text: str) -> None:
    provider.metadata = metadata
    with pytest.raises(ProviderError, match=text):
        await OidcLogins(oidc(provider)).begin_login(BACK, "/")


async def test_a_provider_that_is_down_or_unknown(provider: IdentityProvider, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match=r"/realm/\.well-known/openid-configuration answered with 404"):
        await OidcLogins(oidc(provider, issuer=f"{provider.url}/realm")).begin_login(BACK, "/")
    with identity_provider(tmp_path) as gone:
        options = oidc(gone)
    with pytest.raises(ProviderError, match=f"cannot reach {gone.url}/.well-known"):
        await OidcLogins(options).begin_login(BACK, "/")
    with pytest.raises(OidcOptionError, match="has an https URL"):
        OidcLogins(oidc(provider, issuer="http://id"))


async def test_logins_that_nobody_ends_are_forgotten(provider: IdentityProvider) -> None:
    logins = OidcLogins(oidc(provider))
    url, state = await logins.begin_login(BACK, "/")
    for _ in range(1000):
        await logins.begin_login(BACK, "/")
    with pytest.raises(LoginRefused, match="not begun here"):
        await logins.end_login(await agree(url, provider), state)


async def log_in(client: httpx.AsyncClient, provider: IdentityProvider, target: str = "/x") -> httpx.Response:
    """Log in as a browser does; the answer that it gets in the end."""
    sent = await client.get("/login/provider", params={"next": target})
    assert sent.status_code == 303
    return await client.get("/login/callback", params=await agree(sent.headers["location"], provider))


def application(provider: IdentityProvider, *, tls: bool = False, **options: object) -> WebOptions:
    grants = {"operators": frozenset({Scope.CALL})}
    found = oidc(provider, groups_claim="groups", grants=grants, **options)
    return web_options(oidc=found, users={"bob": "secret"}, tls=tls)


async def test_a_person_logs_in_with_the_provider(provider: IdentityProvider, caplog: pytest.LogCaptureFixture) -> None:
    provider.claims["groups"] = ["operators"]
    caplog.set_level(logging.INFO, "qmf.web.audit")
    async with called(memory_application(MemoryExchange(), application(provider))) as client:
        page = (await client.get("/login?next=/x")).text
        assert f'<a href="/login/provider?next=/x">Log in with {provider.url.removeprefix("https://")}</a>' in page
        assert 'name="password"' in page
        assert (await client.get("/api/openapi.json")).status_code == 401
        answer = await log_in(client, provider)
        assert (answer.status_code, answer.headers["location"]) == (303, "/x")
        assert (await client.get("/api/openapi.json")).status_code == 200
        # By all and by the group: read and call, and nothing else.
        assert (await client.get("/api/v1/agents")).status_code == 200
        refused = await client.head("/queues/q")
        assert refused.status_code == 403
        await client.post("/logout")
        assert (await client.get("/api/openapi.json")).status_code == 401
    logged = [json.loads(record.message) for record in caplog.records]
    done = [(line["action"], line["user"]) for line in logged if line["result"] == "done"]
    assert done == [("login", "ann"), ("logout", "ann")]


async def test_with_tls_cookies_stay_with_it(provider: IdentityProvider) -> None:
    app = memory_application(MemoryExchange(), application(provider, tls=True))
    async with called(app, "https://127.0.0.1:8672") as client:
        cookie = (await client.get("/login/provider")).headers["set-cookie"]
        assert cookie.startswith("__Host-qmf-session-login=")
        assert "; Secure" in cookie
        assert "HttpOnly" in cookie


@pytest.mark.parametrize(
    ("claims", "status", "text"),
    [
        ({"sub": "bob"}, 403, "The user bob has a password here."),
        ({"sub": "bob@QPID"}, 403, "The user bob@QPID has a password here."),
        ({"sub": "eve", "groups": ["others"]}, 403, "The user eve has no scope here, by name or by group."),
        ({"nonce": "x"}, 401, "The token belongs to another login."),
        ({"aud": "x"}, 502, "The identity provider cannot be used: "),
    ],
    ids=["user", "realm", "scopes", "nonce", "audience"],
)
async def test_who_is_not_let_in(provider: IdentityProvider, claims: dict[str, object], status: int, text: str) -> None:
    provider.claims.update(claims)
    options = application(provider, scopes=frozenset())
    async with called(memory_application(MemoryExchange(), options)) as client:
        answer = await log_in(client, provider)
        assert (answer.status_code, text in answer.text) == (status, True)
        assert (await client.get("/api/openapi.json")).status_code == 401


async def test_without_passwords(provider: IdentityProvider) -> None:
    async with called(memory_application(MemoryExchange(), web_options(oidc=oidc(provider)))) as client:
        page = (await client.get("/login")).text
        assert "Log in with" in page
        assert 'name="password"' not in page
        answer = await client.get("/api/openapi.json", auth=("ann", "secret"))
        assert answer.status_code == 401
        assert "nobody has a password here" in answer.text
        assert (await log_in(client, provider, "https://evil.example/")).headers["location"] == "/"


async def test_while_the_provider_is_down_the_page_says_so(tmp_path: Path) -> None:
    with identity_provider(tmp_path) as gone:
        options = web_options(oidc=oidc(gone))
    async with called(memory_application(MemoryExchange(), options)) as client:
        answer = await client.get("/login/provider")
        assert answer.status_code == 502
        assert f"The identity provider cannot be used: cannot reach {gone.url}" in answer.text
