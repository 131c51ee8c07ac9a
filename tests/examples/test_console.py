"""The programs in examples/, run as a user runs them: on an embedded broker, with agents of queues and of a host."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from support.processes import Process, run

from qmf.agent import Agent
from qmf.broker import EmbeddedBroker
from qmf.console import LoopThread
from qmf.hostagent import EmbeddedHostAgent
from qmf.models.broker.agent import Broker, Queue, QueueDeclare

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PROGRAMS = sorted(path.stem for path in EXAMPLES.glob("*.py"))
STREAMS = ("event_watcher", "heartbeat_monitor", "queue_rates")


@attrs.define
class Site:
    """A broker with a host agent, and an agent with queues like qpidd's."""

    url: str
    loop: LoopThread
    agent: Agent
    queue: Queue

    def declare(self) -> None:
        """Raise an event."""
        event = QueueDeclare(
            rhost="here", user="me", qName="orders.new", durable=True, excl=False, autoDel=False, altEx="", args={},
            disp="created",
        )  # fmt: skip
        self.agent.raise_event(event)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    broker = EmbeddedBroker()
    broker.start()
    loop = LoopThread("test-queues")
    agent = Agent(broker.url, vendor="example.org", product="broker", instance="b", epoch=1, interval=0.2)
    orders, quiet = (
        Queue(name="orders", durable=True, autoDelete=False),
        Queue(name="quiet", durable=False, autoDelete=True),
    )
    agent.add(orders)
    agent.add(quiet)
    orders.msgTotalEnqueues.inc(12)
    orders.msgTotalDequeues.inc(5)
    agent.register(QueueDeclare, Broker)
    loop.run(agent.start())
    with EmbeddedHostAgent(broker.url, 1.0):
        yield Site(broker.url, loop, agent, orders)
    loop.run(agent.close())
    loop.stop()
    broker.close()


def example(name: str, *args: str) -> list[str]:
    return [sys.executable, str(EXAMPLES / f"{name}.py"), *args]


def output(name: str, *args: str) -> str:
    """What a program prints that ends well by itself."""
    done = run(example(name, *args))
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_these_are_all() -> None:
    assert PROGRAMS == ["echo_latency", "event_watcher", "heartbeat_monitor", "list_queues", "queue_rates"]


def test_list_queues(site: Site) -> None:
    head, *rows = output("list_queues", site.url).splitlines()
    assert head.split() == ["Queue", "Messages", "Bytes", "Consumers", "Kind"]
    assert [row.split() for row in rows] == [
        ["orders", str(site.queue.msgDepth.value), "0", "0", "durable"],
        ["quiet", "0", "0", "0", "auto-delete"],
    ]
    by_depth = output("list_queues", site.url, "--sort", "depth", "--match", "[oq]*").splitlines()[1:]
    assert [row.split()[0] for row in by_depth] == ["orders", "quiet"]
    assert output("list_queues", site.url, "--match", "x*").splitlines()[1:] == []


def test_queue_rates(site: Site) -> None:
    process = Process(*example("queue_rates", site.url, "--interval", "0.5", "--match", "orders"))
    process.wait_for("orders")

    async def work() -> None:
        for _ in range(100):
            site.queue.msgTotalEnqueues.inc()
            await asyncio.sleep(0.02)

    site.loop.run(work())
    rates = []
    for _ in range(3):
        _, depth, incoming, outgoing = process.wait_for("orders").split()
        rates.append(float(incoming))
        assert float(outgoing) == 0.0
    assert process.end(signal.SIGINT) == 0
    assert max(rates) > 10
    assert int(depth) > 7
    assert "Traceback" not in "".join(process.lines)


def test_queue_rates_ends_after_so_many_tables(site: Site) -> None:
    assert output("queue_rates", site.url, "--interval", "0.1", "--count", "2").count("orders") == 2


def test_event_watcher(site: Site) -> None:
    args = ["--package", "org.apache.qpid.broker", "--event", "queueDeclare", "--severity", "inform", "--count", "2"]
    process = Process(*example("event_watcher", site.url, *args))
    process.wait_for("connected to")
    site.declare()
    line = process.wait_for("queueDeclare")
    assert " INFO  org.apache.qpid.broker:queueDeclare broker=" in line
    assert "qName=orders.new durable=T" in line
    site.declare()
    process.wait_for("queueDeclare")
    assert process.end(0) == 0


def test_event_watcher_waits_for_its_broker() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"amqp://127.0.0.1:{probe.getsockname()[1]}"
    process = Process(*example("event_watcher", url))
    assert "refused" in process.wait_for("no connection, trying again")
    assert process.end(signal.SIGINT) == 0


def test_heartbeat_monitor(site: Site) -> None:
    process = Process(*example("heartbeat_monitor", site.url, "--beats"))
    process.wait_for("example.org:broker:b beats, ")
    other = Agent(site.url, vendor="example.org", product="guest", instance="g", epoch=1, interval=0.2)
    site.loop.run(other.start())
    process.wait_for("example.org:guest:g appeared, a heartbeat every 1 s")
    site.loop.run(other.close())
    process.wait_for("example.org:guest:g has disappeared: goodbye")
    assert process.end(signal.SIGINT) == 0
    assert any("is present" in line for line in process.lines)


def test_echo_latency(site: Site) -> None:
    (line,) = output("echo_latency", site.url, "--count", "50", "--at-once", "5", "--size", "100").splitlines()
    assert line.startswith("qmf:host:")
    for words in ("50 calls, ", " per second; least ", " ms, median ", " ms, 99 % within ", " ms, most "):
        assert words in line
    done = run(example("echo_latency", site.url, "--class", "org.example:nothing"))
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "org.example:nothing" in done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_help_describes_the_program(name: str) -> None:
    text = output(name, "--help")
    assert text.startswith(f"usage: {name}")
    assert "amqp://127.0.0.1:5672" in text


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "event_watcher"])
def test_no_broker_is_one_line(name: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"amqp://127.0.0.1:{probe.getsockname()[1]}"
    done = run(example(name, url))
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1), done.stderr
    assert done.stderr.startswith(f"{name}: cannot connect to {url}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_url_that_is_none_is_one_line(name: str) -> None:
    done = run(example(name, "http://x"))
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert "http://x" in done.stderr


@pytest.mark.parametrize("name", STREAMS)
def test_ctrl_c_is_a_clean_end(name: str, site: Site) -> None:
    process = Process(*example(name, site.url, *["--interval=0.2"] * (name == "queue_rates")))
    process.wait_for({"event_watcher": "connected", "heartbeat_monitor": "is present", "queue_rates": "orders"}[name])
    assert process.end(signal.SIGINT) == 0
    assert "Traceback" not in "".join(process.lines)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("queue_rates", ["--interval", "0"]),
        ("echo_latency", ["--count", "0"]),
        ("echo_latency", ["--class", "x"]),
        ("list_queues", ["--sort", "size"]),
        ("event_watcher", ["--severity", "loud"]),
    ],
)
def test_wrong_arguments_are_reported(name: str, args: list[str]) -> None:
    done = run(example(name, *args))
    assert done.returncode == 2
    assert done.stderr.startswith("usage:")
    assert args[-1] in done.stderr
