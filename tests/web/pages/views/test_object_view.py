"""The page of an object: its properties and statistics, also after it was deleted."""

from __future__ import annotations

import time

from support.waiting import until
from web.pages.world import World

from qmf.console.aio import ObjectId
from qmf.views.objects import object_view
from qmf.web.pages.views.object_view import property_rows, recorded_names, statistic_rows
from qmf.web.pages.views.page_urls import PlottedValue

AGENT = "example.org:store:1"
SHELF = ObjectId("org.example.store:shelf:a/1", AGENT)


async def test_properties_have_units_descriptions_and_links(opened: World) -> None:
    rows = {row.key: row.cells[1:] for row in property_rows(object_view(await opened.shelf(1)))}
    assert [cell.text for cell in rows["limit"]] == ["9,223,372,036,854,775,809 item", "Items that fit. Can be set."]
    assert rows["storeRef"][0].text == "store main"
    assert rows["storeRef"][0].href == "/object/example.org:store:1/org.example.store:store:main"
    assert rows["built"][0].text.startswith("2023-11-1")
    assert rows["label"][0].text == "–"
    assert rows["name"][1].text.endswith("Part of the key, fixed when it was created.")


async def test_statistics_have_high_and_low_rates_and_small_plots(opened: World) -> None:
    objects, release = opened.site.follow_object(SHELF)
    await until(lambda: len(objects) == 1)
    obj = next(objects.views())
    opened.site.series.watch([(SHELF, name) for name in recorded_names(obj.schema)])
    now = time.time()
    series = opened.site.series.series_of(obj.identity.key.object_id)
    for at, value in ((now - 20, 10), (now - 10, 30), (now, 50)):
        series["sold"].add(at, value)
        series["items"].add(at, value)
    rows = {row.key: row.cells[1:] for row in statistic_rows(obj, opened.site.series, now)}
    text, rate, parts, plot, _ = rows["items"]
    assert (text.text, rate.text, [part.name for part in parts.parts]) == ("1 item", "", ["high", "low"])
    assert plot.plot
    assert plot.plot_name == "items: 10 to 50"
    assert rows["sold"][1].text == "+2/s"
    assert rows["sold"][3].button == str(PlottedValue(obj.identity.key.object_id, "sold", rate=True))
    assert rows["waiting"][0].text == "no samples"
    assert rows["open"][3].button == ""
    assert rows["weight"][4].text.startswith("Load")
    unconnected = {row.key: row.cells for row in statistic_rows(obj, opened.site.series, now, connected=False)}
    assert unconnected["sold"][2].text == ""
    release()


async def test_changes_are_recorded_while_somebody_looks(opened: World) -> None:
    objects, _ = opened.site.follow_object(SHELF)
    opened.site.series.watch([(SHELF, "items")])
    await until(lambda: opened.site.series.series_of(SHELF)["items"].last_time is not None)
    shelf = opened.agent.agent.objects[2]
    shelf.items.set(77)  # type: ignore[attr-defined]
    await opened.agent.publish()
    await until(lambda: [value for _, value in opened.site.series.series_of(SHELF)["items"].points()][-1] == 77)
    assert next(iter(objects))["items"] == 77


async def test_an_object_that_is_deleted_keeps_its_last_state(opened: World) -> None:
    objects, _ = opened.site.follow_object(SHELF)
    await until(lambda: len(objects) == 1)
    opened.agent.remove(opened.agent.agent.objects[2])
    await opened.agent.publish()
    await until(lambda: len(objects) == 0)
    last = objects.current
    assert last is not None
    assert last.values["name"] == "a/1"
