"""The cheat sheets of qpidd's manual for queues and exchanges, and its listings of last value queues.

What the manual writes in C++ is done with `qpid-config`, and with the example programs `spout` and `drain`.
"""

from __future__ import annotations

import runpy
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.managed_brokers import NEVER
from support.processes import command, run
from support.waiting import WAIT_LIMIT

from qmf.broker import EmbeddedBroker
from qmf.messaging import RELEASED, Connection, Disposition
from qmf.tools.config.cli import main as qpid_config

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"

Program = Callable[[list[str]], int]


class Terminal:
    """Where an operator types lines; the programs run in the process of the tests."""

    def __init__(self, broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]) -> None:
        self.url = broker.url
        self._capsys = capsys
        self._address = f"guest/guest@127.0.0.1:{broker.port}"
        self._programs: Mapping[str, Program] = {
            "qpid-config": qpid_config,
            "spout": runpy.run_path(str(EXAMPLES / "spout"))["main"],
            "drain": runpy.run_path(str(EXAMPLES / "drain"))["main"],
        }

    def __call__(self, line: str) -> list[str]:
        """What a line prints that succeeds."""
        code, out, err = self._run(line)
        assert code == 0, (line, err)
        return out.splitlines()

    def fails(self, line: str) -> str:
        """The error of a line that fails."""
        code, out, err = self._run(line)
        assert (code, out) == (1, ""), line
        assert err.count("\n") == 1, err
        return err

    def _run(self, line: str) -> tuple[int, str, str]:
        program, *words = self._words(line)
        code = self._programs[program](words)
        return (code, *self._capsys.readouterr())

    def _words(self, line: str) -> list[str]:
        program, *words = shlex.split(line)
        if program == "qpid-config":
            return [program, *words, "-a", self._address, "--timeout", str(WAIT_LIMIT)]
        return [program, "-b", self.url, *words]


class Installed(Terminal):
    """The same, with the installed programs as processes."""

    def _run(self, line: str) -> tuple[int, str, str]:
        program, *words = self._words(line)
        done = run([command(program) if program == "qpid-config" else str(EXAMPLES / program), *words])
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def terminal(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Terminal]:
    # The programs find the Python that runs the tests, and this project as the tests do.
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    monkeypatch.setenv("PYTHONPATH", ":".join(entry for entry in sys.path if entry))
    with EmbeddedBroker(management=NEVER, data_dir=tmp_path) as broker:
        yield (Installed if getattr(request, "param", "") == "installed" else Terminal)(broker, capsys)


both = pytest.mark.parametrize(
    "terminal", ["imported", pytest.param("installed", marks=pytest.mark.slow)], indirect=True
)


# 2.1.1 Applying queue sizing constraints


def test_a_queue_of_100_000_bytes_that_rejects(terminal: Terminal) -> None:
    terminal("qpid-config add queue small --max-queue-size 100000 --limit-policy reject --argument auto-delete=true")
    assert terminal("qpid-config queues small")[2:] == [
        "small       auto-del --max-queue-size=100000 --limit-policy=reject"
    ]
    terminal(f"spout small -c 9 {'x' * 11_000}")
    assert "Maximum depth exceeded on small" in terminal.fails(f"spout small {'x' * 11_000}")
    assert terminal("drain small -p x") == ["x"] * 9
    # Its last receiver is gone, and so is the queue.
    assert "small" in terminal.fails("drain small")


def test_a_ring_of_1000_messages(terminal: Terminal) -> None:
    terminal("qpid-config add queue ring --max-queue-count 1000 --limit-policy ring")
    terminal("spout ring -I a -c 1010")
    lines = terminal("drain ring -p %(P)s")
    assert (lines[0], lines[-1], len(lines)) == ("{'spout-id': 'a:10'}", "{'spout-id': 'a:1009'}", 1000)


def test_a_strict_ring_rejects_while_its_oldest_message_is_acquired(terminal: Terminal) -> None:
    terminal("qpid-config add queue strict --max-queue-count 2 --limit-policy ring-strict")
    for content in ("one", "two", "three"):
        terminal(f"spout strict {content}")
    with Connection.establish(terminal.url) as connection:
        session = connection.session()
        assert session.receiver("strict", capacity=0).fetch(WAIT_LIMIT).content == "two"
        assert "strict" in terminal.fails("spout strict four")
        session.acknowledge()
    terminal("spout strict five")
    assert terminal("drain strict -p %(C)s") == ["three", "five"]


