"""Exchanges with XQuery."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator

import psutil
import pytest
from broker.nodes.parts import encoded, plain

from qmf.broker.nodes.bindings import BindingRefused, BindingSpec
from qmf.broker.nodes.message import Message, read_message
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import ExchangeSettings
from qmf.broker.nodes.xml_exchange import REST, XmlExchange

pytest.importorskip("saxonche")

HOT = "./weather/temperature > 30"


def message(content: str, subject: str = "k", **properties: object) -> Message:
    return read_message(encoded(content, subject, **properties), 0.0)


def weather(degrees: int) -> str:
    return f"<weather><city>Raleigh</city><temperature>{degrees}</temperature></weather>"


@pytest.fixture(scope="module")
def it() -> Iterator[XmlExchange]:
    """An exchange whose process runs all the time, because of a binding that no message matches."""
    exchange = XmlExchange("x")
    exchange.bind(plain("kept"), BindingSpec("no message has this key", {"xquery": "1"}))
    yield exchange
    exchange.close()


def matches(it: XmlExchange, query: str, sent: Message) -> bool:
    queue = plain()
    it.bind(queue, BindingSpec("k", {"xquery": query}))
    found = [binding.queue for binding in it.route(sent)] == [queue]
    it.unbind(queue, "k")
    return found


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
def test_queries_decide(it: XmlExchange, query: str, sent: Message, expected: bool) -> None:
    assert matches(it, query, sent) is expected


def test_queries_of_several_queues(it: XmlExchange) -> None:
    hot, cold = plain("hot"), plain("cold")
    it.bind(hot, BindingSpec("k", {"xquery": HOT}))
    it.bind(cold, BindingSpec("k", {"xquery": "./weather/temperature < 10"}))
    found = [[binding.queue.name for binding in it.route(message(weather(degrees)))] for degrees in (35, 20, 5)]
    assert found == [["hot"], [], ["cold"]]
    it.unbind(hot, "k")
    assert list(it.route(message(weather(35)))) == []
    it.unbind(cold, "k")
    assert it.binding_count == 1


@pytest.mark.parametrize("query", ["let $x :=", "1 +", 7, "environment-variable('HOME')", "no-such-function()"])
def test_what_is_no_query_is_refused(it: XmlExchange, query: object) -> None:
    with pytest.raises(BindingRefused, match="Could not parse xquery"):
        it.bind(plain(), BindingSpec("k", {"xquery": query}))
    assert it.binding_count == 1


def test_neither_queries_nor_content_read_files(it: XmlExchange, tmp_path: object) -> None:
    path = f"{tmp_path}/secret.xml"
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write("<a>1</a>")
    assert not matches(it, f"doc('file://{path}')/a = 1", message(weather(1)))
    assert not matches(it, f"unparsed-text('file://{path}') != ''", message(weather(1)))
    content = f'<!DOCTYPE a [<!ENTITY b SYSTEM "file://{path}">]><a>&b;</a>'
    assert not matches(it, "//a", message(content))


#: It takes long for messages with the property n, and none at once.
LONG = "declare variable $n external; every $a in 1 to $n, $b in 1 to $n satisfies $a * $b > 0"


def test_a_query_that_takes_too_long_does_not_match_and_rests(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    it = XmlExchange("x", limit=0.2, clock=lambda: now[0])
    try:
        slow, other = plain("slow"), plain("other")
        it.bind(slow, BindingSpec("k", {"xquery": LONG}))
        it.bind(other, BindingSpec("k", {"xquery": HOT}))

        def routed(n: int) -> list[str]:
            return [binding.queue.name for binding in it.route(message(weather(35), n=n))]

        assert routed(2) == ["slow", "other"]
        with caplog.at_level(logging.WARNING, "qmf.broker"):
            for number in range(3):
                now[0] += REST
                assert routed(1_000_000) == ["other"]
                assert it.too_long == number + 1
        assert routed(2) == ["other"]
        assert len(caplog.records) == 1
        assert "exchange x: the query of queue slow with the key 'k' took longer than 0.2 s" in caplog.text
        now[0] += REST
        assert routed(2) == ["slow", "other"]
    finally:
        it.close()


def test_a_content_that_takes_too_long_matches_no_query_and_no_query_rests(caplog: pytest.LogCaptureFixture) -> None:
    it = XmlExchange("x", limit=0.2)
    try:
        it.bind(plain("all"), BindingSpec("k"))
        it.bind(plain("some"), BindingSpec("k", {"xquery": "//a"}))
        large = message("<a>" + "<b/>" * 2_000_000 + "</a>")
        with caplog.at_level(logging.WARNING, "qmf.broker"):
            for number in range(2):
                assert [binding.queue.name for binding in it.route(large)] == ["all"]
                assert it.too_long == number + 1
        assert len(caplog.records) == 1
        assert [binding.queue.name for binding in it.route(message("<a/>"))] == ["all", "some"]
    finally:
        it.close()


def test_a_query_that_takes_too_long_without_a_message_is_refused() -> None:
    it = XmlExchange("x", limit=0.2)
    try:
        with pytest.raises(BindingRefused, match=r"takes longer than 0\.2 s"):
            it.bind(plain(), BindingSpec("k", {"xquery": LONG.replace("external", ":= 1000000")}))
        assert it.binding_count == 0
    finally:
        it.close()


def test_the_process_of_the_queries_ends_with_the_exchange_and_the_broker() -> None:
    registry, queue = NodeRegistry(), plain()
    before = set(psutil.Process().children())
    for end in (registry.delete, lambda _: registry.close()):
        it = registry.create("x", NodeDeclaration(ExchangeSettings("xml")))
        assert isinstance(it, XmlExchange)
        assert it.bind(queue, BindingSpec("k", {"xquery": HOT}))
        (process,) = set(psutil.Process().children()) - before
        end(it)
        assert not process.is_running()


def test_a_process_that_has_ended_is_started_again() -> None:
    it = XmlExchange("x")
    try:
        before = set(psutil.Process().children())
        it.bind(plain(), BindingSpec("k", {"xquery": HOT}))
        (process,) = set(psutil.Process().children()) - before
        os.kill(process.pid, signal.SIGKILL)
        psutil.wait_procs([process])
        assert it.route(message(weather(35)))
    finally:
        it.close()
