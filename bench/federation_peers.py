"""Pairs of brokers of which one takes messages from the other: ours, qpidd by bridges, RabbitMQ by shovels."""

from __future__ import annotations

import abc
import base64
import contextlib
import json
import socket
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from broker_peers import MeasuredBroker, brokers

from qmf.client import BrokerAgent
from qmf.client.objects import Queue
from qmf.messaging import Connection, Message, Session

RABBITMQ = "RabbitMQ"
#: Seconds for everything that is waited for.
TIMEOUT = 600.0
#: Messages that are sent at once, and bytes of each.
BATCH, SIZE = 1_000, 100
#: The queue at the destination in which all messages arrive.
ARRIVED = "arrived"


class FederatedPair(abc.ABC):
    """Two brokers of a kind.

    Attributes:
        name: of the kind.
        source, target: the brokers.
    """

    def __init__(self, name: str, source: MeasuredBroker, target: MeasuredBroker, stack: ExitStack) -> None:
        """Connect to both."""
        self.name = name
        self.source = source
        self.target = target
        ends = [stack.enter_context(Connection.establish(url, timeout=TIMEOUT)) for url in (source.url, target.url)]
        self.sessions: list[Session] = [end.session() for end in ends]

    def cpu(self) -> float:
        """Seconds of processor time of both."""
        return self.source.cpu() + self.target.cpu()

    def memory(self) -> float:
        """Resident memory of both, in bytes."""
        return self.source.memory() + self.target.memory()

    def fill(self, queue: str, count: int) -> None:
        """Send messages to a queue of the source."""
        sender = self.sessions[0].sender(self.address(queue), capacity=BATCH)
        for _ in range(count):
            sender.send(Message(b"x" * SIZE), sync=False)
        self.sessions[0].sync()
        sender.close()

    @abc.abstractmethod
    def address(self, queue: str) -> str:
        """The address of a queue."""

    @abc.abstractmethod
    def add_queue(self, name: str) -> None:
        """Create a queue at the source."""

    @abc.abstractmethod
    def add_route(self, name: str, queue: str, url: str) -> None:
        """Create a link, with a route on it from a queue of the source, which is at the URL."""

    @abc.abstractmethod
    def wait_for_routes(self, count: int) -> None:
        """Return when so many are up."""

    @abc.abstractmethod
    def wait_for_messages(self, count: int) -> None:
        """Return when so many have arrived since the beginning."""

    @abc.abstractmethod
    def empty(self) -> None:
        """Remove what has arrived."""


class ManagedPair(FederatedPair):
    """Brokers with qpidd's management."""

    def __init__(self, source: MeasuredBroker, target: MeasuredBroker, stack: ExitStack) -> None:
        """Args as of `FederatedPair`."""
        super().__init__(source.name, source, target, stack)
        self._agents = [
            stack.enter_context(BrokerAgent.connect(item.url, timeout=TIMEOUT)) for item in (source, target)
        ]
        self._agents[1].addQueue(ARRIVED, {"qpid.max_count": 0, "qpid.max_size": 0})
        self._agents[1].bind("amq.fanout", ARRIVED, "")

    def address(self, queue: str) -> str:
        """See `FederatedPair`."""
        return queue

    def add_queue(self, name: str) -> None:
        """See `FederatedPair`."""
        self._agents[0].addQueue(name, {"qpid.max_count": 0, "qpid.max_size": 0})

    def add_route(self, name: str, queue: str, url: str) -> None:
        """See `FederatedPair`."""
        place = urlsplit(url)
        self._agents[1].create("link", name, {"host": place.hostname, "port": place.port})
        route = {"link": name, "src": queue, "dest": "amq.fanout", "srcIsQueue": True, "sync": 100, "credit": 500}
        self._agents[1].create("bridge", f"{name}.route", route)

    def wait_for_routes(self, count: int) -> None:
        """See `FederatedPair`."""
        _wait(lambda: self._queue(0, "idle").consumerCount >= count, 0.2)

    def wait_for_messages(self, count: int) -> None:
        """See `FederatedPair`."""
        _wait(lambda: self._queue(1, ARRIVED).msgTotalEnqueues >= count)

    def empty(self) -> None:
        """See `FederatedPair`."""
        self._queue(1, ARRIVED).purge(0)

    def _queue(self, broker: int, name: str) -> Queue:
        found = self._agents[broker].getQueue(name)
        if found is None:
            raise RuntimeError(f"queue {name} is gone")
        return found


