"""Long answers in parts: one that many clients get is not copied for each of them while they are slow to take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

#: Bytes of a part.
_PART = 64 * 1024


def parts_of(body: bytes) -> Sequence[bytes]:
    """A body in parts."""
    return [body[at : at + _PART] for at in range(0, len(body), _PART)]


class PartsResponse(Response):
    """An answer whose parts may be those of other answers, too."""

    def __init__(self, parts: Sequence[bytes], media_type: str, headers: Mapping[str, str] | None = None) -> None:
        """Make an answer from its parts.

        Args:
            parts: of the body.
            media_type: of the body.
            headers: more headers.
        """
        length = str(sum(map(len, parts)))
        super().__init__(media_type=media_type, headers={"Content-Length": length, **(headers or {})})
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - by the interface
        """Send the answer, each part when the one before was taken."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})
