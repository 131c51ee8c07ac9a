"""Exchanges with XQuery."""

from __future__ import annotations

import pytest
from broker.nodes.parts import encoded, plain

from qmf.broker.nodes.bindings import BindingRefused, BindingSpec
from qmf.broker.nodes.message import Message, read_message

xml_exchange = pytest.importorskip("qmf.broker.nodes.xml_exchange", reason="needs saxonche")

HOT = "./weather/temperature > 30"


def message(content: str, subject: str = "k", **properties: object) -> Message:
    return read_message(encoded(content, subject, **properties), 0.0)


def weather(degrees: int) -> str:
    return f"<weather><city>Raleigh</city><temperature>{degrees}</temperature></weather>"


def matches(query: str, sent: Message) -> bool:
    it, queue = xml_exchange.XmlExchange("x"), plain()
    it.bind(queue, BindingSpec("k", {"xquery": query}))
    return [binding.queue for binding in it.route(sent)] == [queue]


@pytest.mark.parametrize(
    ("query", "sent", "expected"),
    [
        (HOT, message(weather(35)), True),
        (HOT, message(weather(25)), False),
        (HOT, message(weather(35), "other key"), False),
        (HOT, message("no xml"), False),
        ("", message("no xml"), True),
        ("declare variable $colour external; $colour = 'red'", message("no xml", colour="red"), True),
        ("declare variable $colour external; $colour = 'red'", message("no xml", colour="blue"), False),
        ("declare variable $colour external; $colour = 'red'", message("no xml"), False),
        ("declare variable $n external; $n > 3 and " + HOT, message(weather(35), n=4), True),
        ("declare variable $n external; $n > 3 and " + HOT, message(weather(35), n=3), False),
        ("declare variable $n external; $n > 2.5", message("", n=2.75), True),
        ("declare variable $b external; $b = 1", message("", b=True), True),
        ("//city", message(weather(1)), True),
        ("//country", message(weather(1)), False),
        ("'text'", message(""), True),
        ("''", message(""), False),
        ("0", message(""), False),
    ],
)
def test_queries_decide(query: str, sent: Message, expected: bool) -> None:
    assert matches(query, sent) is expected


def test_queries_of_several_queues() -> None:
    it = xml_exchange.XmlExchange("x")
    hot, cold = plain("hot"), plain("cold")
    it.bind(hot, BindingSpec("k", {"xquery": HOT}))
    it.bind(cold, BindingSpec("k", {"xquery": "./weather/temperature < 10"}))
    found = [[binding.queue.name for binding in it.route(message(weather(degrees)))] for degrees in (35, 20, 5)]
    assert found == [["hot"], [], ["cold"]]
    it.unbind(hot, "k")
    assert list(it.route(message(weather(35)))) == []
    assert it.binding_count == 1


@pytest.mark.parametrize("query", ["let $x :=", "1 +", 7, "environment-variable('HOME')", "no-such-function()"])
def test_what_is_no_query_is_refused(query: object) -> None:
    it = xml_exchange.XmlExchange("x")
    with pytest.raises(BindingRefused, match="Could not parse xquery"):
        it.bind(plain(), BindingSpec("k", {"xquery": query}))
    assert it.binding_count == 0


def test_neither_queries_nor_content_read_files(tmp_path: object) -> None:
    path = f"{tmp_path}/secret.xml"
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write("<a>1</a>")
    assert not matches(f"doc('file://{path}')/a = 1", message(weather(1)))
    assert not matches(f"unparsed-text('file://{path}') != ''", message(weather(1)))
    content = f'<!DOCTYPE a [<!ENTITY b SYSTEM "file://{path}">]><a>&b;</a>'
    assert not matches("//a", message(content))
