"""The addresses of the pages: each view with everything that was chosen in it, to be sent to a colleague.

What cannot be read in an address, such as a page number that is no number, is replaced by the default: an old or
mistyped link still opens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlencode

import attrs

from qmf.console.aio import ObjectId
from qmf.schema import Severity
from qmf.views.times import parse_duration
from qmf.web.addresses import from_segment, to_segment

#: Rows of a page of a table.
PAGE_SIZES = (25, 50, 100, 250)
DEFAULT_SIZE = 50
#: Lengths of time that a plot shows, in seconds, and how they are written.
WINDOWS: Mapping[str, float] = {text: parse_duration(text) / 1e9 for text in ("5m", "15m", "1h", "6h", "1d")}
DEFAULT_WINDOW = "15m"
#: How far from its object a graph reaches, at most.
MOST_DEPTH = 4

Query = Mapping[str, str]


def with_query(path: str, query: Iterable[tuple[str, object]]) -> str:
    """A path with a query; without those of its values that are empty or false."""
    found = [(name, "1" if value is True else str(value)) for name, value in query if value not in ("", False, None)]
    return f"{path}?{urlencode(found)}" if found else path


def object_url(object_id: ObjectId) -> str:
    """The page of an object."""
    return f"/object/{to_segment(object_id.agent_name or '')}/{to_segment(object_id.object_name)}"


def agent_url(name: str) -> str:
    """The page of an agent."""
    return f"/agent/{to_segment(name)}"


def object_of(agent: str, name: str) -> ObjectId:
    """The object whose page has these segments in its path."""
    return ObjectId(from_segment(name), from_segment(agent))


def class_url(package: str, name: str) -> str:
    """The table of the objects of a class."""
    return f"/objects/{to_segment(package)}/{to_segment(name)}"


@attrs.frozen
class AgentsUrl:
    """The table of agents: a part of their names, or empty, and the page, from 1."""

    filter: str = ""
    page: int = 1

    @classmethod
    def parse(cls, query: Query) -> AgentsUrl:
        """Read an address."""
        return cls(query.get("filter", ""), _page(query))

    def __str__(self) -> str:
        return with_query("/agents", [("filter", self.filter), ("page", "" if self.page == 1 else self.page)])


@attrs.frozen
class ClassesUrl:
    """The table of classes.

    Attributes:
        filter: words that name, package or description must contain.
        sort: name of the column that decides the order; empty for kind, package and name.
        descending: the greatest first.
        page: from 1.
    """

    filter: str = ""
    sort: str = ""
    descending: bool = False
    page: int = 1

    @classmethod
    def parse(cls, query: Query) -> ClassesUrl:
        """Read an address."""
        sort = query.get("sort", "")
        return cls(query.get("filter", ""), sort.removeprefix("-"), sort.startswith("-"), _page(query))

    def __str__(self) -> str:
        sort = f"-{self.sort}" if self.descending else self.sort
        page = "" if self.page == 1 else self.page
        return with_query("/classes", [("filter", self.filter), ("sort", sort), ("page", page)])


@attrs.frozen
class ObjectsUrl:
    """The table of the objects of a class.

    Attributes:
        package, name: the class.
        filter: text of the condition.
        sort: name of the column that decides the order; empty for the name of the object.
        descending: the greatest first.
        page: from 1.
        size: rows of a page.
        columns: names of the columns; empty for those that matter.
        agent: only objects of this agent; empty for all.
        own: with what agents and consoles create for themselves.
    """

    package: str
    name: str
    filter: str = ""
    sort: str = ""
    descending: bool = False
    page: int = 1
    size: int = DEFAULT_SIZE
    columns: tuple[str, ...] = ()
    agent: str = ""
    own: bool = False

    @classmethod
    def parse(cls, package: str, name: str, query: Query) -> ObjectsUrl:
        """Read an address; `package` and `name` are segments of its path."""
        size = _whole(query.get("size"), DEFAULT_SIZE)
        return cls(
            from_segment(package),
            from_segment(name),
            query.get("filter", ""),
            query.get("sort", "").removeprefix("-"),
            query.get("sort", "").startswith("-"),
            _page(query),
            size if size in PAGE_SIZES else DEFAULT_SIZE,
            tuple(filter(None, query.get("columns", "").split(","))),
            query.get("agent", ""),
            query.get("own") == "1",
        )

    def __str__(self) -> str:
        sort = f"-{self.sort}" if self.descending else self.sort
        return with_query(
            class_url(self.package, self.name),
            [
                ("filter", self.filter),
                ("agent", self.agent),
                ("sort", sort),
                ("page", "" if self.page == 1 else self.page),
                ("size", "" if self.size == DEFAULT_SIZE else self.size),
                ("columns", ",".join(self.columns)),
                ("own", self.own),
            ],
        )


@attrs.frozen
class EventsUrl:
    """The stream of events.

    Attributes:
        severity: the least severe that is shown.
        classes: names of event classes, or parts of them; empty for all.
        text: a condition, or words that an event must contain.
        agent: part of the name of the agent; empty for all.
        own: with events about what agents and consoles create for themselves.
    """

    severity: Severity = Severity.DEBUG
    classes: str = ""
    text: str = ""
    agent: str = ""
    own: bool = False

    @classmethod
    def parse(cls, query: Query) -> EventsUrl:
        """Read an address."""
        names = {item.schema_name: item for item in Severity}
        return cls(
            names.get(query.get("severity", ""), Severity.DEBUG),
            query.get("class", ""),
            query.get("text", ""),
            query.get("agent", ""),
            query.get("own") == "1",
        )

    def __str__(self) -> str:
        severity = "" if self.severity is Severity.DEBUG else self.severity.schema_name
        return with_query(
            "/events",
            [
                ("severity", severity),
                ("class", self.classes),
                ("text", self.text),
                ("agent", self.agent),
                ("own", self.own),
            ],
        )


@attrs.frozen
class PlottedValue:
    """A value of an object in a plot; `rate` for its growth per second."""

    object_id: ObjectId
    name: str
    rate: bool = False

    def __str__(self) -> str:
        agent, name = to_segment(self.object_id.agent_name or ""), to_segment(self.object_id.object_name)
        return f"{agent}/{name}/{to_segment(self.name)}{'/rate' if self.rate else ''}"

    @classmethod
    def parse(cls, text: str) -> PlottedValue | None:
        """Read it from an address; None if it is not one."""
        parts = text.split("/")
        if len(parts) not in (3, 4) or (len(parts) == 4 and parts[3] != "rate") or not all(parts):
            return None
        return cls(object_of(parts[0], parts[1]), from_segment(parts[2]), len(parts) == 4)


@attrs.frozen
class PlotsUrl:
    """Values over time.

    Attributes:
        values: what is drawn.
        window: how much time, a key of `WINDOWS`.
        together: all in one plot; else a plot for each unit.
    """

    values: tuple[PlottedValue, ...] = ()
    window: str = DEFAULT_WINDOW
    together: bool = False

    @classmethod
    def parse(cls, values: Sequence[str], query: Query) -> PlotsUrl:
        """Read an address; `values` are all values of its parameter ``v``."""
        found = dict.fromkeys(item for item in map(PlottedValue.parse, values) if item is not None)
        window = query.get("window", DEFAULT_WINDOW)
        return cls(tuple(found), window if window in WINDOWS else DEFAULT_WINDOW, query.get("together") == "1")

    def __str__(self) -> str:
        window = "" if self.window == DEFAULT_WINDOW else self.window
        return with_query(
            "/plots", [*(("v", value) for value in self.values), ("window", window), ("together", self.together)]
        )


@attrs.frozen
class GraphUrl:
    """The graph of references and agents.

    Attributes:
        root: the object in its middle; None for the agents and classes of the whole bus.
        depth: how many references away from it objects are shown.
    """

    root: ObjectId | None = None
    depth: int = 1

    @classmethod
    def parse(cls, query: Query) -> GraphUrl:
        """Read an address."""
        agent, name = query.get("agent", ""), query.get("object", "")
        depth = min(max(1, _whole(query.get("depth"), 1)), MOST_DEPTH)
        return cls(ObjectId(name, agent) if agent and name else None, depth)

    def __str__(self) -> str:
        if self.root is None:
            return "/graph"
        return with_query(
            "/graph",
            [
                ("agent", self.root.agent_name),
                ("object", self.root.object_name),
                ("depth", "" if self.depth == 1 else self.depth),
            ],
        )


def _page(query: Query) -> int:
    return max(1, _whole(query.get("page"), 1))


def _whole(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 10 else default
