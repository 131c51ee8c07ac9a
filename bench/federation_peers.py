"""Pairs of brokers of which one takes messages from the other: ours, qpidd by bridges, RabbitMQ by shovels.

Each broker has a folder of its own for what is durable. Nodes and messages are not, unless they are asked for.
"""

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
#: Messages that may be on their way, and after how many a bridge of qpidd acknowledges them.
CREDIT, ACKNOWLEDGED = 500, 100
#: The queues at the destination in which messages arrive, and durable ones.
ARRIVED, KEPT = "arrived", "kept"
#: Names of the exchanges to which they are bound.
_EXCHANGES = {ARRIVED: "amq.fanout", KEPT: "kept-exchange"}
#: Gives a configuration of RabbitMQ, for the port that it listens on.
ErlangTerms = Callable[[int], str]
#: Limits of qpidd's, which are off.
_UNLIMITED = {"qpid.max_count": 0, "qpid.max_size": 0}


class FederatedPair(abc.ABC):
    """Two brokers of a kind.

    Attributes:
        name: of the kind.
        source, target: the brokers.
        pause: seconds between two looks at what has arrived.
    """

    pause = 0.02

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

    def fill(self, queue: str, count: int, *, durable: bool = False) -> None:
        """Send messages to a queue of the source."""
        sender = self.sessions[0].sender(self.address(queue), capacity=BATCH)
        for _ in range(count):
            sender.send(Message(b"x" * SIZE, durable=durable), sync=False)
        self.sessions[0].sync()
        sender.close()

    @abc.abstractmethod
    def address(self, queue: str) -> str:
        """The address of a queue."""

    @abc.abstractmethod
    def add_queue(self, name: str, *, durable: bool = False) -> None:
        """Create a queue at the source."""

    @abc.abstractmethod
    def add_route(self, name: str, queue: str, url: str, *, target: str = ARRIVED, exactly_once: bool = False) -> None:
        """Create a link, with a route on it from a queue of the source, which is at the URL.

        Args:
            name: of both.
            queue, url: as above.
            target: `ARRIVED` or `KEPT`.
            exactly_once: the route loses and doubles nothing, also over restarts; for `OURS` alone.
        """

    @abc.abstractmethod
    def remove_route(self, name: str) -> None:
        """Delete a link with its route."""

    @abc.abstractmethod
    def add_idle_routes(self, count: int, queue: str) -> None:
        """Have so many links with a route each from a queue of the source, and return when they are up."""

    @abc.abstractmethod
    def count_arrived(self, target: str = ARRIVED) -> int:
        """Messages that have arrived since the beginning."""

    def wait_for_messages(self, count: int, target: str = ARRIVED) -> None:
        """Return when so many have arrived since the beginning."""
        _wait(lambda: self.count_arrived(target) >= count, self.pause)

    @abc.abstractmethod
    def empty(self, target: str = ARRIVED) -> None:
        """Remove what has arrived."""


class ManagedPair(FederatedPair):
    """Brokers with qpidd's management."""

    def __init__(self, source: MeasuredBroker, target: MeasuredBroker, stack: ExitStack) -> None:
        """Args as of `FederatedPair`."""
        super().__init__(source.name, source, target, stack)
        self._agents = [
            stack.enter_context(BrokerAgent.connect(item.url, timeout=TIMEOUT)) for item in (source, target)
        ]
        agent = self._agents[1]
        agent.addExchange("fanout", _EXCHANGES[KEPT], {"durable": True})
        for queue, exchange in _EXCHANGES.items():
            agent.addQueue(queue, {"durable": queue == KEPT, **_UNLIMITED})
            agent.bind(exchange, queue, "")

    def address(self, queue: str) -> str:
        """See `FederatedPair`."""
        return queue

    def add_queue(self, name: str, *, durable: bool = False) -> None:
        """See `FederatedPair`."""
        self._agents[0].addQueue(name, {"durable": durable, **_UNLIMITED})

    def add_route(self, name: str, queue: str, url: str, *, target: str = ARRIVED, exactly_once: bool = False) -> None:
        """See `FederatedPair`."""
        place = urlsplit(url)
        ends = {"link": name, "src": queue, "dest": _EXCHANGES[target], "srcIsQueue": True}
        limits = {"sync": ACKNOWLEDGED, "credit": CREDIT}
        durable = {"durable": True} if exactly_once else {}  # and exactly-once is the default of what is durable
        self._agents[1].create("link", name, {"host": place.hostname, "port": place.port, **durable})
        self._agents[1].create("bridge", f"{name}.route", {**ends, **limits, **durable})

    def remove_route(self, name: str) -> None:
        """See `FederatedPair`."""
        self._agents[1].delete("bridge", f"{name}.route", {})
        self._agents[1].delete("link", name, {})

    def add_idle_routes(self, count: int, queue: str) -> None:
        """See `FederatedPair`."""
        for number in range(count):
            self.add_route(f"{queue}-{number}", queue, self.source.url)
        _wait(lambda: self._queue(0, queue).consumerCount >= count, 0.2)

    def count_arrived(self, target: str = ARRIVED) -> int:
        """See `FederatedPair`."""
        count: int = self._queue(1, target).msgTotalEnqueues
        return count

    def empty(self, target: str = ARRIVED) -> None:
        """See `FederatedPair`."""
        self._queue(1, target).purge(0)

    def _queue(self, broker: int, name: str) -> Queue:
        found = self._agents[broker].getQueue(name)
        if found is None:
            raise RuntimeError(f"queue {name} is gone")
        return found


