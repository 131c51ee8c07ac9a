"""Errors as problems (RFC 9457, ``application/problem+json``), with QMF's code and text where an agent sent them."""

from __future__ import annotations

import http
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from qmf.console.aio import AgentLost
from qmf.errors import (
    CallerError,
    ConstraintError,
    NetworkError,
    NotFoundError,
    PeerError,
    QmfError,
    RemoteError,
    RequestTimeout,
)
from qmf.protocol import ErrorCode

log = logging.getLogger("qmf.web")

MEDIA_TYPE = "application/problem+json"

#: Seconds after which a client may try again while there is no connection to the broker.
RETRY_AFTER = 5

#: Status for the codes of agents' exceptions; every other one says that the agent could not do it as things are: 409.
_CODES: Mapping[int, int] = {
    ErrorCode.UNKNOWN_OBJECT: 404,
    ErrorCode.UNKNOWN_METHOD: 404,
    ErrorCode.NOT_IMPLEMENTED: 501,
    ErrorCode.FEATURE_NOT_IMPLEMENTED: 501,
    ErrorCode.INVALID_PARAMETER: 422,
    ErrorCode.FORBIDDEN: 403,
}


class Problem(Exception):
    """An answer that is an error; raised by routes.

    Attributes:
        status: HTTP status.
        detail: what is wrong, in one line for people.
        extensions: more members of the JSON object.
        headers: of the answer.
    """

    def __init__(
        self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **extensions: object
    ) -> None:
        self.status = status
        self.detail = detail
        self.extensions = extensions
        self.headers = dict(headers or {})
        super().__init__(status, detail)

    def __str__(self) -> str:
        return f"{self.status} {self.title}: {self.detail}"

    @property
    def title(self) -> str:
        """The meaning of the status."""
        try:
            return http.HTTPStatus(self.status).phrase
        except ValueError:
            return "Error"

    def content(self) -> dict[str, object]:
        """The members of the JSON object."""
        return {
            "type": "about:blank",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.extensions,
        }

    def response(self) -> Response:
        """The answer."""
        return JSONResponse(self.content(), self.status, self.headers, MEDIA_TYPE)


def problem_of(error: QmfError) -> Problem:
    """The problem for an error of the console or the messaging API."""
    match error:
        case RemoteError():
            status = 409 if error.code is None else _CODES.get(error.code, 409)
            return Problem(status, str(error), code=error.code, text=error.text, agent=error.agent)
        case NotFoundError():
            # A wrong name inside a request is a value that does not fit; what is asked for is there.
            inside = error.kind.startswith(("argument", "property", "value"))
            return Problem(422 if inside else 404, str(error), near=list(error.near))
        case ConstraintError():
            return Problem(422, str(error), where=error.where, reason=error.reason)
        case CallerError():
            return Problem(400, str(error))
        case RequestTimeout():
            return Problem(504, str(error), agent=error.agent)
        case AgentLost():
            return Problem(502, str(error), agent=error.agent)
        case NetworkError():
            return Problem(503, str(error), headers={"Retry-After": str(RETRY_AFTER)})
        case PeerError():
            return Problem(502, str(error))
    return Problem(500, str(error))


def add_problem_handlers(app: FastAPI) -> None:
    """Make every error of `app` a problem; an unexpected one is logged, and its text stays inside."""

    async def on_problem(_request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)
        return error.response()

    async def on_qmf_error(_request: Request, error: Exception) -> Response:
        assert isinstance(error, QmfError)
        return problem_of(error).response()

    async def on_http_error(_request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        if "GET" in (allowed := headers.get("Allow", "").split(", ")) and "HEAD" not in allowed:
            headers["Allow"] += ", HEAD"  # see `Heads`
        return Problem(error.status_code, str(error.detail), headers=headers).response()

    async def on_invalid(_request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return _invalid(error).response()

    app.add_exception_handler(Problem, on_problem)
    app.add_exception_handler(QmfError, on_qmf_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_invalid)


def _invalid(error: RequestValidationError) -> Problem:
    """What is wrong with a request, without repeating the values that the client sent."""
    errors: list[dict[str, Any]] = [
        {"where": ".".join(str(part) for part in item.get("loc", ())), "reason": str(item.get("msg", ""))}
        for item in error.errors()
    ]
    first = errors[0] if errors else {"where": "request", "reason": "invalid"}
    # A body that is no JSON is a malformed request; anything else is a value that does not fit.
    malformed = any(item.get("type") == "json_invalid" for item in error.errors())
    return Problem(400 if malformed else 422, f"{first['where']}: {first['reason']}", errors=errors)
