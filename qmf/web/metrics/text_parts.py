"""Long texts as parts of an answer, of which each is large enough to be worth a turn of the event loop.

While agents send the objects of a class, a turn of the loop takes as long as what has arrived until then needs to be
decoded. A scrape has hundreds of families, most of them short: with a turn for each, a scrape that has waited long
enough for a large class would take as long as all of its objects, after all.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterable

#: Characters of a part at least, but of the last one.
PART = 64 * 1024

#: A fast compression: text of metrics becomes a twentieth even so.
_LEVEL = 1


async def text_parts(texts: Iterable[str]) -> AsyncIterator[bytes]:
    """Texts, joined to parts; others have their turn after each.

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
