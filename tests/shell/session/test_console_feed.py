"""Feeds of objects: those who want the same share what is followed."""

from __future__ import annotations

from typing import Any

import pytest
from qmf_shell.session.console_feed import KEPT, ConsoleFeed, FollowRequest, SharedFollow
from support.shelf import store_agent
from support.waiting import until

from qmf._loop_thread import LoopThread
from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import Client, FollowedStore
from qmf.views.objects import object_view


def shelves(where: tuple[object, ...] = ()) -> list[FollowRequest]:
    return [FollowRequest("org.example.store", "shelf", where, 0.05, 3600.0)]


async def share(loop: LoopThread) -> None:
    exchange = MemoryExchange()
    followed: list[FollowRequest] = []
    async with store_agent(exchange, shelves=3, interval=0.05) as agent, Client(MemoryBus(exchange)) as client:

        def make(request: FollowRequest) -> SharedFollow:
            followed.append(request)
            return SharedFollow(client, request)

        store = FollowedStore(make, KEPT)
        feeds = [ConsoleFeed(loop, object_view, "") for _ in range(3)]
        seen: dict[str, Any] = {}

        def names(feed: ConsoleFeed) -> set[str]:
            seen.update({item.identity.index: item for item in feed.take().records})
            return set(seen)

        await feeds[0].start(store, shelves())
        assert not feeds[0].complete
        await until(lambda: feeds[0].complete)
        assert names(feeds[0]) == {"a/0", "a/1", "a/2"}
        await feeds[1].start(store, shelves())
        assert len(feeds[1].take().records) == 3
        shared = store.get(shelves()[0])
        assert shared is not None
        feeds[0].close()
        await until(lambda: len(shared.listeners) == 1)

        seen.clear()
        agent.add("Shelf", name="b/0", limit=77)
        await until(lambda: names(feeds[1]) == {"b/0"})
        assert seen["b/0"].values["limit"] == 77
        feeds[1].close()
        await until(lambda: not shared.listeners)
        # Nobody looks; who comes back has everything at once.
        await feeds[2].start(store, shelves())
        assert len(feeds[2].take().records) == 4
        assert followed == shelves()

        await feeds[2].start(store, shelves(("eq", "limit", ["quote", 77])))
        assert followed == [*shelves(), *shelves(("eq", "limit", ["quote", 77]))]
        await store.close()


@pytest.mark.slow
def test_feeds_of_the_same_objects_share_what_is_followed() -> None:
    loop = LoopThread("test-feeds")
    loop.run(share(loop))
    loop.stop()
