"""Long answers in parts: one that many clients get is not copied for each of them while they are slow to take it."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

#: Bytes of a part; of a text, its characters, at least.
PART = 64 * 1024

#: A fast compression: text of metrics becomes a twentieth even so.
_LEVEL = 1


def parts_of(body: bytes) -> Sequence[bytes]:
    """A body in parts."""
    return [body[at : at + PART] for at in range(0, len(body), PART)]


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


async def text_parts(texts: Iterable[str]) -> AsyncIterator[bytes]:
    """Texts, joined to parts that are large enough to be worth a turn of the event loop, which others have after each.

    While agents send the objects of a class, a turn takes as long as what has arrived until then needs to be decoded.
    A scrape has hundreds of families, most of them short: with a turn for each, a scrape that has waited long enough
    for a large class would take as long as all of its objects, after all.

    Args:
        texts: how long one takes to make is how long others wait for their turn, at least.
    """
    waiting: list[str] = []
    size = 0
    for text in texts:
        waiting.append(text)
        size += len(text)
        if size >= PART:
            yield "".join(waiting).encode()
            waiting, size = [], 0
            await asyncio.sleep(0)
    if waiting:
        yield "".join(waiting).encode()


async def gzip_parts(parts: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Parts, compressed by gzip."""
    packer = zlib.compressobj(_LEVEL, wbits=31)
    async for part in parts:
        if len(part) < PART:
            packed = packer.compress(part)  # takes less than to wait for a thread
        else:
            # On a thread: the library works without Python's lock.
            packed = await asyncio.to_thread(packer.compress, part)
        if packed:
            yield packed
    yield packer.flush()
