"""The tree of routes, and groups."""

from __future__ import annotations

from qmf.pipeline.notifying.matchers import parse_matchers
from qmf.pipeline.notifying.routes import Route


def test_the_deepest_route_that_matches_takes_the_alert() -> None:
    deep = Route(key="d", receiver="deep", matchers=parse_matchers(["zone=x"]))
    first = Route(key="1", receiver="first", matchers=parse_matchers(["severity=crit"]), routes=(deep,))
    copy = Route(key="2", receiver="copy", matchers=parse_matchers(["team=db"]), continues=True)
    last = Route(key="3", receiver="last", matchers=parse_matchers(["team=~db|web"]))
    root = Route(receiver="root", routes=(first, copy, last))

    def found(**labels: str) -> list[str]:
        return [route.receiver for route in root.find(labels)]

    assert found() == ["root"]
    assert found(severity="crit") == ["first"]
    assert found(severity="crit", zone="x", team="db") == ["deep"]
    assert found(team="db") == ["copy", "last"]
    assert found(team="web") == ["last"]


def test_the_key_of_a_group() -> None:
    labels = {"alertname": "full", "agent": 'a"b', "object": "o"}
    assert Route(receiver="r").group_key(labels) == "{}:{}"
    by = Route(receiver="r", group_by=("object", "alertname", "zone"))
    assert by.group_key(labels) == '{}:{alertname="full", object="o"}'
    assert by.group_labels(labels) == {"object": "o", "alertname": "full"}
    assert Route(receiver="r", group_by=("...",)).group_labels(labels) == labels
