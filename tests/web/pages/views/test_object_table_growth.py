"""Pages of objects take as much work for each object, however many there are."""

from __future__ import annotations

import attrs
import pytest
from support.growth import instructions_of
from support.waiting import until
from web.pages.world import world

from qmf.web.pages.views.object_table import ClassTable
from qmf.web.pages.views.page_urls import ObjectsUrl

PACKAGE = "org.example.store"
FEW, FACTOR = 50, 8
#: A little more than eight times the work of an eighth: sorting.
MOST = 9.0


async def _work(count: int, url: ObjectsUrl) -> int:
    async with world(shelves=count) as opened:
        objects, _ = opened.site.follow_class(PACKAGE, "shelf")
        await until(lambda: len(objects) == count and objects.complete)
        table = ClassTable(opened.site, objects, PACKAGE, "shelf")
        await table.page(attrs.evolve(url, page=2))  # makes what is made once
        # Another order than the one that is kept.
        return await instructions_of(table.page(url))


@pytest.mark.parametrize(
    "url",
    [ObjectsUrl(PACKAGE, "shelf", sort="sold"), ObjectsUrl(PACKAGE, "shelf", filter="a/")],
    ids=["sort", "filter"],
)
async def test_a_page_of_objects(url: ObjectsUrl) -> None:
    few, many = await _work(FEW, url), await _work(FEW * FACTOR, url)
    assert many < MOST * few
