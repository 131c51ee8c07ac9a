"""Logging in with an identity provider: OpenID Connect, authorization code flow with PKCE (RFC 7636).

Nothing here knows HTTP requests to this server: `begin_login` says where to send a browser, and `end_login` takes what
it comes back with. The library oauthlib (extra `oidc`) makes the requests of OAuth 2.0, httpx sends them, PyJWT checks
tokens.
"""

from __future__ import annotations

import asyncio
import importlib
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote_plus

import attrs
import httpx

from qmf._extras import install_hint
from qmf.errors import CallerError, PeerError
from qmf.users.tokens import MAX_TOKEN, TokenClaims, TokenError, TokenOptions, TokenVerifier
from qmf.web.options import OidcOptions

#: Where a provider says how it is used, behind the URL of the issuer (OpenID Connect Discovery, chapter 4).
_DISCOVERY = "/.well-known/openid-configuration"
#: Seconds for which that is kept, and for an answer of the provider.
_METADATA_LIFE, _TIMEOUT = 3600.0, 10.0
#: Bytes of the largest answer.
_MAX_ANSWER = 256 * 1024
#: Seconds that somebody may take to log in there, and how many may do so at a time.
LOGIN_TIME, _MAX_LOGINS = 600.0, 1000


class OidcOptionError(CallerError):
    """Options of the identity provider that can't be used, or a library is missing."""


class ProviderError(PeerError):
    """The identity provider can't be reached, or its answer is not usable; the text names it and the reason."""


class LoginRefused(PeerError):
    """Somebody is not let in: the provider refused, or this login was not begun here; the text says which."""


@attrs.frozen(kw_only=True)
class OidcUser:
    """Somebody for whom the provider vouches.

    Attributes:
        name, groups: as its token says.
        target: path that was asked for before logging in.
    """

    name: str
    groups: frozenset[str]
    target: str


@attrs.frozen(kw_only=True)
class _Provider:
    """What a provider says about itself."""

    authorization: str
    token: str
    secret_in_body: bool
    verifier: TokenVerifier
    end: float


@attrs.frozen(kw_only=True)
class _BegunLogin:
    """A browser that was sent to the provider."""

    target: str
    redirect: str
    nonce: str
    code_verifier: str
    end: float


