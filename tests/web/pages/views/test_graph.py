"""Graphs of the bus and of an object."""

from __future__ import annotations

from typing import Any

from web.pages.world import World

from qmf.console.aio import ObjectId
from qmf.models.federation.schema import ROUTE
from qmf.schema import ClassKey
from qmf.views.objects import ObjectIdentity, ObjectKey, ObjectView
from qmf.web.pages.views.graph import bus_graph, echart_options, route_graph

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


def route(agent: str, broker: str, peer: str, name: str = "r", **values: object) -> ObjectView:
    """A route as an agent publishes it."""
    key = ObjectKey(f"qmf.federation:route:l,{name}", agent)
    texts = {"source": "amq.topic", "target": "amq.topic", "key": "k", "broker": broker, "peer": peer}
    values = {**texts, "place": f"{peer or 'lost'}:5672", "outgoing": False, "dynamic": False, "up": True, **values}
    return ObjectView(ObjectIdentity(key, ClassKey("qmf.federation", "Route"), name), ROUTE, values)


def test_routes_are_arrows_between_brokers() -> None:
    """The agents of two of three brokers are here; each has a route from the other, and one of them two to a third."""
    found = [
        route("a", "A", "B", dynamic=True),
        route("b", "B", "A", "s", target="amq.fanout"),
        route("b", "B", "C", "t", outgoing=True, source="q", target="q", key="", backlog=1200),
        route("b", "B", "C", "u", outgoing=True, up=False, state="Waiting"),
        route("b", "B", "", "v", up=False, state="Waiting"),
    ]
    brokers, edges = route_graph(found, {"agent a", "agent b"})
    assert {(node.key, node.label, node.category) for node in brokers.values()} == {
        ("broker C", "C:5672", "broker"),
        ("broker lost:5672", "lost:5672", "broker"),
    }
    assert [(edge.source, edge.target, edge.label) for edge in edges] == [
        ("agent b", "agent a", "amq.topic <dynamic>"),
        ("agent a", "agent b", "amq.topic k to amq.fanout"),
        ("agent b", "broker C", "q (1,200 wait)"),
        ("agent b", "broker C", "amq.topic k (Waiting)"),
        ("broker lost:5672", "agent b", "amq.topic k (Waiting)"),
    ]
