"""`qpid-route` as a user runs it, between embedded brokers: the examples of the manual, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TypeAlias

import pytest

from qmf.broker import EmbeddedBroker
from qmf.client import BrokerAgent
from qmf.errors import RemoteError
from qmf.messaging import Connection, Message
from qmf.tools.route.cli import main
from qmf.tools.route.routed_broker import BridgeView, LinkView, RoutedBroker

#: Runs the tool, which must succeed; the lines that it prints.
Run: TypeAlias = Callable[..., list[str]]
#: The same, which must fail: the line of its error.
Fails: TypeAlias = Callable[..., str]


def start(count: int, stack: ExitStack, *, exchange: str = "") -> list[str]:
    """Brokers with a queue ``q``; host and port of each."""
    places = []
    for _ in range(count):
        url = stack.enter_context(EmbeddedBroker(queues=["q"], management=3600)).url
        places.append(url.removeprefix("amqp://"))
        if exchange:
            with BrokerAgent.connect(url, timeout=30) as agent:
                agent.addExchange("topic", exchange)
    return places


@pytest.fixture
def places() -> Iterator[list[str]]:
    """Two brokers."""
    with ExitStack() as stack:
        yield start(2, stack)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> list[str]:
        code = main([*words, "--timeout", "30"])
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out.splitlines()

    return call


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Fails:
    def call(*words: str) -> str:
        code = main([*words, "--timeout", "30"])
        out, err = capsys.readouterr()
        assert (code, out) == (1, "")
        return err

    return call


def bound(place: str, key: str) -> None:
    """Wait until a route is bound at a broker's exchange."""
    with BrokerAgent.connect(place, timeout=30) as agent:
        while not any(item.bindingKey == key and item.queueRef != "q" for item in agent.getAllBindings()):
            pass


def publish(place: str, address: str, content: str) -> None:
    with Connection.establish(place, timeout=30) as connection:
        name, _, subject = address.partition("/")
        connection.session().sender(name).send(Message(content, subject=subject), timeout=30)


def take(place: str, queue: str = "q") -> object:
    with Connection.establish(place, timeout=30) as connection:
        session = connection.session()
        content = session.receiver(queue).fetch(30).content
        session.acknowledge()
        return content


def bind(place: str, exchange: str, key: str = "") -> None:
    with BrokerAgent.connect(place, timeout=30) as agent:
        agent.bind(exchange, "q", key)


def test_dynamic_routes_in_both_directions(run: Run) -> None:
    with ExitStack() as stack:
        one, two = start(2, stack, exchange="fed.topic")
        assert run("dynamic", "add", one, two, "fed.topic") == []
        assert run("dynamic", "add", two, one, "fed.topic") == []
        assert run("route", "list", one) == [f"{one} {two} fed.topic  <dynamic> False"]
        bind(one, "fed.topic", "k")
        bound(two, "k")
        publish(two, "fed.topic/k", "through")
        assert take(one) == "through"
        lines = run("route", "map", one)
        assert lines[:4] == ["", "Finding Linked Brokers:", f"    {one}... Ok", f"    {two}... Ok"]
        assert lines[4:8] == ["", "Dynamic Routes:", "", "  Exchange fed.topic:"]
        assert lines[8] in (f"    {one} <=> {two}", f"    {two} <=> {one}")
        assert lines[9:] == ["", "Static Routes:", "  none found", ""]
        run("dynamic", "del", one, two, "fed.topic")
        assert run("route", "list", one) == []


def test_a_static_route(run: Run, places: list[str]) -> None:
    one, two = places
    run("route", "add", one, two, "amq.topic", "global.#")
    assert run("route", "list", one) == [f"{one} {two} amq.topic   global.# False"]
    bind(one, "amq.topic", "#")
    bound(two, "global.#")
    publish(two, "amq.topic/global.x", "x")
    assert take(one) == "x"
    lines = run("route", "map", one)
    assert lines[lines.index("Dynamic Routes:") :] == [
        "Dynamic Routes:",
        "  none found",
        "",
        "Static Routes:",
        "",
        f"  {one}(ex=amq.topic) <= {two}(ex=amq.topic) key=global.#",
        "",
    ]