class OidcLogins:
    """Logins with one identity provider."""

    def __init__(self, options: OidcOptions, clock: Callable[[], float] = time.monotonic) -> None:
        """Asks nobody yet: the provider may be down while this server starts.

        Raises:
            OidcOptionError: the URL is no https URL, or a library is missing.
        """
        if not options.issuer.startswith("https://"):
            raise OidcOptionError(f"{options.issuer}: an identity provider has an https URL")
        try:
            self._oauth: Any = importlib.import_module("oauthlib.oauth2")
            importlib.import_module("jwt")
        except ImportError:
            raise OidcOptionError(f"an identity provider needs oauthlib and PyJWT: {install_hint('oidc')}") from None
        self._options = options
        self._clock = clock
        self._provider: _Provider | None = None
        self._begun: dict[str, _BegunLogin] = {}

    @property
    def issuer(self) -> str:
        """The provider's URL."""
        return self._options.issuer

    async def begin_login(self, redirect: str, target: str) -> tuple[str, str]:
        """Begin to log in.

        Args:
            redirect: URL of this server that the browser comes back to.
            target: path to show afterwards.

        Returns:
            the provider's URL for the browser, and the state, which the browser keeps and brings back.

        Raises:
            ProviderError: the provider can't be used now.
        """
        provider = await self._find_provider()
        now = self._clock()
        for state in [state for state, item in self._begun.items() if item.end < now]:
            del self._begun[state]
        if len(self._begun) >= _MAX_LOGINS:
            del self._begun[next(iter(self._begun))]
        client = self._client()
        code_verifier, nonce, state = client.create_code_verifier(64), secrets.token_urlsafe(), secrets.token_urlsafe()
        url: str = client.prepare_request_uri(
            provider.authorization,
            redirect_uri=redirect,
            scope=["openid", *self._options.request],
            state=state,
            code_challenge=client.create_code_challenge(code_verifier, "S256"),
            code_challenge_method="S256",
            nonce=nonce,
        )
        self._begun[state] = _BegunLogin(
            target=target, redirect=redirect, nonce=nonce, code_verifier=code_verifier, end=now + LOGIN_TIME
        )
        return url, state

    async def end_login(self, answer: Mapping[str, str], kept_state: str) -> OidcUser:
        """End a login with what the browser came back with.

        Args:
            answer: arguments of the URL.
            kept_state: what the browser has kept since `begin_login`; empty if nothing.

        Raises:
            ProviderError: the provider can't be used now.
            LoginRefused: the provider refused, or this browser began no such login.
        """
        state = answer.get("state", "")
        begun = self._begun.pop(state, None)
        own = secrets.compare_digest(state.encode(), kept_state.encode())
        if begun is None or begun.end < self._clock() or not own:
            raise LoginRefused("this login was not begun here, or too long ago: try again")
        if answer.get("iss", self.issuer) != self.issuer:
            raise LoginRefused("the answer comes from another identity provider")
        if "code" not in answer:
            reason = answer.get("error_description") or answer.get("error") or "no code"
            raise LoginRefused(f"refused by {self.issuer}: {reason[:200]}")
        provider = await self._find_provider()
        claims = await self._exchange(provider, begun, answer["code"])
        if not secrets.compare_digest(str(claims.claims.get("nonce", "")).encode(), begun.nonce.encode()):
            raise LoginRefused("the token belongs to another login")
        if claims.claims.get("azp", self._options.client) != self._options.client:
            raise LoginRefused("the token is for another client")
        return OidcUser(name=claims.user, groups=claims.groups, target=begun.target)

    async def _exchange(self, provider: _Provider, begun: _BegunLogin, code: str) -> TokenClaims:
        """Exchange the code that the browser brought for a token, and check it."""
        options = self._options
        basic = options.secret is not None and not provider.secret_in_body
        body = self._client().prepare_request_body(
            code=code,
            redirect_uri=begun.redirect,
            code_verifier=begun.code_verifier,
            include_client_id=not basic,
            **({"client_secret": options.secret} if options.secret and not basic else {}),
        )
        auth = None
        if basic and options.secret:  # both form-encoded first (RFC 6749, 2.3.1)
            auth = httpx.BasicAuth(quote_plus(options.client), quote_plus(options.secret))
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        found = await self._ask("POST", provider.token, content=body, headers=headers, auth=auth)
        token = found.get("id_token")
        if not isinstance(token, str) or len(token) > MAX_TOKEN:
            raise ProviderError(f"{provider.token} sent no usable ID token")
        try:
            return await asyncio.to_thread(provider.verifier.read, token)
        except TokenError as error:
            raise ProviderError(f"{self.issuer}: {error}") from error

    async def _find_provider(self) -> _Provider:
        """What the provider says about itself, asked for once an hour."""
        if self._provider is not None and self._clock() < self._provider.end:
            return self._provider
        url = self.issuer.rstrip("/") + _DISCOVERY
        found = await self._ask("GET", url)
        if found.get("issuer") != self.issuer:
            raise ProviderError(f"{url} is about {str(found.get('issuer'))[:200]!r}, not about {self.issuer!r}")
        authorization, token, keys = (
            _https_url(url, found, name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")
        )
        methods = found.get("token_endpoint_auth_methods_supported")
        options = self._options
        self._provider = _Provider(
            authorization=authorization,
            token=token,
            # Without a word, the header is what a provider takes (OpenID Connect Discovery, chapter 3).
            secret_in_body=isinstance(methods, list) and "client_secret_basic" not in methods,
            verifier=TokenVerifier(
                TokenOptions(
                    keys=keys,
                    audience=options.client,
                    issuer=options.issuer,
                    user_claim=options.user_claim,
                    groups_claim=options.groups_claim,
                )
            ),
            end=self._clock() + _METADATA_LIFE,
        )
        return self._provider

    async def _ask(self, method: str, url: str, **request: Any) -> Mapping[str, Any]:
        """The JSON object that the provider answers with."""
        try:
            # One client a request: logins are rare, and a provider that moved is found again.
            async with httpx.AsyncClient(timeout=_TIMEOUT) as client, client.stream(method, url, **request) as answer:
                body = b""
                async for chunk in answer.aiter_bytes():
                    body += chunk
                    if len(body) > _MAX_ANSWER:
                        raise ProviderError(f"{url} answered with more than {_MAX_ANSWER} bytes")
                found = httpx.Response(answer.status_code, content=body).json()
        except httpx.HTTPError as error:
            raise ProviderError(f"cannot reach {url}: {error or type(error).__name__}") from error
        except ValueError:
            raise ProviderError(f"{url} answered with no JSON (status {answer.status_code})") from None
        if not isinstance(found, Mapping):
            raise ProviderError(f"{url} answered with no JSON object (status {answer.status_code})")
        if answer.status_code != 200:
            reason = found.get("error_description") or found.get("error") or "no reason"
            raise ProviderError(f"{url} answered with {answer.status_code}: {str(reason)[:200]}")
        return found

    def _client(self) -> Any:
        return self._oauth.WebApplicationClient(self._options.client)


def _https_url(where: str, metadata: Mapping[str, Any], name: str) -> str:
    found = metadata.get(name)
    if not isinstance(found, str) or not found.startswith("https://"):
        raise ProviderError(f"{where}: {name} is no https URL")
    return found
