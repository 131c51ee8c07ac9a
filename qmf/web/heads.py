"""HEAD wherever there is GET: an ASGI middleware around the routes, which have to know GET only."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class _Answered(Exception):
    """The headers are sent: nobody wants the rest."""


class Heads:
    """Has HEAD answered as GET, without the body; a stream ends at once."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] != "http.response.body":
                await send(message)
                return
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            raise _Answered

        try:
            await self.app({**scope, "method": "GET"}, receive, send_head)
        except _Answered:
            return