class ShovelPair(FederatedPair):
    """RabbitMQ with its shovel, over AMQP 0-9-1, as it is by default."""

    pause = 0.1

    def __init__(
        self, source: RabbitNode, target: RabbitNode, stack: ExitStack, restart: Callable[[ErlangTerms], RabbitNode]
    ) -> None:
        """Args as of `FederatedPair`; and what starts another target, with more in its configuration."""
        super().__init__(RABBITMQ, source.measured, target.measured, stack)
        self._source, self._target = source, target
        self._restart = restart
        self._emptied = dict.fromkeys(_EXCHANGES, 0)
        self._add_targets()

    def _add_targets(self) -> None:
        for queue in _EXCHANGES:
            self._target.ask("PUT", f"queues/%2f/{queue}", {"durable": queue == KEPT})

    def address(self, queue: str) -> str:
        """See `FederatedPair`."""
        return f"'/amq/queue/{queue}'"

    def add_queue(self, name: str, *, durable: bool = False) -> None:
        """See `FederatedPair`."""
        self._source.ask("PUT", f"queues/%2f/{name}", {"durable": durable})

    def add_route(self, name: str, queue: str, url: str, *, target: str = ARRIVED, exactly_once: bool = False) -> None:
        """See `FederatedPair`."""
        if exactly_once:
            raise ValueError("a shovel gives each message at least once")
        ends = {"src-uri": url, "src-queue": queue, "dest-uri": self.target.url, "dest-queue": target}
        value = {**ends, "src-prefetch-count": CREDIT, "reconnect-delay": 1}
        self._target.ask("PUT", f"parameters/shovel/%2f/{name}", {"value": value})

    def remove_route(self, name: str) -> None:
        """See `FederatedPair`."""
        self._target.ask("DELETE", f"parameters/shovel/%2f/{name}", None)

    def add_idle_routes(self, count: int, queue: str) -> None:
        """See `FederatedPair`. They are in the configuration of the target: to create hundreds takes minutes."""
        self._target = self._restart(partial(_shovel_terms, count, queue, self.source.url))
        self.target = self._target.measured
        self._add_targets()
        _wait(lambda: self._source.count(queue, "consumers") >= count, 0.5)

    def count_arrived(self, target: str = ARRIVED) -> int:
        """See `FederatedPair`."""
        return self._target.count(target, "messages") + self._emptied[target]

    def empty(self, target: str = ARRIVED) -> None:
        """See `FederatedPair`."""
        self._emptied[target] += self._target.count(target, "messages")
        self._target.ask("DELETE", f"queues/%2f/{target}/contents", None)
        _wait(lambda: self._target.count(target, "messages") == 0, 0.1)


def _shovel_terms(count: int, queue: str, url: str, port: int) -> str:
    """The configuration of a RabbitMQ at a port with so many shovels, from the same queue of another one at a URL."""
    source = f'{{queue, <<"{queue}">>}}, {{prefetch_count, {CREDIT}}}'
    destination = f'{{publish_fields, [{{exchange, <<>>}}, {{routing_key, <<"{ARRIVED}">>}}]}}'
    ends = ", ".join(
        f'{{{end}, [{{protocol, amqp091}}, {{uris, ["{place}"]}}, {{declarations, []}}, {more}]}}'
        for end, place, more in (("source", url, source), ("destination", f"amqp://127.0.0.1:{port}", destination))
    )
    shovels = (f"{{'{queue}-{number}', [{ends}, {{reconnect_delay, 1}}]}}" for number in range(count))
    return f"[{{rabbitmq_shovel, [{{shovels, [{', '.join(shovels)}]}}]}}].\n"


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


def pairs(*, rabbitmq: bool = True) -> Sequence[Callable[[], contextlib.AbstractContextManager[FederatedPair]]]:
    """Starts a pair of each kind; ours first, and RabbitMQ last, if it is wanted."""
    found: list[Callable[[], contextlib.AbstractContextManager[FederatedPair]]] = []
    for kind in range(len(brokers(Path()))):
        found.append(partial(_managed, kind))
    rabbit = _rabbit_type() if rabbitmq else None
    if rabbit is not None:
        found.append(partial(_shovels, rabbit))
    return found


@contextlib.contextmanager
def _managed(kind: int) -> Iterator[FederatedPair]:
    with ExitStack() as stack:
        ends = []
        for _ in range(2):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            ends.append(stack.enter_context(brokers(folder, "--auth", "no", "--max-connections", "5000")[kind]()))
        yield ManagedPair(ends[0], ends[1], stack)


@contextlib.contextmanager
def _shovels(rabbitmq: Callable[..., contextlib.AbstractContextManager[str]]) -> Iterator[FederatedPair]:
    with ExitStack() as stack:
        target = stack.enter_context(ExitStack())

        def restart(terms: ErlangTerms) -> RabbitNode:
            target.close()
            return target.enter_context(_rabbit_node(rabbitmq, terms))

        source = stack.enter_context(_rabbit_node(rabbitmq))
        yield ShovelPair(source, target.enter_context(_rabbit_node(rabbitmq)), stack, restart)


@contextlib.contextmanager
def _rabbit_node(
    rabbitmq: Callable[..., contextlib.AbstractContextManager[str]], terms: ErlangTerms | None = None
) -> Iterator[RabbitNode]:
    """A running RabbitMQ whose management answers."""
    port, plugins = _free_port(), ("rabbitmq_shovel", "rabbitmq_shovel_management")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(rabbitmq(folder, port, plugins, "collect_statistics_interval = 500\n", terms))
        node = RabbitNode(url, port, psutil.Process(int((folder / "pid").read_text())))
        _wait(node.answers, 0.2)
        yield node


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