def test_messages_flow_to_the_disk(terminal: Terminal) -> None:
    terminal("qpid-config add queue paged --max-queue-count 10 --limit-policy flow-to-disk")
    terminal("spout paged -I a -c 30")
    assert terminal("drain paged -p %(P)s") == [f"{{'spout-id': 'a:{number}'}}" for number in range(30)]


# 2.1.2 Changing the queue ordering behaviours


def stock(terminal: Terminal, symbol: str, price: int) -> None:
    terminal(f"spout stocks -P qpid.LVQ_key={symbol} {price}")


def test_the_last_published_value_is_received(terminal: Terminal) -> None:
    terminal("qpid-config add queue stocks --order lvq")
    for price, symbol in enumerate(("RHT", "IBM", "JAVA", "MSFT", "RHT")):
        stock(terminal, symbol, price)
    assert terminal("drain stocks -p %(C)s") == ["4", "1", "2", "3"]


def test_a_message_that_is_given_back_makes_room_for_a_newer_one(terminal: Terminal) -> None:
    terminal("qpid-config add queue stocks --order lvq")
    stock(terminal, "RHT", 1)
    with Connection.establish(terminal.url) as connection:
        session = connection.session()
        message = session.receiver("stocks", capacity=0).fetch(WAIT_LIMIT)
        stock(terminal, "RHT", 2)
        stock(terminal, "RHT", 3)
        session.acknowledge(message, Disposition(RELEASED))
        session.sync()
    assert terminal("drain stocks -p %(C)s") == ["3"]


def test_a_message_that_was_given_back_is_not_replaced(terminal: Terminal) -> None:
    terminal("qpid-config add queue stocks --order lvq")
    stock(terminal, "RHT", 1)
    with Connection.establish(terminal.url) as connection:
        session = connection.session()
        session.acknowledge(session.receiver("stocks", capacity=0).fetch(WAIT_LIMIT), Disposition(RELEASED))
        session.sync()
    stock(terminal, "RHT", 2)
    assert terminal("drain stocks -p %(C)s") == ["1", "2"]


# 2.1.3 Setting additional behaviours, 2.1.4 Other clients


def test_options_that_are_kept_with_a_queue(terminal: Terminal) -> None:
    terminal("qpid-config add queue my-queue --durable --generate-queue-events 1")
    terminal("qpid-config add queue other --durable --argument qpid.persist_last_node=1")
    assert terminal("qpid-config queues my-queue")[2:] == ["my-queue    --durable --generate-queue-events=1"]
    assert "qpid.persist_last_node=1" in terminal("qpid-config queues other")[2]


def test_options_by_another_client(terminal: Terminal) -> None:
    arguments = "{'qpid.max_count': 2, 'qpid.policy_type': ring}"
    address = f"tiny; {{create: always, node: {{x-declare: {{arguments: {arguments}}}}}}}"
    terminal(f'spout "{address}" -I a -c 5')
    assert terminal("qpid-config queues tiny")[2:] == ["tiny        --max-queue-count=2 --limit-policy=ring"]
    assert terminal("drain tiny -p %(P)s") == ["{'spout-id': 'a:3'}", "{'spout-id': 'a:4'}"]


# 3.1.1 Exchange level message sequencing


@pytest.mark.parametrize("kind", ["direct", "topic", "fanout", "headers"])
def test_messages_are_numbered_in_their_exchange(kind: str, terminal: Terminal) -> None:
    terminal(f"qpid-config add exchange {kind} numbered --sequence")
    terminal("qpid-config add queue numbers")
    terminal(f"qpid-config bind numbered numbers key {'any spout-id=a:0, all=no' if kind == 'headers' else ''}")
    terminal("spout numbered/key -I a")
    terminal("spout numbered/key -I a")
    numbers = range(2)
    shown = [f"{{qpid.subject:key, spout-id:a:0, qpid.msg_sequence:{number}}}" for number in numbers]
    assert terminal("drain numbers") == [f"Message(properties={properties}, content='')" for properties in shown]


# 3.1.2 Initial value exchange


@pytest.mark.parametrize("kind", ["direct", "topic", "fanout"])
def test_a_queue_gets_the_last_message_when_it_is_bound(kind: str, terminal: Terminal) -> None:
    terminal(f"qpid-config add exchange {kind} initial --ive")
    for content in ("first", "last"):
        terminal(f"spout initial/key {content}")
    terminal("qpid-config add queue late")
    terminal("qpid-config bind initial late key")
    assert terminal("drain late -p %(C)s") == ["last"]
    if kind != "fanout":
        terminal("qpid-config add queue other")
        terminal("qpid-config bind initial other another-key")
        assert terminal("drain other") == []
    # Who receives from the exchange itself has a queue bound then.
    assert terminal("drain initial/key -p %(C)s") == ["last"]


