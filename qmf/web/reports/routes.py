"""The route ``/report/page``: a report as a page of its own, for people."""

# No postponed annotations: those of routes name what only their function knows.

import html
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from starlette.responses import HTMLResponse, Response

from qmf.web.late_routes import LateRoute
from qmf.web.problems import Problem
from qmf.web.reports.making import ReportMaker, ReportQuestion
from qmf.web.scopes import Caller, Scope
from qmf.web.services import WebServices

#: Where reports are.
PAGE = "/report/page"

#: A report runs nothing and loads nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

_STYLE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 40rem; padding: 0 1rem; line-height: 1.5; }
[role=alert] { color: #b00020; overflow-wrap: anywhere; }
@media (prefers-color-scheme: dark) { [role=alert] { color: #ff8a80; } }
"""


def router(services: WebServices) -> APIRouter:
    """The route; without a lake there is none to report about, which it says."""
    options = services.options
    maker = None if options.lake is None else ReportMaker(options.lake, options.report_time)
    routes = APIRouter(include_in_schema=False, route_class=LateRoute)

    @routes.get(PAGE)
    async def page(
        request: Request, caller: Annotated[Caller, Depends(services.access.require(Scope.READ))]
    ) -> Response:
        try:
            if services.readers.console_of(caller) is not services.client:
                raise Problem(403, f"a report is about all objects, and the rules don't let {caller.client} read all")
            if maker is None:
                raise Problem(404, "there is no recording: start qmf-web with --lake DIR")
            found = await maker.make(ReportQuestion.parse(request.query_params))
        except Problem as problem:
            if "text/html" not in request.headers.get("accept", ""):
                raise
            return _refusal(problem, request)
        return HTMLResponse(found, headers={"Content-Security-Policy": _POLICY})

    return routes


def _refusal(problem: Problem, request: Request) -> Response:
    """What is wrong, with a link back to the form as it was filled in."""
    back = html.escape(f"/report?{urlencode(request.query_params.multi_items())}")
    text = html.escape(problem.detail)
    return HTMLResponse(
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>No report</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><h1>No report</h1>"
        f'<p role="alert">{text}</p><p><a href="{back}">Ask for another time</a></p></body></html>',
        problem.status,
        {**problem.headers, "Content-Security-Policy": _POLICY},
    )
