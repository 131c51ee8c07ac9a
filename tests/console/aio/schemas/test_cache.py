"""The schema cache."""

from __future__ import annotations

import asyncio

import attrs
import pytest
from console.aio.objects.remotes import AGENT
from support.scripted_agent import ALARM, PACKAGE, WIDGET

from qmf.console.aio import (
    Notification,
)
from qmf.console.aio.agents.registry import Agent, info_from_name
from qmf.console.aio.schemas.cache import RETRY_AFTER, AnySchema, SchemaCache
from qmf.errors import NotFoundError
from qmf.schema import ClassKey


def ignore(_: Notification) -> None:
    return


async def test_versions_of_a_class_live_side_by_side() -> None:
    other = attrs.evolve(WIDGET, hash=ALARM.hash)

    async def fetch(key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        return WIDGET if key.hash == WIDGET.hash else other

    cache = SchemaCache(fetch, ignore)
    assert await cache.get(WIDGET.key) is WIDGET
    assert await cache.get(other.key) is other
    assert cache.classes(PACKAGE) == sorted([WIDGET.key, other.key])
    assert cache.resolve(None, "WIDGET") == [WIDGET.key, other.key]


async def test_cancelling_one_request_for_a_schema_does_not_cancel_the_others() -> None:
    ready = asyncio.Event()
    asked: list[tuple[str, ...]] = []

    async def fetch(key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        asked.append(agents)
        await ready.wait()
        return WIDGET

    cache = SchemaCache(fetch, ignore)
    cache.saw(WIDGET.key, Agent(info_from_name(AGENT)))
    one, two = (asyncio.create_task(cache.get(WIDGET.key)) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.sleep(0)
    ready.set()
    assert await two is WIDGET
    assert asked == [(AGENT,)]


async def test_a_failure_is_remembered_for_a_while() -> None:
    now = 0.0

    async def fetch(key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        raise NotFoundError("schema", str(key))

    cache = SchemaCache(fetch, ignore, lambda: now)
    assert cache.worth_asking(WIDGET.key)
    with pytest.raises(NotFoundError):
        await cache.get(WIDGET.key)
    assert not cache.worth_asking(WIDGET.key)
    now = RETRY_AFTER + 1
    assert cache.worth_asking(WIDGET.key)
    assert not cache.worth_asking(attrs.evolve(WIDGET.key, hash=None))


async def test_an_event_key_that_leaves_its_kind_out_is_found() -> None:
    async def fetch(key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        return ALARM

    cache = SchemaCache(fetch, ignore)
    cache.saw(ALARM.key, Agent(info_from_name(AGENT)))
    assert await cache.get(ClassKey(PACKAGE, "widgetAlarm", hash=ALARM.hash)) is ALARM
    with pytest.raises(NotFoundError, match="class"):
        await cache.get(ClassKey(PACKAGE, "other", hash=ALARM.hash))
