"""Tables of objects: filter, order, pages, columns, rates; over objects that are followed."""

from __future__ import annotations

import attrs
import pytest
from support.waiting import until
from web.pages.world import World, awaited, world

from qmf.web.pages.live.followed import LiveObjects
from qmf.web.pages.views.object_table import ClassTable, ClassTables, TablePage
from qmf.web.pages.views.page_urls import ObjectsUrl

PACKAGE = "org.example.store"
SHELVES = ObjectsUrl(PACKAGE, "shelf")


async def followed(opened: World, name: str = "shelf", count: int = 3) -> LiveObjects:
    objects, _ = opened.site.follow_class(PACKAGE, name)
    await until(lambda: len(objects) == count and objects.complete)
    return objects


async def table(opened: World, count: int = 3) -> ClassTable:
    objects = await followed(opened, count=count)
    return ClassTable(opened.site, objects, PACKAGE, "shelf")


def names(page: TablePage) -> list[str]:
    return [row.cells[0].text for row in page.rows]


def cells(page: TablePage, name: str) -> list[str]:
    at = [column.name for column in page.columns].index(name)
    return [row.cells[at].text for row in page.rows]


async def test_the_columns_that_matter_are_shown(opened: World) -> None:
    page = await (await table(opened)).page(SHELVES)
    shown = [column.name for column in page.columns]
    assert shown[0] == "index"
    assert {"items", "sold", "sold.rate", "weight"} <= set(shown)
    assert "agent" not in shown
    assert names(page) == ["a/0", "a/1", "a/2"]
    assert cells(page, "sold") == ["0", "10", "20"]
    assert page.rows[1].cells[0].href == "/object/example.org:store:1/org.example.store:shelf:a~2F1"
    assert (page.total, page.all_objects, page.page, page.pages, page.complete) == (3, 3, 1, 1, True)
    assert page.agents == ("example.org:store:1",)


async def test_columns_are_chosen(opened: World) -> None:
    page = await (await table(opened)).page(attrs.evolve(SHELVES, columns=("storeRef", "limit", "nonsense")))
    assert [column.name for column in page.columns] == ["index", "storeRef", "limit"]
    assert page.rows[0].cells[1].text == "store main"
    assert page.rows[0].cells[1].href.endswith(":store:main")
    assert page.columns[2].unit == "item"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ["a/0", "a/1", "a/2"]),
        ("a/1", ["a/1"]),
        ("A/1", ["a/1"]),
        ("-a/1", ["a/0", "a/2"]),
        ("sold>=10", ["a/1", "a/2"]),
        ("sold=10", ["a/1"]),
        ("sold!=10 weight<2", ["a/0"]),
        ("name~[12]$", ["a/1", "a/2"]),
        ("name!~[12]$", ["a/0"]),
        ("storeRef=main sold>0.01k", ["a/2"]),
        ("storeRef=other", []),
        ("limit=9223372036854775809", ["a/1"]),
        ("open=no", ["a/0", "a/1", "a/2"]),
        ("open=true", []),
        ("'a/2'", ["a/2"]),
        ("sold > 5", ["a/1", "a/2"]),
        ("sold==10", ["a/1"]),
        ("sold>15 or sold=0", ["a/0", "a/2"]),
        ("not (sold>15 or sold=0)", ["a/1"]),
        ("'sold>5'", []),
        ("name=A/1", ["a/1"]),
        ("name==A/1", []),
        ("label!=x", ["a/0", "a/1", "a/2"]),
        ("has label", []),
        ("has sold has storeRef", ["a/1", "a/2"]),
        ("waiting>5", []),
        ("sold.rate>1", []),
        ("class=shelf", ["a/0", "a/1", "a/2"]),
        ("broker~nowhere", []),
        ("updated>5m built<2024-01-01", ["a/0", "a/1", "a/2"]),
        ("updated<5m", []),
    ],
)
async def test_filters(opened: World, text: str, found: list[str]) -> None:
    page = await (await table(opened)).page(attrs.evolve(SHELVES, filter=text))
    assert page.problem == ""
    assert names(page) == found
    assert page.total == len(found)
    assert page.all_objects == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sold>x", "'x' is not a value of sold: not a number"),
        ("nothing>3", "no value of Shelf 'nothing'"),
        ("name~[", "not a regular expression"),
        ("nothing=5", "no value of Shelf 'nothing'"),
        ("lable~x", "no value of Shelf 'lable'; did you mean label"),
        ("open=maybe", "'maybe' is not a value of open: neither true nor false"),
        ("sold>5 or", "expected a word or the name of a value at the end of the condition"),
        ("'x", "the quote ' in column 1 is not closed"),
    ],
)
async def test_a_filter_that_cannot_be_understood_is_explained_and_hides_nothing(
    opened: World, text: str, problem: str
) -> None:
    page = await (await table(opened)).page(attrs.evolve(SHELVES, filter=text))
    assert problem in page.problem
    assert page.total == 3


