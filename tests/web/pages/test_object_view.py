"""The page of an object, its events, what refers to it, and its place in graphs."""

from __future__ import annotations

import time
from typing import Any

from support.waiting import until
from web.pages.world import World, awaited

from qmf.console.aio import ObjectId
from qmf.schema import Kind, Severity
from qmf.views.names import reference_text
from qmf.web.pages.live.references import References, find_object
from qmf.web.pages.views.event_view import event_rows, events_about
from qmf.web.pages.views.graph import bus_graph, echart_options, object_graph
from qmf.web.pages.views.object_view import property_rows, recorded_names, statistic_rows
from qmf.web.pages.views.overview import connection_text, overview
from qmf.web.pages.views.page_urls import EventsUrl, PlotsUrl, PlottedValue
from qmf.web.pages.views.plots import echart_options as plot_options
from qmf.web.pages.views.plots import groups, plot_lines, value_of_line
from qmf.web.pages.views.sparkline import HEIGHT, MOST_POINTS, WIDTH, spark_line, thinned
from qmf.web.pages.views.value_texts import age_text, object_index, plain_text

AGENT = "example.org:store:1"
SHELF = ObjectId("org.example.store:shelf:a/1", AGENT)


async def test_properties_have_units_descriptions_and_links(opened: World) -> None:
    rows = {row.name: row for row in property_rows(await opened.shelf(1))}
    assert rows["limit"].text == "9,223,372,036,854,775,809 item"
    assert (rows["limit"].settable, rows["limit"].access) == (True, "can be set")
    assert rows["limit"].desc == "Items that fit"
    assert rows["storeRef"].text == "store main"
    assert rows["storeRef"].href == "/object/example.org:store:1/org.example.store:store:main"
    assert rows["built"].text.startswith("2023-11-1")
    assert rows["label"].text == "–"
    assert rows["name"].access == "part of the key, fixed when it was created"


async def test_statistics_have_high_and_low_rates_and_small_plots(opened: World) -> None:
    objects, release = opened.site.follow_object(SHELF)
    await until(lambda: len(objects) == 1)
    obj = next(iter(objects))
    opened.site.series.watch([(SHELF, name) for name in recorded_names(obj.schema)])
    now = time.time()
    series = opened.site.series.wanted(obj.object_id)
    for at, value in ((now - 20, 10), (now - 10, 30), (now, 50)):
        series["sold"].add(at, value)
        series["items"].add(at, value)
    rows = {row.name: row for row in statistic_rows(obj, opened.site.series, now)}
    assert rows["items"].text == "1 item"
    assert [name for name, _ in rows["items"].parts] == ["high", "low"]
    assert rows["sold"].rate == "+2/s"
    assert rows["sold"].plotted == PlottedValue(obj.object_id, "sold", rate=True)
    assert rows["items"].spark is not None
    assert (rows["items"].spark.low, rows["items"].spark.high) == (10, 50)
    assert rows["waiting"].text == "no samples"
    assert rows["open"].plotted is None
    assert rows["weight"].desc == "Load"
    release()


async def test_changes_are_recorded_while_somebody_looks(opened: World) -> None:
    objects, _ = opened.site.follow_object(SHELF)
    opened.site.series.watch([(SHELF, "items")])
    await until(lambda: opened.site.series.wanted(SHELF)["items"].last_time is not None)
    shelf = opened.agent.agent.objects[2]
    shelf.items.set(77)  # type: ignore[attr-defined]
    await opened.agent.publish()
    await until(lambda: [value for _, value in opened.site.series.wanted(SHELF)["items"].points()][-1] == 77)
    assert next(iter(objects))["items"] == 77


async def test_an_object_that_is_deleted_keeps_its_last_state(opened: World) -> None:
    objects, _ = opened.site.follow_object(SHELF)
    await until(lambda: len(objects) == 1)
    opened.agent.remove(opened.agent.agent.objects[2])
    await opened.agent.publish()
    await until(lambda: len(objects) == 0)
    [last] = objects.gone.values()
    assert last["name"] == "a/1"


async def test_references_are_found_both_ways(opened: World) -> None:
    store = await find_object(opened.site, ObjectId("org.example.store:store:main", AGENT))
    assert store is not None
    finder = References(opened.site)
    found = await awaited(lambda: finder.to(store), lambda items: len(items) == 3)
    await until(lambda: finder.complete)
    assert [(object_index(item.object), item.name) for item in found] == [
        ("a/0", "storeRef"),
        ("a/1", "storeRef"),
        ("a/2", "storeRef"),
    ]
    graph = await object_graph(opened.site, finder, store, 1)
    assert {node.label for node in graph.nodes} == {"main", "a/0", "a/1", "a/2", AGENT}
    assert sum(edge.label == "storeRef" for edge in graph.edges) == 3
    deeper = await object_graph(opened.site, finder, await opened.shelf(0), 2)
    assert {node.label for node in deeper.nodes} == {"main", "a/0", "a/1", "a/2", AGENT}
    assert [node.label for node in deeper.nodes if node.root] == ["a/0"]
    finder.close()
    assert await find_object(opened.site, ObjectId("org.example.store:store:other", AGENT)) is None


