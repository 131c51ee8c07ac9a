"""The page to log in, and logging out. It needs no script, so that it works in every browser."""

from __future__ import annotations

import asyncio
import html
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from qmf.web.access.access import WebAccess, caller_of, client_address, unusable_provider
from qmf.web.access.oidc import LOGIN_TIME, OidcLogins, ProviderError
from qmf.web.late_routes import LateRoute
from qmf.web.options import WebOptions
from qmf.web.problems import Problem
from qmf.web.scopes import Caller, Proof

_STYLE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { display: grid; min-height: 90vh; place-content: center; margin: 1rem; }
form { display: grid; gap: .75rem; width: min(20rem, 90vw); }
label { display: grid; gap: .25rem; }
input, button { font: inherit; padding: .5rem; }
[role=alert] { color: #b00020; } @media (prefers-color-scheme: dark) { [role=alert] { color: #ff8a80; } }
"""

_FORM = """<form method="post" action="/login"><input type="hidden" name="next" value="{target}">
<label>User <input name="user" autocomplete="username" required autofocus></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button>Log in</button></form>
"""

#: Paths that lead to the identity provider, and back from there.
PROVIDER_PATHS = ("/login/provider", "/login/callback")


def router(access: WebAccess, options: WebOptions) -> APIRouter:
    """The routes ``/login`` and ``/logout``; they are for people, and in no description of the interface."""
    routes = APIRouter(include_in_schema=False, route_class=LateRoute)

    @routes.get("/login")
    async def show(request: Request) -> Response:
        if access.open:
            return RedirectResponse("/", 303)
        return _page(access, _target(request.query_params.get("next", "")))

    @routes.post("/login")
    async def log_in(request: Request) -> Response:
        try:
            # As long as for a header: whoever sends it has proved nothing yet.
            async with asyncio.timeout(options.limits.header_time):
                body = await request.body()
        except TimeoutError:
            raise Problem(408, "the form did not come in time", headers={"Connection": "close"}) from None
        fields = parse_qs(body.decode("utf-8", "replace"), max_num_fields=10)
        form = {name: values[0] for name, values in fields.items()}
        target = _target(form.get("next", ""))
        try:
            caller = await access.log_in(form.get("user", ""), form.get("password", ""), client_address(request))
        except Problem as problem:
            return _page(access, target, problem)
        return _let_in(access, options, caller, target)

    if access.oidc is not None:
        _add_provider(routes, access, access.oidc, options)

    @routes.post("/logout")
    async def log_out(request: Request) -> Response:
        caller = caller_of(request)
        if caller is not None and caller.proof is Proof.SESSION:
            access.log_out(caller)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(access.cookie, path="/", secure=options.tls, httponly=True, samesite="lax")
        response.headers["Clear-Site-Data"] = '"cache"'
        return response

    return routes


def _add_provider(routes: APIRouter, access: WebAccess, logins: OidcLogins, options: WebOptions) -> None:
    """The routes to the identity provider, and back from there."""
    begin_path, end_path = PROVIDER_PATHS
    # The state of a login stays in the browser that began it: nobody can be made to use somebody else's.
    cookie: dict[str, Any] = {"path": "/", "secure": options.tls, "httponly": True, "samesite": "lax"}
    name = f"{access.cookie}-login"

    @routes.get(begin_path)
    async def begin(request: Request) -> Response:
        target = _target(request.query_params.get("next", ""))
        try:
            url, state = await logins.begin_login(str(request.url.replace(path=end_path, query="")), target)
        except ProviderError as error:
            return _page(access, target, unusable_provider(error))
        response = RedirectResponse(url, 303)
        response.set_cookie(name, state, max_age=int(LOGIN_TIME), **cookie)
        return response

    @routes.get(end_path)
    async def end(request: Request) -> Response:
        answer, state = dict(request.query_params), request.cookies.get(name, "")
        response: Response
        try:
            caller, target = await access.end_provider_login(answer, state, client_address(request))
        except Problem as problem:
            response = _page(access, "/", problem)
        else:
            response = _let_in(access, options, caller, target)
        response.delete_cookie(name, **cookie)
        return response


def _let_in(access: WebAccess, options: WebOptions, caller: Caller, target: str) -> Response:
    """Send a browser with a new session where it wanted to go."""
    assert caller.session is not None
    response = RedirectResponse(target, 303)
    response.set_cookie(access.cookie, caller.session, path="/", secure=options.tls, httponly=True, samesite="lax")
    return response


def _target(text: str) -> str:
    """Where to go after logging in: a path of this server, nothing else."""
    local = text.startswith("/") and not text.startswith(("//", "/\\")) and not any(ord(char) < 32 for char in text)
    return text if local else "/"


def _page(access: WebAccess, target: str, problem: Problem | None = None) -> Response:
    alert = (
        ""
        if problem is None
        else f'<p role="alert">{html.escape(problem.detail[:1].upper() + problem.detail[1:])}.</p>'
    )
    passwords = _FORM.format(target=html.escape(target)) if access.passwords else ""
    provider = "" if access.oidc is None else _provider_link(access.oidc.issuer, target)
    text = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in - QMF</title><style>{_STYLE}</style></head>
<body><main><h1>QMF</h1>{alert}
{passwords}{provider}</main></body></html>
"""
    headers = {} if problem is None else {k: v for k, v in problem.headers.items() if k == "Retry-After"}
    return HTMLResponse(text, 200 if problem is None else problem.status, headers)


def _provider_link(issuer: str, target: str) -> str:
    link = html.escape(f"{PROVIDER_PATHS[0]}?next={quote(target, safe='/')}")
    return f'<p><a href="{link}">Log in with {html.escape(urlsplit(issuer).netloc)}</a></p>'
