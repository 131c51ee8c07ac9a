"""What refers to an object, and to what it refers."""

from __future__ import annotations

from support.waiting import until
from web.pages.world import World, awaited

from qmf.console.aio import ObjectId
from qmf.views.objects import object_view
from qmf.web.pages.live.references import References, find_object
from qmf.web.pages.views.graph import object_graph
from qmf.web.pages.views.page_texts import object_title

AGENT = "example.org:store:1"
SHELF = ObjectId("org.example.store:shelf:a/1", AGENT)


async def test_references_are_found_both_ways(opened: World) -> None:
    store = await find_object(opened.site, ObjectId("org.example.store:store:main", AGENT))
    assert store is not None
    finder = References(opened.site)
    found = await awaited(lambda: finder.to(store), lambda items: len(items) == 3)
    await until(lambda: finder.complete)
    assert [(object_title(item.object), item.name) for item in found] == [
        ("a/0", "storeRef"),
        ("a/1", "storeRef"),
        ("a/2", "storeRef"),
    ]
    graph = await object_graph(opened.site, finder, store, 1)
    assert {node.label for node in graph.nodes} == {"main", "a/0", "a/1", "a/2", AGENT}
    assert sum(edge.label == "storeRef" for edge in graph.edges) == 3
    deeper = await object_graph(opened.site, finder, object_view(await opened.shelf(0)), 2)
    assert {node.label for node in deeper.nodes} == {"main", "a/0", "a/1", "a/2", AGENT}
    assert [node.label for node in deeper.nodes if node.root] == ["a/0"]
    finder.close()
    assert await find_object(opened.site, ObjectId("org.example.store:store:other", AGENT)) is None
