"""The first page of a table while its objects are being fetched; counts of objects."""

from __future__ import annotations

import asyncio

import attrs
import pytest
from support.waiting import until
from web.pages.world import World, awaited, world

from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.requests.query_answer import QueryAnswer
from qmf.console.aio import Client
from qmf.errors import RequestTimeout
from qmf.web.pages.views import first_rows as first_rows_module
from qmf.web.pages.views.first_rows import FirstPages, FirstRows, ask_first_rows
from qmf.web.pages.views.object_table import ClassTable, TablePage
from qmf.web.pages.views.page_columns import columns_of
from qmf.web.pages.views.page_urls import ObjectsUrl

PACKAGE = "org.example.store"
URL = ObjectsUrl(PACKAGE, "shelf", size=10)


async def first_rows(opened: World, url: ObjectsUrl, own: str = "") -> FirstRows:
    columns = columns_of(opened.site.catalogue.versions(PACKAGE, "shelf"))
    return await ask_first_rows(opened.site, url, columns, lambda obj: obj["name"] == own)


def names(objects: object) -> list[str]:
    assert isinstance(objects, (list, tuple))
    return [obj["name"] for obj in objects]


@pytest.mark.parametrize(
    "url",
    [
        URL,
        attrs.evolve(URL, page=2),
        attrs.evolve(URL, descending=True),
        attrs.evolve(URL, sort="sold"),
        attrs.evolve(URL, sort="sold", descending=True, page=3),
    ],
    ids=["index", "second page", "descending", "value", "value descending"],
)
async def test_they_are_those_of_the_page_when_all_are_there(url: ObjectsUrl) -> None:
    async with world(shelves=25) as opened:
        first = FirstPages(opened.site, lambda _: False)
        assert (await first.get(url)).total == 25
        objects, _ = opened.site.follow_class(PACKAGE, "shelf")
        table = ClassTable(opened.site, objects, PACKAGE, "shelf")
        table.take_first(first)
        early = await table.first_page(url)
        assert early is not None
        await until(lambda: objects.complete)
        assert await table.first_page(url) is None

        async def page() -> TablePage:
            return await table.page(url)

        whole = await awaited(page, lambda found: found.complete and found.total == 25)
        assert [row.key for row in early.rows] == [row.key for row in whole.rows]
        assert (early.total, early.pages, early.all_objects, early.complete) == (25, 3, 25, False)
        assert (whole.total, whole.pages, whole.all_objects, whole.complete) == (25, 3, 25, True)


@pytest.mark.parametrize(
    "url",
    [
        attrs.evolve(URL, filter="a/1"),
        attrs.evolve(URL, sort="sold.rate"),
        attrs.evolve(URL, sort="nothing"),
        attrs.evolve(URL, sort="agent"),
    ],
    ids=["filter", "rate", "no value", "no order of agents"],
)
async def test_what_agents_do_not_order_is_not_asked_for(url: ObjectsUrl, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world() as opened:

        def refuse(*_: object, **__: object) -> None:
            raise AssertionError

        monkeypatch.setattr(Client, "objects", refuse)
        assert (await first_rows(opened, url)).objects == ()


async def test_own_objects_make_room_for_others() -> None:
    async with world(shelves=25) as opened:
        assert names((await first_rows(opened, URL, own="a/0")).objects)[:2] == ["a/1", "a/2"]
        assert len((await first_rows(opened, URL, own="a/0")).objects) == 10
        assert names((await first_rows(opened, attrs.evolve(URL, own=True), own="a/0")).objects)[0] == "a/0"


async def test_a_page_is_sent_without_them_if_agents_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world() as opened:

        async def fail(*_: object, **__: object) -> None:
            raise RequestTimeout("query", "agent", 1.0)

        monkeypatch.setattr(Client, "objects", fail)
        assert (await first_rows(opened, URL)).objects == ()


async def test_a_page_does_not_wait_long_and_shows_them_when_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_rows_module, "WAIT", 0)
    async with world() as opened:
        answer = asyncio.Event()
        objects = Client.objects

        async def ask(client: Client, *args: object, **more: object) -> object:
            await answer.wait()
            return await objects(client, *args, **more)  # type: ignore[call-overload]

        monkeypatch.setattr(Client, "objects", ask)
        first = FirstPages(opened.site, lambda _: False)
        assert (await first.get(URL)).objects == ()
        assert (await first.get(URL)).objects == ()
        # All objects are followed behind that, since agents would have all of them to send before.
        followed, _ = opened.site.follow_class(PACKAGE, "shelf")
        followed.begin_after(first.task)
        for _ in range(20):
            await asyncio.sleep(0)
        assert followed.source_of("example.org:store:1") == ""
        answer.set()

        async def get() -> FirstRows:
            return await first.get(URL)

        assert names((await awaited(get, lambda found: found.objects)).objects) == ["a/0", "a/1", "a/2"]
        await until(lambda: followed.complete)
        assert followed.source_of("example.org:store:1") == "subscription"
        first.close()


@pytest.mark.parametrize("count", [30, 240])
async def test_agents_send_the_objects_of_the_page_and_no_more(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are; and one of each class, to count them."""
    sent: list[object] = []
    stored_item = QueryAnswer.stored_item

    def count_item(answer: QueryAnswer, obj: ManagedObject) -> object:
        sent.append(obj)
        return stored_item(answer, obj)

    monkeypatch.setattr(QueryAnswer, "stored_item", count_item)
    async with world(shelves=count) as opened:
        found = await first_rows(opened, attrs.evolve(URL, sort="sold"))
        assert (len(sent), found.total) == (10, count)
        sent.clear()
        await opened.site.catalogue.count()
        shelves = opened.site.catalogue.find(PACKAGE, "shelf")
        assert shelves is not None
        assert shelves.total == count
        assert len(sent) <= len(opened.site.client.known_classes())
