"""Graphs of the bus and of an object."""

from __future__ import annotations

from typing import Any

from web.pages.world import World

from qmf.console.aio import ObjectId
from qmf.web.pages.views.graph import bus_graph, echart_options

AGENT = "example.org:store:1"
SHELF = ObjectId("org.example.store:shelf:a/1", AGENT)


async def test_the_graph_of_the_bus(opened: World) -> None:
    assert {node.category for node in bus_graph(opened.site).nodes} == {"agent"}
    await opened.site.catalogue.count()
    graph = bus_graph(opened.site)
    assert {node.label for node in graph.nodes} == {AGENT, "Store (1)", "Shelf (3)"}
    edges = {(edge.source.split(":")[-1], edge.label, edge.target.split(":")[-1]) for edge in graph.edges}
    assert ("shelf", "storeRef", "store") in edges
    options: Any = echart_options(graph, dark=True)
    assert len(options["series"][0]["data"]) == 3
