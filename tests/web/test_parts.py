"""Texts of a scrape as parts: how many turns of the event loop they take, and that nothing is lost."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterable, Callable, Iterable

import pytest

from qmf.web.parts import PART, gzip_parts, text_parts

Make = Callable[[Iterable[str]], AsyncIterable[bytes]]


def _gzip(texts: Iterable[str]) -> AsyncIterable[bytes]:
    return gzip_parts(text_parts(texts))


async def _turns(parts: AsyncIterable[bytes]) -> int:
    """How many turns of the loop it takes to make parts."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count())
    try:
        await asyncio.sleep(0)
        assert [part async for part in parts]
    finally:
        counting.cancel()
    return turns


@pytest.mark.parametrize("make", [text_parts, _gzip], ids=["text", "gzip"])
async def test_short_texts_take_no_turns(make: Make) -> None:
    assert await _turns(make(["one 1\n"] * 1000)) == 0


async def test_long_texts_take_a_turn_for_each_part() -> None:
    texts = ["x" * (PART // 4)] * 40
    assert await _turns(text_parts(texts)) == 10


@pytest.mark.parametrize("length", [0, 1, 1000, PART - 1, PART, 3 * PART])
async def test_nothing_is_lost(length: int) -> None:
    texts = [f"{number}é" + "x" * length for number in range(7)]
    parts = [part async for part in text_parts(texts)]
    assert b"".join(parts).decode() == "".join(texts)
    assert all(len(part) >= PART for part in parts[:-1])
    assert gzip.decompress(b"".join([part async for part in _gzip(texts)])).decode() == "".join(texts)
    assert gzip.decompress(b"".join([part async for part in _gzip([])])) == b""