# 3.1.3 Exclusive binding for a key


def exclusive(queue: str) -> str:
    """The address of a queue that becomes the only one with the key."""
    binding = f"{{exchange: amq.direct, queue: {queue}, key: my-key, arguments: {{'qpid.exclusive-binding': 1}}}}"
    return f"{queue}; {{create: always, node: {{x-bindings: [{binding}]}}}}"


def test_a_binding_becomes_the_only_one_of_its_key(terminal: Terminal) -> None:
    for name in ("old", "older"):
        terminal(f"qpid-config add queue {name}")
        terminal(f"qpid-config bind amq.direct {name} my-key")
    terminal("spout amq.direct/my-key before")
    assert terminal(f'drain "{exclusive("my-queue")}"') == []
    terminal("spout amq.direct/my-key after")
    found = {name: terminal(f"drain {name} -p %(C)s") for name in ("old", "older", "my-queue")}
    assert found == {"old": ["before"], "older": ["before"], "my-queue": ["after"]}
    bindings = terminal("qpid-config exchanges amq.direct -b")
    (only,) = [line for line in bindings if "[my-key]" in line]
    assert "=> my-queue" in only


def test_each_message_of_a_stream_goes_to_one_queue_while_the_binding_moves(terminal: Terminal) -> None:
    names = ["one", "two"]
    for name in names:
        terminal(f"qpid-config add queue {name}")
    with Connection.establish(terminal.url) as connection, ThreadPoolExecutor(1) as sending:
        session = connection.session()
        session.sender(exclusive("one")).close()
        stream = sending.submit(terminal, "spout amq.direct/my-key -I a -c 500")
        moves = 0
        while not stream.done() or moves < 2:
            session.sender(exclusive(names[moves % 2])).close()
            moves += 1
        stream.result()
    found = [line for name in names for line in terminal(f"drain {name} -p %(P)s")]
    assert sorted(found) == sorted(f"{{'spout-id': 'a:{number}'}}" for number in range(500))


# 6.2 and 6.3: the listings of lvqtest


def write(terminal: Terminal, run_of: str) -> None:
    for key in ("key1", "key2", "key3", "key1"):
        terminal(f"spout LVQtester -P qpid.LVQ_key={key} {key}.{run_of}")
    terminal("spout LVQtester -P qpid.LVQ_key=last last")


def browse(terminal: Terminal) -> list[str]:
    return terminal("drain 'LVQtester; {mode: browse}' -p %(C)s")


def listing(run_of: str) -> list[str]:
    return [f"key1.{run_of}", f"key2.{run_of}", f"key3.{run_of}", "last"]


@both
def test_the_listing_of_lvq(terminal: Terminal) -> None:
    terminal("qpid-config add queue LVQtester --order lvq")
    write(terminal, "one")
    assert browse(terminal) == listing("one")
    write(terminal, "two")
    assert browse(terminal) == listing("two")
    assert terminal("drain LVQtester -p %(C)s") == listing("one") + listing("two")


@both
def test_the_listing_of_lvq_no_browse(terminal: Terminal) -> None:
    terminal("qpid-config add queue LVQtester --order lvq-no-browse")
    write(terminal, "one")
    write(terminal, "two")
    assert browse(terminal) == listing("two")
    assert browse(terminal) == listing("two")
    write(terminal, "three")
    assert terminal("drain LVQtester -p %(C)s") == listing("three")


def test_an_acquired_value_is_not_replaced(terminal: Terminal) -> None:
    """6.2 and 6.3, a: the new message has a place of its own, and is replaced there."""
    for order in ("lvq", "lvq-no-browse"):
        terminal(f"qpid-config add queue {order} --order {order}")
        terminal(f"spout {order} -P qpid.LVQ_key=k one")
        with Connection.establish(terminal.url) as connection:
            session = connection.session()
            assert session.receiver(order, capacity=0).fetch(WAIT_LIMIT).content == "one"
            for content in ("two", "three"):
                terminal(f"spout {order} -P qpid.LVQ_key=k {content}")
            session.acknowledge()
        assert terminal(f"drain {order} -p %(C)s") == ["three"]