def test_a_queue_route_and_its_graph(run: Run, places: list[str]) -> None:
    one, two = places
    publish(two, "q", "y")
    bind(one, "amq.fanout")
    run("queue", "add", one, two, "amq.fanout", "q", "--ack", "10", "--credit", "20")
    assert take(one) == "y"
    assert f"  {one}(ex=amq.fanout) <= {two}(queue=q)" in run("route", "map", one)
    assert run("route", "map", two, "--dot") == ["digraph routes {", "  node [shape=box];", f'  "{two}";', "}"]
    graph = run("route", "map", one, "--dot")
    assert f'  "{two}" -> "{one}" [label="q to amq.fanout"];' in graph
    with BrokerAgent.connect(one, timeout=30) as agent:
        (bridge,) = agent.list("bridge")
        assert (bridge["sync"], bridge["credit"]) == (10, 20)
    run("queue", "del", one, two, "amq.fanout", "q", "-e")
    assert run("link", "list", one) == ["No Links Found"]


def test_a_push_route(run: Run, places: list[str]) -> None:
    one, two = places
    run("-s", "queue", "add", one, two, "amq.fanout", "q")
    bind(one, "amq.fanout")
    publish(two, "q", "pushed")
    assert take(one) == "pushed"
    assert f"  {two}(queue=q) => {one}(ex=amq.fanout)" in run("route", "map", two)
    assert run("route", "list", two) == [f"{two} {one} amq.fanout          q True"]
    run("-s", "queue", "del", one, two, "amq.fanout", "q")
    assert run("route", "list", two) == []


def test_links(run: Run, fails: Fails, places: list[str]) -> None:
    one, two = places
    assert run("link", "list", one) == ["No Links Found"]
    assert run("-v", "link", "add", one, two) == ["Link state is Operational"]
    run("-q", "-d", "link", "add", one, "localhost:1")
    lines = run("link", "list", one)
    assert lines[1].split() == ["Host", "Port", "Transport", "Durable", "State", "Last", "Error"]
    host, port = two.split(":")
    assert f"{host:<16}{port:<8}tcp          N     Operational" in lines
    assert any(line.startswith("localhost       1       tcp          Y     ") for line in lines)
    assert fails("link", "del", one, "localhost:2") == "Failed: Link not found\n"
    assert run("-v", "link", "del", one, two) == ["Close method returned: 0 OK"]
    assert len(run("link", "list", one)) == 4


def test_links_of_amqp_are_none_of_routes_whether_up_or_not(run: Run, places: list[str]) -> None:
    with BrokerAgent.connect(places[0], timeout=30) as agent:
        for name, url in (("there", f"amqp://{places[1]}"), ("nowhere", "amqp://127.0.0.1:1")):
            agent.create("domain", name, {"url": url})
            agent.create("outgoing", f"to {name}", {"domain": name, "source": "q", "target": "q"})
        while {item.state for item in agent.getAllLinks()} != {"Operational", "Waiting"}:
            pass
        assert run("link", "list", places[0]) == ["No Links Found"]
        for name in ("there", "nowhere"):
            agent.delete("outgoing", f"to {name}")


def test_a_link_logs_in_as_the_address_says(run: Run, places: list[str]) -> None:
    with EmbeddedBroker(users={"ann": "secret"}, management=3600) as safe:
        at = safe.url.removeprefix("amqp://")
        run("link", "add", places[0], f"ann/secret@{at}")
        assert "Operational" in run("link", "list", places[0])[-1]
        run("link", "del", places[0], at)
        run("-q", "route", "add", places[0], f"ann/wrong@{at}", "amq.topic", "k", "", "", "SCRAM-SHA-256")
        with BrokerAgent.connect(places[0], timeout=30) as agent:
            while not (link := agent.list("link")[0])["lastError"]:
                pass
        assert link["state"] == "Waiting"


def test_durable_routes_need_durable_links(run: Run, fails: Fails, places: list[str]) -> None:
    one, two = places
    run("route", "add", one, two, "amq.topic", "a")
    error = fails("route", "add", one, two, "amq.topic", "b", "--durable")
    assert "Can't create a durable route on a non-durable link" in error


