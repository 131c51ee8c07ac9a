"""Plots of values over time."""

from __future__ import annotations

from web.pages.world import World

from qmf.console.aio import ObjectId
from qmf.views.objects import object_view
from qmf.web.pages.views.page_urls import PlotsUrl, PlottedValue
from qmf.web.pages.views.plots import echart_options as plot_options
from qmf.web.pages.views.plots import groups, plot_lines, value_of_line

AGENT = "example.org:store:1"
SHELF = ObjectId("org.example.store:shelf:a/1", AGENT)


async def test_plots(opened: World) -> None:
    obj = object_view(await opened.shelf(1))
    store = opened.site.series
    store.watch([(SHELF, "sold"), (SHELF, "items")])
    now = 1_000_000.0
    for at in range(11):
        store.series_of(SHELF)["sold"].add(now - 100 + 10 * at, 100 * at)
        store.series_of(SHELF)["items"].add(now - 100 + 10 * at, at)
    values = (
        PlottedValue(SHELF, "sold", rate=True),
        PlottedValue(SHELF, "items"),
        PlottedValue(SHELF, "name"),
        PlottedValue(ObjectId("x", AGENT), "items"),
    )
    lines = plot_lines(PlotsUrl(values), store, lambda value: obj if value.object_id == SHELF else None, now)
    assert [line.unit for line in lines] == ["item/s", "item", "", ""]
    assert lines[0].label == "Shelf a/1 sold/s"
    assert {value for _, value in lines[0].points} == {10.0}
    assert value_of_line(lines[1]) == ("10 item", "0 item", "10 item")
    assert [line.problem for line in lines[2:]] == ["not a number of this class", "the object is not there"]
    assert [len(group) for group in groups(lines, together=False)] == [1, 1, 2]
    assert [len(group) for group in groups(lines, together=True)] == [4]
    options = plot_options(lines, now, 900, dark=False)
    assert len(options["series"]) == 4  # type: ignore[arg-type]
    assert len(options["yAxis"]) == 2  # type: ignore[arg-type]
