"""The examples of the manual's chapter about federation, between brokers that are processes of their own.

They are written as a user types them, with what is printed. The ports are those that the brokers have: ``{1}`` stands
for the first broker, ``{down}`` for a port at which nothing listens.
"""

from __future__ import annotations

import shlex
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.processes import command, run
from support.waiting import wait_until
from tools.route.broker_processes import KINDS, start_brokers

from qmf.client import BrokerAgent
from qmf.messaging import Connection, Message
from qmf.tools.config.cli import main as qpid_config
from qmf.tools.route.cli import main as qpid_route

pytestmark = pytest.mark.slow

#: What programs do, in the process of the tests.
PROGRAMS = {"qpid-config": qpid_config, "qpid-route": qpid_route}
#: Brokers of the tree of the manual.
COUNT = 8


class Site:
    """Brokers that are linked with each other; their numbers are those of the manual's drawing.

    Attributes:
        places: host and port of each, and of none.
    """

    def __init__(self, places: list[str], down: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.places = {**{str(number): place for number, place in enumerate(places, 1)}, "down": down}
        self._capsys = capsys

    def fill(self, text: str) -> str:
        """Put the places into a text."""
        for name, place in self.places.items():
            text = text.replace(f"{{{name}}}", place)
        return text

    def type(self, line: str, code: int = 0) -> list[str]:
        """What a command prints."""
        program, *words = shlex.split(self.fill(line))
        assert PROGRAMS[program](words) == code
        out, err = self._capsys.readouterr()
        return (out if code == 0 else err).splitlines()

    def session(self, text: str) -> None:
        """Type the lines after ``$``, which print those below them. Blank lines do not count."""
        command, expected = "", list[str]()
        for line in [*self.fill(text).strip().splitlines(), "$ "]:
            if not line.startswith("$ "):
                expected.append(line.strip())
                continue
            if command:
                printed = [item.strip() for item in self.type(command) if item.strip()]
                assert printed == [item for item in expected if item], command
            command, expected = line[2:], []

    def agent(self, number: int) -> BrokerAgent:
        return BrokerAgent.connect(self.places[str(number)], timeout=30)

    def bind(self, number: int, exchange: str, key: str = "") -> None:
        """A queue ``q`` at a broker gets the messages of an exchange."""
        with self.agent(number) as agent:
            if agent.getQueue("q") is None:
                agent.addQueue("q")
            agent.bind(exchange, "q", key)

    def bound(self, number: int, key: str, count: int = 1) -> None:
        """Wait until other brokers have bound a key at a broker."""
        with self.agent(number) as agent:
            wait_until(
                lambda: (
                    sum(b.bindingKey == key and not b.queueRef.endswith(":q") for b in agent.getAllBindings()) >= count
                ),
                f"{key} is bound at {number}",
            )

    def publish(self, number: int, address: str, content: str) -> None:
        with Connection.establish(self.places[str(number)], timeout=30) as connection:
            name, _, subject = address.partition("/")
            connection.session().sender(name).send(Message(content, subject=subject), timeout=30)

    def take(self, number: int) -> str:
        with Connection.establish(self.places[str(number)], timeout=30) as connection:
            session = connection.session()
            content = session.receiver("q").fetch(30).content
            session.acknowledge()
            return str(content)


@pytest.fixture(scope="module", params=KINDS)
def places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    with ExitStack() as stack:
        yield start_brokers([request.param] * COUNT, tmp_path_factory.mktemp("brokers"), stack)


@pytest.fixture
def site(places: list[str], capsys: pytest.CaptureFixture[str]) -> Iterator[Site]:
    """The brokers, which lose afterwards what the test gave them."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        down = f"localhost:{free.getsockname()[1]}"
    site = Site(places, down, capsys)
    yield site
    for number in range(1, COUNT + 1):
        with site.agent(number) as agent:
            links = agent.list("link")
            if links:
                site.type(f"qpid-route route flush {{{number}}} -e")
            for queue in [item.name for item in agent.getAllQueues() if item.name in ("q", "public")]:
                agent.delQueue(queue, if_empty=False, if_unused=False)
            for exchange in [item.name for item in agent.getAllExchanges() if item.name.startswith(("fed.", "hub1."))]:
                agent.delExchange(exchange)


def test_the_links_of_a_broker(site: Site) -> None:
    site.type("qpid-route link add {1} {2}")
    site.type("qpid-route link add {1} {3}")
    site.type("qpid-route --quiet link add {1} {down}")

    def states() -> dict[str, str]:
        _, heading, rule, *rows = site.type("qpid-route link list {1}")
        assert heading == "Host            Port    Transport Durable  State             Last Error"
        assert rule == "=" * 77
        words = [row.split(maxsplit=5) for row in rows]
        assert {(row[0], row[2], row[3]) for row in words} == {("localhost", "tcp", "N")}
        return {row[1]: " ".join(row[4:]) for row in words}

    ports = [site.places[name].rpartition(":")[2] for name in ("2", "3", "down")]
    wait_until(lambda: "refused" in states()[ports[2]], "the third one is tried")
    found = states()
    assert [found[port].split()[0] for port in ports] == ["Operational", "Operational", "Waiting"]
    assert "refused" in found[ports[2]]


def test_a_durable_route_needs_a_durable_link(site: Site) -> None:
    for number in (3, 4):
        for name in ("fed.topic", "fed.topic2"):
            site.type(f"qpid-config -a {{{number}}} add exchange topic {name}")
    site.session("$ qpid-route dynamic add {3} {4} fed.topic")
    error = site.type("qpid-route dynamic add {3} {4} fed.topic2 --durable", code=1)
    assert error == ["Failed: Can't create a durable route on a non-durable link"]
    site.session(
        """
$ qpid-route route flush {3} --del-empty-link
$ qpid-route dynamic add {3} {4} fed.topic2 --durable
$ qpid-route dynamic add {3} {4} fed.topic
"""
    )


def test_a_network_of_two_brokers(site: Site) -> None:
    site.session(
        """
$ qpid-config -a {3} add exchange topic fed.topic
$ qpid-config -a {4} add exchange topic fed.topic
$ qpid-route dynamic add {3} {4} fed.topic
$ qpid-route dynamic add {4} {3} fed.topic
$ qpid-route route list {3}
{3} {4} fed.topic  <dynamic> False
$ qpid-route route list {4}
{4} {3} fed.topic  <dynamic> False
"""
    )
    lines = site.type("qpid-route route map {3}")
    assert lines[:4] == ["", "Finding Linked Brokers:", *(site.fill(f"    {{{number}}}... Ok") for number in (3, 4))]
    assert lines[4:8] == ["", "Dynamic Routes:", "", "  Exchange fed.topic:"]
    assert lines[8] in (site.fill("    {4} <=> {3}"), site.fill("    {3} <=> {4}"))
    assert lines[9:] == ["", "Static Routes:", "  none found", ""]
    for here, there in ((3, 4), (4, 3)):
        site.bind(here, "fed.topic", f"to.{here}")
        site.bound(there, f"to.{here}")
        site.publish(there, f"fed.topic/to.{here}", f"for {here}")
        assert site.take(here) == f"for {here}"


def test_an_exchange_route(site: Site) -> None:
    site.session(
        """
$ qpid-route route add {1} {2} amq.topic global.#
$ qpid-route route list {1}
{1} {2} amq.topic   global.# False
$ qpid-route route map {1}
Finding Linked Brokers:
    {1}... Ok
    {2}... Ok
Dynamic Routes:
  none found
Static Routes:
  {1}(ex=amq.topic) <= {2}(ex=amq.topic) key=global.#
"""
    )
    site.bind(1, "amq.topic", "#")
    site.bound(2, "global.#")
    site.publish(2, "amq.topic/local.news", "stays")
    site.publish(2, "amq.topic/global.news", "goes")
    assert site.take(1) == "goes"
    site.session("$ qpid-route route del {1} {2} amq.topic global.# --del-empty-link\n$ qpid-route route list {1}")
    assert site.type("qpid-route link list {1}") == ["No Links Found"]


@pytest.mark.parametrize("push", [False, True], ids=["pull", "push"])
def test_a_queue_route(site: Site, push: bool) -> None:
    site.bind(1, "amq.fanout")
    option, asked, arrow = ("--src-local", 2, "=>") if push else ("", 1, "<=")
    site.session(
        f"$ qpid-config -a {{2}} add queue public\n$ qpid-route {option} queue add {{1}} {{2}} amq.fanout public"
    )
    site.publish(2, "public", "to the other exchange")
    assert site.take(1) == "to the other exchange"
    left, right = ("{2}(queue=public)", "{1}(ex=amq.fanout)") if push else ("{1}(ex=amq.fanout)", "{2}(queue=public)")
    lines = site.type(f"qpid-route route map {{{asked}}}")
    assert site.fill(f"  {left} {arrow} {right}") in lines
    site.session(f"$ qpid-route {option} queue del {{1}} {{2}} amq.fanout public")
    assert site.type(f"qpid-route route list {{{asked}}}") == []


def test_static_routes_by_keys(site: Site) -> None:
    """What follows the summary of the options in the manual: several keys of one exchange."""
    keys = ("hub2.topic.stock.buy", "hub2.topic.stock.sell", "hub2.topic.stock.#", "hub2.#", "hub2.global.#")
    for number in (1, 2):
        site.type(f"qpid-config -a {{{number}}} add exchange topic hub1.topic")
    for key in keys:
        printed = site.type(f"qpid-route -v route add {{1}} {{2}} hub1.topic '{key}'")
        assert printed[0].startswith("Link state is ")
        assert [line.split(":")[0] for line in printed[1:]] == [
            "Creating inter-broker binding...",
            "Bridge method returned",
        ]
    listed = {line.split()[3] for line in site.type("qpid-route route list {1}")}
    assert listed == set(keys)
    flushed = site.type("qpid-route -v route flush {1}")
    assert sorted(flushed) == sorted(site.fill(f"Deleting Bridge: {{2}} hub1.topic {key}... Ok") for key in keys)


#: The manual's script for brokers in two tiers.
TREE = """
qpid-config -a $broker1 add exchange topic fed.topic
qpid-config -a $broker2 add exchange topic fed.topic
qpid-config -a $broker3 add exchange topic fed.topic
qpid-config -a $broker4 add exchange topic fed.topic
qpid-config -a $broker5 add exchange topic fed.topic
qpid-config -a $broker6 add exchange topic fed.topic
qpid-config -a $broker7 add exchange topic fed.topic
qpid-config -a $broker8 add exchange topic fed.topic
qpid-route dynamic add $broker1 $broker2 fed.topic
qpid-route dynamic add $broker2 $broker1 fed.topic
qpid-route dynamic add $broker3 $broker2 fed.topic
qpid-route dynamic add $broker2 $broker3 fed.topic
qpid-route dynamic add $broker4 $broker2 fed.topic
qpid-route dynamic add $broker2 $broker4 fed.topic
qpid-route dynamic add $broker2 $broker5 fed.topic
qpid-route dynamic add $broker5 $broker2 fed.topic
qpid-route dynamic add $broker5 $broker6 fed.topic
qpid-route dynamic add $broker6 $broker5 fed.topic
qpid-route dynamic add $broker6 $broker7 fed.topic
qpid-route dynamic add $broker7 $broker6 fed.topic
qpid-route dynamic add $broker6 $broker8 fed.topic
qpid-route dynamic add $broker8 $broker6 fed.topic
"""
_EDGES = [(1, 2), (2, 3), (2, 4), (2, 5), (5, 6), (6, 7), (6, 8)]


def _check_tree(site: Site) -> None:
    """Each broker reaches each; the map names all of them, and no more routes than there are."""
    site.bind(1, "fed.topic", "k")
    site.bind(8, "fed.topic", "k")
    for number in range(2, 8):
        site.bound(number, "k")
    for sender, receivers in ((4, (1, 8)), (1, (8,)), (8, (1,))):
        site.publish(sender, "fed.topic/k", f"from {sender}")
        for receiver in {*receivers, *({sender} & {1, 8})}:
            assert site.take(receiver) == f"from {sender}"
    lines = site.type("qpid-route route map {3}")
    assert sum(line.endswith("... Ok") for line in lines) == COUNT
    pairs = {frozenset(line.split()[::2]) for line in lines if " <=> " in line}
    assert pairs == {frozenset(site.places[str(number)] for number in pair) for pair in _EDGES}


def test_the_tree_of_two_tiers(site: Site) -> None:
    for line in TREE.strip().splitlines():
        assert site.type(_numbered(line)) == []
    _check_tree(site)


def _numbered(line: str) -> str:
    for number in range(1, COUNT + 1):
        line = line.replace(f"$broker{number}", f"{{{number}}}")
    return line


@pytest.mark.soak
def test_the_tree_by_the_script_of_the_manual(site: Site) -> None:
    """As the manual has it: a script of the shell, with the commands."""
    places = [f"broker{number}={site.places[str(number)]}" for number in range(1, COUNT + 1)]
    folder = command("qpid-route").rpartition("/")[0]
    script = "\n".join(["set -e", f"PATH={folder}:$PATH", *places, TREE])
    done = run(["sh", "-c", script])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    _check_tree(site)