def test_what_is_there_or_missing(run: Run, fails: Fails, places: list[str]) -> None:
    one, two = places
    run("route", "add", one, two, "amq.topic", "a", "tag", "other,ids")
    duplicate = ("route", "add", one, two, "amq.topic", "a")
    assert fails(*duplicate) == "Failed: Duplicate Route - ignoring: amq.topic(a)\n"
    assert run(*duplicate, "-q") == []
    missing = ("route", "del", one, two, "amq.topic", "b")
    assert fails(*missing) == "Failed: Route not found\n"
    assert run(*missing, "-q") == []
    no_link = ("route", "del", two, one, "amq.topic", "b")
    assert fails(*no_link) == f"Failed: No link found from {one} to {two}\n"
    assert run(*no_link, "-q") == []
    assert fails("link", "add", one, one) == "Failed: Linking broker to itself is not permitted\n"
    assert "--src-local is not permitted on dynamic routes" in fails("-s", "dynamic", "add", one, two, "amq.topic")
    assert "no exchange or queue 'none'" in fails("route", "add", one, two, "none", "k")


def test_flush(run: Run, places: list[str]) -> None:
    one, two = places
    for key in ("a", "b"):
        run("route", "add", one, two, "amq.topic", key)
    assert sorted(run("route", "flush", one, "-v", "-e")) == [
        f"Deleting Bridge: {two} amq.topic a... Ok",
        f"Deleting Bridge: {two} amq.topic b... Ok",
        f"Deleting Link: {two}... Ok",
    ]
    assert run("link", "list", one) == ["No Links Found"]


def test_a_map_names_brokers_that_cannot_be_reached(run: Run, places: list[str]) -> None:
    run("-q", "link", "add", places[0], "127.0.0.1:1")
    assert any(line.startswith("    127.0.0.1:1... ") and "refused" in line for line in run("route", "map", places[0]))


@pytest.mark.parametrize(
    "words",
    [
        "",
        "dynamic",
        "dynamic add a b",
        "route add a b amq.topic",
        "route del a b amq.topic k more",
        "queue add a b amq.topic",
        "link add a",
        "link turn a b",
        "route list a b",
    ],
)
def test_wrong_arguments(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 255
    assert capsys.readouterr().out.startswith("Usage: qpid-route [OPTIONS] dynamic add <dest-broker> <src-broker>")


def test_wrong_options(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--ack", "70000"], ["--no-such"], ["--ssl-key", "x", "link", "list"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
    assert "is not a whole number from 0 to 65535" in capsys.readouterr().err


def test_addresses_that_are_none(fails: Fails) -> None:
    assert "port" in fails("link", "list", "localhost:x")


def test_what_is_deleted_has_no_source_or_key_on_the_command_line(run: Run, places: list[str]) -> None:
    """Routes that were not created by the tool are deleted by it as well."""
    one, two = places
    run("link", "add", one, two)
    with BrokerAgent.connect(one, timeout=30) as agent:
        link = agent.list("link")[0]["name"]
        agent.create("bridge", "a", {"link": link, "src": "amq.direct", "dest": "amq.topic", "key": "k"})
        agent.create("bridge", "b", {"link": link, "src": "q", "dest": "amq.topic", "key": "k", "srcIsQueue": True})
    run("route", "del", one, two, "amq.topic", "k")
    run("queue", "del", one, two, "amq.topic", "q")
    assert run("route", "list", one) == []


def test_flush_goes_on_after_a_refusal(
    run: Run, places: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = places
    for key in ("a", "b"):
        run("route", "add", one, two, "amq.topic", key)
    close = RoutedBroker.close

    def refuse_one(broker: RoutedBroker, item: LinkView | BridgeView) -> None:
        if isinstance(item, BridgeView) and item.text("key") == "a":
            raise RemoteError("not allowed", 6)
        close(broker, item)

    monkeypatch.setattr(RoutedBroker, "close", refuse_one)
    assert main(["route", "flush", one, "-v"]) == 1
    out, err = capsys.readouterr()
    assert any(line.startswith(f"Deleting Bridge: {two} amq.topic a... Error: ") for line in out.splitlines())
    assert f"Deleting Bridge: {two} amq.topic b... Ok" in out.splitlines()
    assert err == "Failed: 1 of 2 links and routes are not deleted\n"
    assert len(run("route", "list", one)) == 1