async def test_the_graph_of_the_bus(opened: World) -> None:
    assert {node.category for node in bus_graph(opened.site).nodes} == {"agent"}
    await opened.site.catalogue.count()
    graph = bus_graph(opened.site)
    assert {node.label for node in graph.nodes} == {AGENT, "Store (1)", "Shelf (3)"}
    edges = {(edge.source.split(":")[-1], edge.label, edge.target.split(":")[-1]) for edge in graph.edges}
    assert ("shelf", "storeRef", "store") in edges
    options: Any = echart_options(graph, dark=True)
    assert len(options["series"][0]["data"]) == 3


async def test_events_are_filtered_and_found_for_objects(opened: World) -> None:
    site = opened.site
    opened.agent.raise_event("sale", shelf="a/1", count=3)
    opened.agent.raise_event("broken", shelf="a/2")
    await opened.agent.publish()
    await until(lambda: site.events.total == 2)

    def names(url: EventsUrl) -> list[str]:
        return [row.name for row in event_rows(site.events.newest_first(), url)]

    assert names(EventsUrl()) == ["broken", "sale"]
    assert names(EventsUrl(Severity.ERROR)) == ["broken"]
    assert names(EventsUrl(classes="store:sale")) == ["sale"]
    assert names(EventsUrl(classes="sale, broken")) == ["broken", "sale"]
    assert names(EventsUrl(text="count=3 a/1")) == ["sale"]
    assert names(EventsUrl(agent="other")) == []
    [row] = events_about(site.events.newest_first(), await opened.shelf(1), 10)
    assert (row.name, row.severity, [(item.name, item.text) for item in row.arguments]) == (
        "sale",
        "notice",
        [("shelf", "a/1"), ("count", "3")],
    )
    assert [item.number for item in site.events.since(1)] == [2]
    now = time.time()
    assert sum(site.events.per_minute(now)) == 2
    assert site.events.by_severity(now)[Severity.ERROR] == 1


async def test_the_overview(opened: World) -> None:
    site = opened.site
    before = overview(site, time.time())
    assert before.objects is None
    await site.catalogue.count()
    found = overview(site, time.time())
    assert (found.objects, found.classes, found.event_classes, found.packages) == (4, 2, 2, 1)
    [agent] = found.agents
    assert (agent.name, agent.objects) == (AGENT, "4")
    summaries = {item.title: item for item in site.catalogue.classes()}
    assert summaries["Shelf"].total == 3
    assert summaries["sale"].kind is Kind.EVENT
    await opened.agent.close()
    await until(lambda: overview(site, time.time()).gone == 1)
    assert "goodbye" in overview(site, time.time()).agents[0].notes


async def test_the_loss_of_the_broker_is_told(opened: World) -> None:
    assert connection_text(opened.site.connection, time.time()) == ""
    opened.exchange.stop("it was stopped")
    await until(lambda: not opened.site.connection.connected)
    text = connection_text(opened.site.connection, time.time())
    assert "was lost" in text
    assert "it was stopped" in text
    opened.exchange.start()
    await until(lambda: opened.site.connection.connected)
    assert connection_text(opened.site.connection, time.time()) == ""


async def test_plots(opened: World) -> None:
    obj = await opened.shelf(1)
    store = opened.site.series
    store.watch([(SHELF, "sold"), (SHELF, "items")])
    now = 1_000_000.0
    for at in range(11):
        store.wanted(SHELF)["sold"].add(now - 100 + 10 * at, 100 * at)
        store.wanted(SHELF)["items"].add(now - 100 + 10 * at, at)
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


def test_small_plots() -> None:
    assert spark_line([], 100, 300) is None
    line = spark_line([(0, 1), (50, 3), (100, 2)], 100, 100)
    assert line is not None
    points = [tuple(map(float, item.split(","))) for item in line.points.split()]
    assert points[0][0] == 0
    assert points[-1][0] == WIDTH
    assert all(0 <= y <= HEIGHT for _, y in points)
    assert (line.low, line.high) == (1, 3)
    many = [(float(at), float(at % 7)) for at in range(10_000)]
    few = thinned(many, MOST_POINTS)
    assert len(few) <= MOST_POINTS + 1
    assert few == sorted(few)
    assert {value for _, value in few} >= {0.0, 6.0}


def test_texts_of_values() -> None:
    assert plain_text({"a": 1}) == '{"a": 1}'
    assert plain_text(b"\x01\xff") == "01 ff"
    assert plain_text("line\nbreak") == "line\\nbreak"
    assert reference_text("p:queue:orders") == "queue orders"
    assert reference_text("0-1-2-3") == "0-1-2-3"
    assert [age_text(seconds) for seconds in (0.2, 5.9, 3700)] == ["now", "5s", "1h 1m"]