class ShovelPair(FederatedPair):
    """RabbitMQ with its shovel, over AMQP 0-9-1, as it is by default."""

    def __init__(self, source: RabbitNode, target: RabbitNode, stack: ExitStack) -> None:
        """Args as of `FederatedPair`."""
        super().__init__(RABBITMQ, source.measured, target.measured, stack)
        self._source, self._target = source, target
        self._emptied = 0
        target.ask("PUT", f"queues/%2f/{ARRIVED}", {"durable": False})

    def address(self, queue: str) -> str:
        """See `FederatedPair`."""
        return f"'/amq/queue/{queue}'"

    def add_queue(self, name: str) -> None:
        """See `FederatedPair`."""
        self._source.ask("PUT", f"queues/%2f/{name}", {"durable": False})

    def add_route(self, name: str, queue: str, url: str) -> None:
        """See `FederatedPair`."""
        ends = {"src-uri": url, "src-queue": queue, "dest-uri": self.target.url, "dest-queue": ARRIVED}
        value = {**ends, "src-prefetch-count": 500, "reconnect-delay": 1}
        self._target.ask("PUT", f"parameters/shovel/%2f/{name}", {"value": value})

    def wait_for_routes(self, count: int) -> None:
        """See `FederatedPair`."""
        _wait(lambda: self._source.count("idle", "consumers") >= count, 0.5)

    def wait_for_messages(self, count: int) -> None:
        """See `FederatedPair`."""
        _wait(lambda: self._target.count(ARRIVED, "messages") + self._emptied >= count, 0.1)

    def empty(self) -> None:
        """See `FederatedPair`."""
        self._emptied += self._target.count(ARRIVED, "messages")
        self._target.ask("DELETE", f"queues/%2f/{ARRIVED}/contents", None)
        _wait(lambda: self._target.count(ARRIVED, "messages") == 0, 0.1)


class RabbitNode:
    """A RabbitMQ, asked over HTTP.

    Attributes:
        measured: its process.
    """

    def __init__(self, url: str, http_port: int, process: psutil.Process) -> None:
        """Args: its URL, the port of its management, and as the attribute."""
        self.measured = MeasuredBroker(RABBITMQ, url, process)
        self._api = f"http://127.0.0.1:{http_port}/api"

    def answers(self) -> bool:
        """Its management is there."""
        try:
            return bool(self.ask("GET", "overview", None))
        except OSError:
            return False

    def count(self, queue: str, value: str) -> int:
        """A value of a queue; 0 before it has one."""
        found = self.ask("GET", f"queues/%2f/{queue}", None)
        number = found.get(value, 0) if isinstance(found, dict) else 0
        return number if isinstance(number, int) else 0

    def ask(self, method: str, path: str, body: object) -> object:
        """What the management answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._api}/{path}", data, method=method)
        login = base64.b64encode(b"guest:guest").decode()
        request.add_header("Authorization", f"Basic {login}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            text = answer.read()
        return json.loads(text) if text else None


def pairs() -> Sequence[Callable[[], contextlib.AbstractContextManager[FederatedPair]]]:
    """Starts a pair of each kind; ours first."""
    found: list[Callable[[], contextlib.AbstractContextManager[FederatedPair]]] = []
    for start in brokers(None, "--auth", "no", "--max-connections", "5000"):
        found.append(partial(_managed, start))
    rabbit = _rabbit_type()
    if rabbit is not None:
        found.append(partial(_shovels, rabbit))
    return found


@contextlib.contextmanager
def _managed(start: Callable[[], contextlib.AbstractContextManager[MeasuredBroker]]) -> Iterator[FederatedPair]:
    with ExitStack() as stack:
        source, target = (stack.enter_context(start()) for _ in range(2))
        yield ManagedPair(source, target, stack)


@contextlib.contextmanager
def _shovels(rabbitmq: Callable[..., contextlib.AbstractContextManager[str]]) -> Iterator[FederatedPair]:
    with ExitStack() as stack:
        nodes = []
        for _ in range(2):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            port = _free_port()
            more = ("rabbitmq_shovel", "rabbitmq_shovel_management")
            url = stack.enter_context(rabbitmq(folder, port, more, "collect_statistics_interval = 500\n"))
            node = RabbitNode(url, port, psutil.Process(int((folder / "pid").read_text())))
            _wait(node.answers, 0.2)
            nodes.append(node)
        yield ShovelPair(nodes[0], nodes[1], stack)


def _rabbit_type() -> Callable[..., contextlib.AbstractContextManager[str]] | None:
    """What starts a RabbitMQ, where it was fetched."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from scripts.brokers import CACHE, rabbitmq

    return rabbitmq if (CACHE / "rabbitmq").exists() else None


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _wait(condition: Callable[[], bool], pause: float = 0.1) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {TIMEOUT:g} s")
        time.sleep(pause)
