"""Who may: finds the caller of a request by session, token or password, and checks scopes."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from http.cookies import CookieError, SimpleCookie

from fastapi import Request
from starlette.requests import HTTPConnection

from qmf.console.aio import RemoteObject
from qmf.users.delays import FailureDelays
from qmf.users.users import Users
from qmf.web.access.audit import AuditLog
from qmf.web.access.limits import CountLimit, RateLimit, retry_after
from qmf.web.access.oidc import LoginRefused, OidcLogins, ProviderError
from qmf.web.access.rules import WebRules, called_object, full_name
from qmf.web.access.sessions import Sessions, SessionUser
from qmf.web.access.tokens import ApiTokens
from qmf.web.options import WebOptions
from qmf.web.problems import Problem
from qmf.web.scopes import ALL_SCOPES, Caller, Proof, Scope

#: The realm that clients show when they ask for a password.
REALM = 'realm="qmf-web", charset="UTF-8"'

#: Bytes of a password that are looked at; longer ones are wrong.
MAX_PASSWORD = 1000

#: Characters of a name that are remembered and logged.
_MAX_NAME = 100

#: Passwords from one address that wait to be checked.
MAX_WAITING = 100


class WebAccess:
    """Finds out who a caller is, and what it may do.

    Attributes:
        audit: the log of calls and refusals.
        streams: counts the open streams of each client.
        requests: counts the requests of each client.
        rules: about what may be read, called, sent and consumed.
    """

    def __init__(self, options: WebOptions) -> None:
        """Read users, tokens and rules.

        Raises:
            UsersError, TokensError, AclError, WebRulesError, OidcOptionError: they cannot be used.
        """
        self.audit = AuditLog()
        limits = options.limits
        self.streams = CountLimit(limits.streams, "open streams")
        self.requests = RateLimit(limits.rate, limits.burst)
        self._options = options
        self._users = None if options.users is None else Users(options.users)
        self._tokens = ApiTokens(options.tokens)
        self.rules = WebRules(options.rules)
        self._oidc = None if options.oidc is None else OidcLogins(options.oidc)
        self._sessions = Sessions(options.session_time, options.session_life)
        self._failures = FailureDelays(limits.logins)
        # A hash takes a while on purpose; one at a time, so that guessing costs one processor at most. Those of one
        # address that wait for their turn must not be all that there is to do.
        self._one_at_a_time = asyncio.Lock()
        self._waiting = CountLimit(MAX_WAITING, "passwords that are checked")

    @property
    def open(self) -> bool:
        """True without users: everybody who reaches the server may do everything."""
        return self._options.open

    @property
    def passwords(self) -> bool:
        """Whether there are users with passwords."""
        return self._users is not None

    @property
    def oidc(self) -> OidcLogins | None:
        """Logins with an identity provider, if there is one."""
        return self._oidc

    @property
    def cookie(self) -> str:
        """Name of the cookie with the secret of a session; one of ``__Host-`` is never sent without TLS."""
        return "__Host-qmf-session" if self._options.tls else f"qmf-session-{self._options.port}"

    async def caller(self, connection: HTTPConnection) -> Caller | None:
        """Who a request comes from; None when it proves nothing and there are users.

        Raises:
            Problem: 401, the token or the password is wrong; 429, too many wrong ones.
        """
        address = client_address(connection)
        scheme, _, credentials = connection.headers.get("authorization", "").partition(" ")
        match scheme.lower():
            case "bearer":
                return self._by_token(credentials.strip(), address)
            case "basic" if not self.open:
                name, password = _basic(credentials)
                await self._check_password(name, password, address)
                scopes = self._options.scopes_of(name)
                return Caller(name=name, scopes=scopes, proof=Proof.PASSWORD, address=address)
        if self.open:
            return Caller(name="", scopes=ALL_SCOPES, proof=Proof.NOTHING, address=address)
        secret = self._cookie_of(connection)
        user = self._sessions.use(secret) if secret else None
        return None if user is None or secret is None else _session_caller(user, address, secret)

    def still(self, caller: Caller) -> bool:
        """Whether a caller would still be let in: for streams, which outlive a request."""
        match caller.proof:
            case Proof.SESSION:
                user = None if caller.session is None else self._sessions.user_of(caller.session)
                return user is not None and user.name == caller.name
            case Proof.TOKEN:
                return self._tokens.holds(caller.name)
        return True

    def may_still(self, caller: Caller, scope: Scope) -> bool:
        """Whether somebody who was a caller once would have a scope now: for what outlives this process."""
        if caller.proof is Proof.TOKEN:
            return self._tokens.holds(caller.name, scope)
        if self.open:
            return True
        if caller.name in (self._options.users or ()):
            return scope in self._options.scopes_of(caller.name)
        oidc = self._options.oidc
        return caller.proof is Proof.SESSION and oidc is not None and scope in oidc.scopes_of(caller.groups)

    async def log_in(self, name: str, password: str, address: str) -> Caller:
        """Begin a session.

        Raises:
            Problem: 401, wrong; 429, too many wrong ones.
        """
        begin = time.perf_counter()
        await self._check_password(name, password, address)
        return self._begin_session(SessionUser(name, self._options.scopes_of(name)), address, begin)

    async def end_provider_login(self, answer: Mapping[str, str], kept_state: str, address: str) -> tuple[Caller, str]:
        """Begin a session for somebody for whom the identity provider vouches.

        Args:
            answer, kept_state: see `OidcLogins.end_login`.
            address: where the browser is.

        Returns:
            the caller, and the path that was asked for before.

        Raises:
            Problem: 401, refused; 403, that user may do nothing here; 502, the provider can't be used now.
        """
        if self._oidc is None or self._options.oidc is None:
            raise Problem(404, "there is no identity provider here")
        begin = time.perf_counter()
        name = ""
        try:
            found = await self._oidc.end_login(answer, kept_state)
            name = found.name
            # Both would have the same rights.
            if full_name(name) in {full_name(user) for user in self._options.users or ()}:
                raise LoginRefused(f"the user {name} has a password here")
            scopes = self._options.oidc.scopes_of(found.groups)
            if not scopes:
                raise LoginRefused(f"the user {name} has no scope here, by name or by group")
        except ProviderError as error:
            raise unusable_provider(error) from error
        except LoginRefused as error:
            self.audit.log_refused("login", name=name, address=address, reason=str(error))
            raise Problem(403 if name else 401, str(error)) from error
        return self._begin_session(SessionUser(name, scopes, found.groups), address, begin), found.target

    def log_out(self, caller: Caller) -> None:
        """End the session of a caller, if it has one."""
        if caller.session is not None:
            self._sessions.end(caller.session)
            self.audit.log_allowed(caller, "logout")

    def require(self, *scopes: Scope) -> Callable[[HTTPConnection], Awaitable[Caller]]:
        """A dependency of FastAPI's routes and websockets: the caller, who has all these scopes.

        It raises `Problem` 403 where a scope is missing, which is logged.
        """

        async def dependency(connection: HTTPConnection) -> Caller:
            return self.check(connection, *scopes)

        return dependency

    def check(self, connection: HTTPConnection, *scopes: Scope) -> Caller:
        """The caller of a request, who has all these scopes.

        Raises:
            Problem: 401, unknown; 403, a scope is missing.
        """
        caller = caller_of(connection)
        if caller is None:
            raise unauthorized_problem("who asks is unknown")
        missing = [scope.value for scope in scopes if not caller.may(scope)]
        if missing:
            reason = f"{caller.client} lacks the scope {' and '.join(missing)}"
            self.log_refused(connection, reason, caller.name)
            raise Problem(403, reason, scopes=missing)
        return caller

    def log_refused(self, connection: HTTPConnection, reason: str, name: str = "") -> None:
        """Log that a request was refused; `name` is who asked, as known so far."""
        self.audit.log_refused(
            "request", name=name, address=client_address(connection), reason=reason, path=connection.scope["path"]
        )

    @contextlib.contextmanager
    def acting(
        self, caller: Caller, action: str, obj: RemoteObject, called: str, /, **details: object
    ) -> Iterator[tuple[RemoteObject, dict[str, object]]]:
        """Something is done to an object for a caller until the end of the block: it is logged, see `AuditLog.attempt`.

        Args:
            action: in a word, for the log.
            called: the method that is called, or `SET_PROPERTIES`.
            details: more fields of the log.

        Returns:
            the object, whose agent learns the caller's name; and the fields of the log, to add some.

        Raises:
            Problem: 403, the rules deny it.
        """
        with self.audit.attempt(caller, action, agent=obj.agent, object=obj.object_id.object_name, **details) as record:
            self.rules.check(caller, called, called_object(obj))
            yield (obj.on_behalf_of(caller.name) if caller.name else obj), record

    def _begin_session(self, user: SessionUser, address: str, begin: float) -> Caller:
        caller = _session_caller(user, address, self._sessions.begin(user))
        self.audit.log_allowed(caller, "login", duration=round(time.perf_counter() - begin, 6))
        return caller

    def _by_token(self, secret: str, address: str) -> Caller:
        token = self._tokens.find(secret)
        if token is None:
            # A right one is let in at any time: it takes no guessing, and others at its address may have a wrong one.
            self._check_delay("token", "", address)
            self._on_failure("token", "", address)
            raise unauthorized_problem("the token is unknown, or void", error="invalid_token")
        return Caller(name=token.name, scopes=token.scopes, proof=Proof.TOKEN, address=address)

    async def _check_password(self, name: str, password: str, address: str) -> None:
        if self._users is None:
            if self.open:
                raise Problem(404, "there are no users here")
            raise unauthorized_problem("nobody has a password here: log in with a browser, or send a token")
        key = name[:_MAX_NAME]
        self._check_delay("login", key, address)
        right = self._users.matches_at_once(name, password) if len(password) <= MAX_PASSWORD else False
        if right is None:
            with self._waiting.one(f"address {address}"):
                async with self._one_at_a_time:
                    self._check_delay("login", key, address)  # those before this one may have been wrong
                    right = await asyncio.to_thread(self._users.matches, name, password)
        if not right:
            self._on_failure("login", key, address)
            raise unauthorized_problem("the user or the password is wrong")
        self._failures.on_success(key, address)

    def _check_delay(self, action: str, name: str, address: str) -> None:
        wait = self._failures.wait(name, address)
        if wait:
            self.audit.log_refused(action, name=name, address=address, reason="too soon after wrong ones")
            raise Problem(429, "too many wrong passwords or tokens", headers=retry_after(wait))

    def _on_failure(self, action: str, name: str, address: str) -> None:
        self._failures.on_failure(name, address)
        self.audit.log_refused(action, name=name, address=address, reason="wrong")

    def _cookie_of(self, connection: HTTPConnection) -> str | None:
        try:
            cookies = SimpleCookie(connection.headers.get("cookie", ""))
        except CookieError:
            return None
        found = cookies.get(self.cookie)
        return None if found is None else found.value


def _session_caller(user: SessionUser, address: str, secret: str) -> Caller:
    return Caller(
        name=user.name, scopes=user.scopes, proof=Proof.SESSION, address=address, session=secret, groups=user.groups
    )


def caller_of(connection: HTTPConnection) -> Caller | None:
    """The caller that the guard has found; None in front of it, or for what needs no caller."""
    found = connection.scope.get("qmf.caller")
    return found if isinstance(found, Caller) else None


def client_address(connection: HTTPConnection | Request) -> str:
    """The network address that a request comes from."""
    return connection.client.host if connection.client else "unknown"


def unauthorized_problem(detail: str, *, error: str | None = None) -> Problem:
    """The problem of a request without a known caller; tells how to prove who one is."""
    bearer = "Bearer" if error is None else f'Bearer error="{error}"'
    return Problem(401, detail, headers={"WWW-Authenticate": f"{bearer}, Basic {REALM}"})


def unusable_provider(error: ProviderError) -> Problem:
    """The problem of a login while the identity provider can't be used."""
    return Problem(502, f"the identity provider cannot be used: {error}")


def _basic(credentials: str) -> tuple[str, str]:
    try:
        text = base64.b64decode(credentials.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise unauthorized_problem("the header Authorization is malformed") from None
    name, colon, password = text.partition(":")
    if not colon or not name:
        raise unauthorized_problem("the header Authorization is malformed")
    return name, password
