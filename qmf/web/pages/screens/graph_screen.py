"""The graph of references and agents; and the same as a table, for the keyboard and readers of the screen."""

from __future__ import annotations

import json
import time

import attrs
from nicegui import ui
from nicegui.events import EChartPointClickEventArguments

from qmf.views.broker_fields import FEDERATION_PACKAGE, ROUTE
from qmf.views.text import clean, plural
from qmf.web.pages.live.references import find_object
from qmf.web.pages.screens.data_table import DataTable
from qmf.web.pages.screens.open_page import OpenPage
from qmf.web.pages.views.data_rows import Cell, DataColumn, DataRow
from qmf.web.pages.views.graph import Graph, bus_graph, echart_options, object_graph
from qmf.web.pages.views.page_texts import object_title
from qmf.web.pages.views.page_urls import MOST_DEPTH, GraphUrl, object_url

#: Seconds between two looks at what belongs together.
PAUSE = 10.0

_COLUMNS = (DataColumn("from", "From"), DataColumn("what", "Refers by"), DataColumn("to", "To"))


async def graph_screen(visit: OpenPage, url: GraphUrl) -> None:
    """Build the graph."""
    site = visit.site
    finder = visit.references()
    if url.root is None:
        visit.follow_class(FEDERATION_PACKAGE, ROUTE)
    root = None if url.root is None else await find_object(site, url.root)
    name = "" if url.root is None else object_title(root) if root is not None else clean(url.root.object_name)
    title = f"Graph of {name}" if name else "Graph"
    desc = (
        "What it refers to, and what refers to it."
        if name
        else "Agents, their classes, how these refer to each other, and the routes between brokers."
    )
    current = url
    shown: Graph | None = None
    next_look = 0.0
    with visit.page(title, desc):
        with ui.element("div").classes("qmf-bar"):
            depth = ui.select(list(range(1, MOST_DEPTH + 1)), value=url.depth, label="Steps")
            depth.props("dense outlined options-dense").set_visibility(root is not None)
            note = ui.label().classes("qmf-count").props('role="status"')
            ui.element("div").classes("qmf-grow")
            if url.root is not None:
                ui.link("The object", object_url(url.root))
                ui.link("The whole bus", "/graph")
            dark = ui.checkbox("dark").classes("sr-only").props('aria-hidden="true" tabindex=-1')
        if url.root is not None and root is None:
            ui.label("There is no such object, or its agent is not there.").classes("qmf-problem")
            return
        chart = ui.echart({"series": []}, on_point_click=lambda event: on_click(event)).classes("qmf-plot qmf-graph")
        chart.props('role="img" aria-label="Graph; the table below says the same"')
        table = DataTable("References", _COLUMNS, empty="Nothing refers to anything.")
    visit.follow_theme(dark)

    def on_click(event: EChartPointClickEventArguments) -> None:
        data: object = event.data
        href = data.get("href") if isinstance(data, dict) else None
        if isinstance(href, str) and href.startswith("/"):
            ui.navigate.to(href)

    def draw() -> None:
        if shown is None:
            return
        chart.options.clear()
        chart.options.update(echart_options(shown, dark=bool(dark.value)))
        chart.update()

    async def update() -> None:
        nonlocal shown, next_look
        site.count_objects()
        if time.monotonic() < next_look:
            return
        found = bus_graph(site) if root is None else await object_graph(site, finder, root, current.depth)
        complete = (root is None and site.catalogue.counted_at is not None) or (root is not None and finder.complete)
        next_look = time.monotonic() + (PAUSE if complete else 0.0)
        if found == shown:
            return
        shown = found
        left = f"; {plural(found.left_out, 'more node')} not shown" if found.left_out else ""
        note.set_text(f"{plural(len(found.nodes), 'node')}, {plural(len(found.edges), 'arrow')}{left}")
        nodes = {node.key: node for node in found.nodes}
        table.show(
            [
                DataRow(
                    json.dumps([edge.source, edge.label, edge.target]),
                    (
                        Cell(nodes[edge.source].label, nodes[edge.source].href, "strong"),
                        Cell(edge.label, kind="dim"),
                        Cell(nodes[edge.target].label, nodes[edge.target].href),
                    ),
                )
                for edge in found.edges
            ]
        )
        draw()

    async def deeper() -> None:
        nonlocal current, next_look
        current = attrs.evolve(current, depth=depth.value)
        next_look = 0.0
        visit.show_address(str(current))
        await update()

    depth.on_value_change(deeper)
    dark.on_value_change(draw)
    visit.on_update(update)
    if root is None:
        site.count_objects()
        await visit.until(lambda: site.catalogue.counted_at is not None)
    else:
        await finder.to(root)
        await visit.until(lambda: finder.complete)
    await update()