async def test_order_and_pages() -> None:
    async with world(shelves=120) as opened:
        shelves = await table(opened, 120)
        page = await shelves.page(attrs.evolve(SHELVES, sort="sold", descending=True, page=2, size=25))
        assert cells(page, "sold") == [f"{10 * number:,}" for number in range(94, 69, -1)]
        assert (page.page, page.pages, page.total) == (2, 5, 120)
        last = await shelves.page(attrs.evolve(SHELVES, page=99, size=50))
        assert last.page == 3
        # By name in natural order: a/9 comes before a/10.
        assert names(last) == [f"a/{number}" for number in range(100, 120)]


async def test_changes_are_seen_and_rates_measured(opened: World) -> None:
    shelves = await table(opened)
    url = attrs.evolve(SHELVES, columns=("sold", "sold.rate"), sort="sold", descending=True)
    await shelves.page(url)
    first = opened.agent.agent.objects[1]
    first.sold.set(5000)  # type: ignore[attr-defined]
    await opened.agent.publish()
    page = await awaited(lambda: shelves.page(url), lambda found: cells(found, "sold")[0] == "5,000")
    assert names(page)[0] == "a/0"
    assert shelves.objects.rate("sold", page.rows[0].object_id) is not None
    assert shelves.objects.rate("items", page.rows[0].object_id) is None


async def test_tables_are_shared_until_their_objects_are_followed_anew(opened: World) -> None:
    objects = await followed(opened)
    tables = ClassTables(opened.site)
    one = tables.of(PACKAGE, "shelf", objects)
    assert tables.of(PACKAGE, "shelf", objects) is one


async def test_objects_stay_while_the_broker_is_lost_and_those_that_do_not_return_go(opened: World) -> None:
    objects = await followed(opened)
    gone = opened.agent.agent.objects[2]
    opened.exchange.stop()
    await until(lambda: not opened.site.connection.connected)
    assert len(objects) == 3
    opened.agent.remove(gone)
    opened.exchange.start()
    await until(lambda: opened.site.connection.connected)
    await until(lambda: opened.site.agents.get("example.org:store:1") is not None)
    await until(lambda: objects.complete and len(opened.client.agents) == 1)

    def without_the_removed() -> bool:
        opened.site.drop_stale()
        return len(objects) == 2

    await until(without_the_removed)
    assert opened.site.connection.losses == 1


@pytest.mark.parametrize("descending", [False, True])
async def test_objects_without_a_value_come_last_in_either_direction(opened: World, *, descending: bool) -> None:
    opened.agent.add("Shelf", name="b/0", label="x")
    opened.agent.add("Shelf", name="b/1", label="y")
    url = attrs.evolve(SHELVES, sort="label", descending=descending)
    page = await awaited(lambda: shown(opened, url), lambda page: page.total == 5)
    labelled = ["b/0", "b/1"]
    assert names(page) == [*(reversed(labelled) if descending else labelled), "a/0", "a/1", "a/2"]


async def shown(opened: World, url: ObjectsUrl) -> TablePage:
    objects, _ = opened.site.follow_class(PACKAGE, "shelf")
    return await ClassTable(opened.site, objects, PACKAGE, "shelf").page(url)
