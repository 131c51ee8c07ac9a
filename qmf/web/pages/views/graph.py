"""Graphs: agents with their classes, brokers with their routes, or an object with those that it refers to and that
refer to it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

import attrs

from qmf.schema import ClassSchema, Kind
from qmf.views.broker_fields import FEDERATION_PACKAGE, ROUTE
from qmf.views.objects import ObjectView
from qmf.views.references import reference_members, references
from qmf.views.text import clean
from qmf.web.own_objects import OwnObjects
from qmf.web.pages.live.catalogue import ClassSummary
from qmf.web.pages.live.followed import remote_object
from qmf.web.pages.live.references import References, find_object, place
from qmf.web.pages.live.shared_state import SharedState
from qmf.web.pages.views.page_texts import object_title
from qmf.web.pages.views.page_urls import agent_url, class_url, object_url

#: Nodes of a graph at most; more could not be told apart.
MOST_NODES = 150
#: Of them agents, at most.
MOST_AGENTS = 75
#: References to one object that are followed at most.
MOST_REFERRERS = 40
#: Kinds of nodes that are programs.
_PROGRAMS = ("agent", "broker")


@attrs.frozen
class GraphNode:
    """A node: a name that is unique, what stands at it, what kind it is, its page, and whether it is in the middle."""

    key: str
    label: str
    category: str
    href: str = ""
    root: bool = False


@attrs.frozen
class GraphEdge:
    """An arrow from one node to another, with what stands at it."""

    source: str
    target: str
    label: str


@attrs.frozen
class Graph:
    """Nodes and arrows between them.

    Attributes:
        nodes, edges: what is shown.
        left_out: how many nodes are missing, at least, because there would be too many.
    """

    nodes: tuple[GraphNode, ...] = ()
    edges: tuple[GraphEdge, ...] = ()
    left_out: int = 0

    @property
    def categories(self) -> list[str]:
        """The kinds of nodes, in order."""
        return list(dict.fromkeys(node.category for node in self.nodes))


def bus_graph(site: SharedState) -> Graph:
    """The agents, the classes of which they have objects, which classes refer to each other, and the routes between
    brokers, if somebody follows these."""
    agents = [_agent_node(presence.agent.name) for presence in site.agents.all() if not presence.gone]
    summaries = [item for item in site.catalogue.classes() if item.kind is Kind.DATA]
    populated = [item for item in summaries if _counts(item)]
    shown_agents = agents[:MOST_AGENTS]
    shown_classes = populated[: MOST_NODES - len(shown_agents)]
    nodes = {node.key: node for node in (*shown_agents, *map(_class_node, shown_classes))}
    edges = [
        *(edge for item in shown_classes for edge in _count_edges(item)),
        *(edge for item in summaries for edge in _reference_edges(item)),
    ]
    brokers, routed = route_graph(_followed_routes(site), nodes)
    nodes |= brokers
    edges += routed
    known = [edge for edge in dict.fromkeys(edges) if edge.source in nodes and edge.target in nodes]
    left_out = len(agents) - len(shown_agents) + len(populated) - len(shown_classes)
    return Graph(tuple(nodes.values()), tuple(known), left_out)


def _followed_routes(site: SharedState) -> list[ObjectView]:
    routes = site.followed_class(FEDERATION_PACKAGE, ROUTE)
    return [] if routes is None else list(routes.views())


def route_graph(routes: Sequence[ObjectView], agents: Container[str]) -> tuple[dict[str, GraphNode], list[GraphEdge]]:
    """The routes between brokers as arrows, in the direction of their messages; and the brokers without an agent here.

    Args:
        agents: keys of nodes for agents. A broker with one is that node.
    """
    own = {_text(item, "broker"): f"agent {item.identity.key.agent_name}" for item in routes}
    brokers: dict[str, GraphNode] = {}
    edges: list[GraphEdge] = []
    for item in routes:
        here = f"agent {item.identity.key.agent_name}"
        place_of_peer = _text(item, "place")
        there = own.get(_text(item, "peer"), "")
        if there not in agents:
            there = f"broker {_text(item, 'peer') or place_of_peer}"
            brokers.setdefault(there, GraphNode(there, clean(place_of_peer), "broker"))
        ends = (here, there) if item.values.get("outgoing") else (there, here)
        edges.append(GraphEdge(*ends, _route_label(item)))
    return brokers, edges


def _text(obj: ObjectView, name: str) -> str:
    return str(obj.values.get(name) or "")


def _route_label(route: ObjectView) -> str:
    """What goes over a route, and how it is if not everything is well."""
    source, target, key = (_text(route, name) for name in ("source", "target", "key"))
    words = [source, "<dynamic>" if route.values.get("dynamic") else key, f"to {target}" if target != source else ""]
    words.append("" if route.values.get("up") else f"({_text(route, 'state')})")
    backlog = route.values.get("backlog")
    words.append(f"({backlog:,} wait)" if isinstance(backlog, int) and backlog else "")
    return clean(" ".join(filter(None, words)))


def _agent_node(name: str) -> GraphNode:
    return GraphNode(f"agent {name}", clean(name), "agent", agent_url(name))


def _class_key(package: str, name: str) -> str:
    return f"class {package}:{name}"


def _counts(item: ClassSummary) -> dict[str, int]:
    """How many objects of a class each agent has that has any."""
    return {agent: count for agent, count in (item.counts or {}).items() if count}


def _class_node(item: ClassSummary) -> GraphNode:
    label = f"{clean(item.title)} ({sum(_counts(item).values()):,})"
    return GraphNode(
        _class_key(item.package, item.name), label, clean(item.package), class_url(item.package, item.name)
    )


def _count_edges(item: ClassSummary) -> Iterator[GraphEdge]:
    """From the agents that have objects of a class to it, with their number."""
    for agent, count in _counts(item).items():
        yield GraphEdge(f"agent {agent}", _class_key(item.package, item.name), f"{count:,}")


def _reference_edges(item: ClassSummary) -> Iterator[GraphEdge]:
    """From a class to those that its properties and statistics refer to."""
    for schema in item.versions:
        for member in reference_members(schema) if isinstance(schema, ClassSchema) else ():
            if (target := member.references) is not None:
                other = _class_key(target.package or item.package, target.name.lower())
                yield GraphEdge(_class_key(item.package, item.name), other, clean(member.name))


async def object_graph(site: SharedState, finder: References, root: ObjectView, depth: int) -> Graph:
    """An object, its agent, and what is up to `depth` references away in either direction.

    Objects that agents and consoles created for themselves are left out.
    """
    own = OwnObjects(site.connection_object)
    nodes: dict[tuple[str | None, str], GraphNode] = {place(root.identity.key): _node(root, root=True)}
    edges: dict[GraphEdge, None] = {}
    left_out = 0
    level = [root]
    for _ in range(depth):
        following: list[ObjectView] = []
        for obj in level:
            referrers = [item for item in await finder.to(obj) if not own.is_own(remote_object(item.object))]
            left_out += max(0, len(referrers) - MOST_REFERRERS)
            found = [(item.object, item.name, True) for item in referrers[:MOST_REFERRERS]]
            for name, target in references(obj.schema, obj.values):
                other = await find_object(site, target)
                if other is not None:
                    found.append((other, name, False))
            for other, name, incoming in found:
                if place(other.identity.key) not in nodes:
                    if len(nodes) >= MOST_NODES:
                        left_out += 1
                        continue
                    nodes[place(other.identity.key)] = _node(other)
                    following.append(other)
                source, target_node = (other, obj) if incoming else (obj, other)
                edges[GraphEdge(_key(source), _key(target_node), clean(name))] = None
        level = following
    agent = _agent_node(root.identity.key.agent_name)
    return Graph((*nodes.values(), agent), (*edges, GraphEdge(agent.key, _key(root), "has")), left_out)


def _key(obj: ObjectView) -> str:
    key = obj.identity.key
    return f"{key.agent_name}|{key.object_name}"


def _node(obj: ObjectView, *, root: bool = False) -> GraphNode:
    identity = obj.identity
    category = clean(identity.class_key.name) or "object"
    return GraphNode(_key(obj), object_title(obj), category, object_url(identity.key), root)


def echart_options(graph: Graph, *, dark: bool, arrange: bool = True) -> dict[str, object]:
    """The options of an ECharts graph.

    Args:
        graph: what is shown.
        dark: for a dark page.
        arrange: nodes are moved apart until nothing moves.
    """
    categories = graph.categories
    ink = "#e8eaed" if dark else "#202124"
    many = len(graph.nodes) > 40
    return {
        "animationDurationUpdate": 0,
        "tooltip": {},
        "legend": {"data": categories, "textStyle": {"color": ink}, "type": "scroll"},
        "series": [
            {
                "type": "graph",
                "layout": "force" if arrange else "circular",
                "force": {"repulsion": 120 if many else 320, "edgeLength": [40, 120] if many else [90, 180]},
                "roam": True,
                "draggable": True,
                "label": {"show": True, "position": "right", "color": ink, "width": 160, "overflow": "truncate"},
                "edgeLabel": {"show": not many, "formatter": "{c}", "color": ink, "fontSize": 10},
                "edgeSymbol": ["none", "arrow"],
                "edgeSymbolSize": 7,
                "lineStyle": {"color": "source", "opacity": 0.7},
                "labelLayout": {"hideOverlap": True},
                "emphasis": {"focus": "adjacency"},
                "categories": [{"name": name} for name in categories],
                "data": [
                    {
                        "id": node.key,
                        "name": node.label,
                        "category": categories.index(node.category),
                        "symbolSize": 26 if node.root else 18 if node.category in _PROGRAMS else 12,
                        "symbol": "roundRect" if node.category in _PROGRAMS else "circle",
                        "href": node.href,
                    }
                    for node in graph.nodes
                ],
                "links": [{"source": edge.source, "target": edge.target, "value": edge.label} for edge in graph.edges],
            }
        ],
    }
