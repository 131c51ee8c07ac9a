"""What is followed for many: made once, kept for a while, made again when it has ended."""

from __future__ import annotations

import asyncio

from support.waiting import until

from qmf.console.aio import FollowedStore


class Fake:
    """Follows until it is cancelled or ended."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ended = asyncio.Event()
        self.running = False

    async def run(self) -> None:
        self.running = True
        try:
            await self.ended.wait()
        finally:
            self.running = False


async def test_what_somebody_looks_at_is_followed_once() -> None:
    store = FollowedStore(Fake, 0.0)
    first, release = store.lease("a")
    second, release_too = store.lease("a")
    assert first is second is store.get("a")
    await until(lambda: first.running)
    release()
    release()
    await asyncio.sleep(0)
    assert [item.name for item in store] == ["a"]
    release_too()
    await until(lambda: not len(store) and not first.running)
    assert store.get("a") is None


async def test_who_comes_back_in_time_finds_it_running() -> None:
    store = FollowedStore(Fake, 3600.0)
    first, release = store.lease("a")
    await until(lambda: first.running)
    release()
    second, _ = store.lease("a")
    assert second is first
    await store.close()
    assert not first.running
    assert not len(store)


async def test_what_has_ended_is_made_again() -> None:
    store = FollowedStore(Fake, 0.0)
    first, release = store.lease("a")
    await until(lambda: first.running)
    first.ended.set()
    await until(lambda: not first.running)
    second, _ = store.lease("a")
    assert second is not first
    release()
    await until(lambda: second.running)
    assert store.get("a") is second  # the end of the first lease is not the end of the second
    await store.close()


async def test_only_what_nobody_looks_at_is_ended_to_make_room() -> None:
    store = FollowedStore(Fake, 3600.0)
    _, release = store.lease("a")
    store.lease("b")
    assert not store.drop_idle()
    release()
    assert store.drop_idle()
    assert [item.name for item in store] == ["b"]
    await store.close()
