"""The clients that the benchmarks of the messaging API compare, each with the same operations.

`QMF` is the synchronous API, `Aio` the asyncio one; `Blocking` and `Reactor` are proton's `BlockingConnection` and
`Container`; `Cpp` runs qpidd's programs qpid-send and qpid-receive, from the folder that QMF_BENCH_QPID_PROGRAMS names.
Every operation returns seconds, without those for connecting, and checks that all messages went where they should.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

import attrs
from figures import Figure, parser
from processes import own_broker, qpidd
from proton import Event, Message, Receiver
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import AtLeastOnce, Container, Copy, Transaction
from proton.utils import BlockingConnection, SyncRequestResponse

from qmf import messaging
from qmf._event_loop import run
from qmf.messaging import aio

#: Bytes of the two kinds of messages, and how many of them a measurement has: an embedded queue holds 10,000.
SIZES = {"100 B": (100, 8_000), "10 kB": (10_240, 2_000)}
#: Messages that are acknowledged together.
BATCH = 100
#: Seconds that any single step may take.
TIMEOUT = 60


class _Clock:
    """What the operations measure: time, or with `use_processor_time` that of this process and its children."""

    now: Callable[[], float] = staticmethod(time.perf_counter)


def use_processor_time() -> None:
    """Measure the client's processor time, which depends less on what else the machine does."""
    _Clock.now = staticmethod(_processor_time)


def _processor_time() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


@attrs.frozen
class QMF:
    """`qmf.messaging`."""

    url: str
    name = "qmf.messaging"

    def send(self, node: str, size: int, count: int, *, sync: bool) -> float:
        """Send messages; until all are accepted."""
        with messaging.Connection.establish(self.url) as connection:
            session = connection.session()
            sender = session.sender(node, capacity=1000)
            body = bytes(size)
            begin = _Clock.now()
            for _ in range(count):
                sender.send(messaging.Message(body), sync=sync)
            session.sync(TIMEOUT)
            return _Clock.now() - begin

    def receive(self, node: str, size: int, count: int, capacity: int, *, browse: bool = False) -> float:
        """Receive and acknowledge messages, or only read them."""
        with messaging.Connection.establish(self.url) as connection:
            session = connection.session()
            receiver = session.receiver(f"{node}; {{mode: browse}}" if browse else node, capacity=capacity)
            begin = _Clock.now()
            for number in range(1, count + 1):
                _check(receiver.fetch(TIMEOUT).content, size)
                if not browse and number % BATCH == 0:
                    session.acknowledge(sync=False)
            session.acknowledge()
            return _Clock.now() - begin

    def request(self, node: str, size: int, count: int) -> float:
        """Requests, each after the answer to the one before."""
        with messaging.Connection.establish(self.url) as connection:
            session = connection.session()
            sender, receiver = session.sender(node), session.receiver("#", capacity=10)
            body = bytes(size)
            begin = _Clock.now()
            for number in range(count):
                request = messaging.Message(body, reply_to=str(receiver.source), correlation_id=str(number))
                sender.send(request, sync=False)
                answer = receiver.fetch(TIMEOUT)
                if answer.correlation_id != str(number):
                    raise RuntimeError("a request got the answer of another one")
                session.acknowledge(answer, sync=False)
            return _Clock.now() - begin

    def transact(self, node: str, size: int, count: int) -> float:
        """Send messages in transactions."""
        with messaging.Connection.establish(self.url) as connection:
            session = connection.session(transactional=True)
            sender = session.sender(node)
            body = bytes(size)
            begin = _Clock.now()
            for number in range(1, count + 1):
                sender.send(messaging.Message(body), sync=False)
                if number % BATCH == 0:
                    session.commit(TIMEOUT)
            return _Clock.now() - begin


@attrs.frozen
class Aio:
    """`qmf.messaging.aio`, on uvloop where it is installed, as the background threads of `QMF`."""

    url: str
    name = "qmf.messaging.aio"

    def send(self, node: str, size: int, count: int, *, sync: bool) -> float:
        """Send messages; until all are accepted."""

        async def work(connection: aio.Connection) -> float:
            session = await connection.session()
            sender = await session.sender(node, capacity=1000)
            body = bytes(size)
            begin = _Clock.now()
            for _ in range(count):
                await sender.send(messaging.Message(body), sync=sync)
            await session.sync(TIMEOUT)
            return _Clock.now() - begin

        return self._run(work)

    def receive(self, node: str, size: int, count: int, capacity: int, *, browse: bool = False) -> float:
        """Receive and acknowledge messages, or only read them."""

        async def work(connection: aio.Connection) -> float:
            session = await connection.session()
            receiver = await session.receiver(f"{node}; {{mode: browse}}" if browse else node, capacity=capacity)
            begin = _Clock.now()
            for number in range(1, count + 1):
                _check((await receiver.fetch(TIMEOUT)).content, size)
                if not browse and number % BATCH == 0:
                    await session.acknowledge(sync=False)
            await session.acknowledge()
            return _Clock.now() - begin

        return self._run(work)

    def request(self, node: str, size: int, count: int) -> float:
        """Requests, each after the answer to the one before."""

        async def work(connection: aio.Connection) -> float:
            session = await connection.session()
            sender, receiver = await session.sender(node), await session.receiver("#", capacity=10)
            body = bytes(size)
            begin = _Clock.now()
            for number in range(count):
                request = messaging.Message(body, reply_to=str(receiver.source), correlation_id=str(number))
                await sender.send(request, sync=False)
                answer = await receiver.fetch(TIMEOUT)
                if answer.correlation_id != str(number):
                    raise RuntimeError("a request got the answer of another one")
                await session.acknowledge(answer, sync=False)
            return _Clock.now() - begin

        return self._run(work)

    def transact(self, node: str, size: int, count: int) -> float:
        """Send messages in transactions."""

        async def work(connection: aio.Connection) -> float:
            session = await connection.session(transactional=True)
            sender = await session.sender(node)
            body = bytes(size)
            begin = _Clock.now()
            for number in range(1, count + 1):
                await sender.send(messaging.Message(body), sync=False)
                if number % BATCH == 0:
                    await session.commit(TIMEOUT)
            return _Clock.now() - begin

        return self._run(work)

    def _run(self, work: Callable[[aio.Connection], Awaitable[float]]) -> float:
        async def connected() -> float:
            async with aio.Connection(self.url) as connection:
                return await work(connection)

        return run(connected())


@attrs.frozen
class Blocking:
    """proton's `BlockingConnection`. It sends synchronously and has no transactions."""

    url: str
    name = "BlockingConnection"

    def send(self, node: str, size: int, count: int) -> float:
        """Send messages, each after the acceptance of the one before."""
        connection = BlockingConnection(self.url, timeout=TIMEOUT)
        sender = connection.create_sender(node)
        begin = _Clock.now()
        for _ in range(count):
            sender.send(_message(size))
        seconds = _Clock.now() - begin
        connection.close()
        return seconds

    def receive(self, node: str, size: int, count: int, capacity: int, *, browse: bool = False) -> float:
        """Receive and accept messages, or only read them."""
        connection = BlockingConnection(self.url, timeout=TIMEOUT)
        receiver = connection.create_receiver(node, credit=capacity, options=Copy() if browse else None)
        begin = _Clock.now()
        for _ in range(count):
            _check(receiver.receive(TIMEOUT).body, size)
            receiver.accept()
        seconds = _Clock.now() - begin
        connection.close()
        return seconds

    def request(self, node: str, size: int, count: int) -> float:
        """Requests, each after the answer to the one before."""
        connection = BlockingConnection(self.url, timeout=TIMEOUT)
        caller = SyncRequestResponse(connection, node)
        begin = _Clock.now()
        for _ in range(count):
            _check(caller.call(_message(size)).body, size)
        seconds = _Clock.now() - begin
        connection.close()
        return seconds


class _Handler(MessagingHandler, TransactionHandler):
    """One measurement with proton's `Container`."""

    def __init__(self, url: str, node: str, size: int, count: int, prefetch: int = 0) -> None:
        super().__init__(prefetch=prefetch)
        self.prefetch = prefetch
        self.url, self.node, self.size, self.count = url, node, size, count
        self.done = 0
        self.seconds = 0.0
        self._begin = 0.0

    def on_start(self, event: Event) -> None:
        """See proton."""
        self.connection = event.container.connect(self.url)
        self.open(event.container)

    def open(self, container: Container) -> None:
        """Open the links."""

    def begin(self) -> None:
        """The first message moves."""
        self._begin = self._begin or _Clock.now()

    def step(self) -> bool:
        """One message is done; returns False for the last."""
        self.done += 1
        if self.done == self.count:
            self.seconds = _Clock.now() - self._begin
            self.connection.close()
        return self.done < self.count


class _Send(_Handler):
    window = 1000

    def open(self, container: Container) -> None:
        self.sent = 0
        self.sender = container.create_sender(self.connection, self.node, options=AtLeastOnce())

    def on_sendable(self, event: Event) -> None:  # noqa: ARG002
        self.begin()
        self.fill()

    def on_accepted(self, event: Event) -> None:  # noqa: ARG002
        if self.step():
            self.fill()

    def fill(self) -> None:
        while self.sender.credit and self.sent < self.count and self.sent - self.done < self.window:
            self.sender.send(_message(self.size))
            self.sent += 1


class _SendOne(_Send):
    window = 1


class _Receive(_Handler):
    receiver: Receiver
    options: Copy | None = None

    def open(self, container: Container) -> None:
        self.receiver = container.create_receiver(self.connection, self.node, options=self.options)
        if not self.prefetch:
            self.receiver.flow(1)

    def on_link_opened(self, event: Event) -> None:  # noqa: ARG002
        self.begin()

    def on_message(self, event: Event) -> None:
        _check(event.message.body, self.size)
        if self.done < self.count and self.step() and not self.prefetch:
            self.receiver.flow(1)


class _Browse(_Receive):
    options = Copy()


class _Request(_Handler):
    def open(self, container: Container) -> None:
        self.sender = container.create_sender(self.connection, self.node)
        self.receiver = container.create_receiver(self.connection, None, dynamic=True)

    def on_link_opened(self, event: Event) -> None:
        if event.receiver == self.receiver:
            self.begin()
            self.ask()

    def on_message(self, event: Event) -> None:
        if event.message.correlation_id != str(self.done):
            raise RuntimeError("a request got the answer of another one")
        if self.step():
            self.ask()

    def ask(self) -> None:
        request = _message(self.size)
        request.reply_to, request.correlation_id = str(self.receiver.remote_source.address), str(self.done)
        self.sender.send(request)


class _Transact(_Handler):
    transaction: Transaction | None = None

    def open(self, container: Container) -> None:
        self.container = container
        self.sent = 0
        self.sender = container.create_sender(self.connection, self.node)
        container.declare_transaction(self.connection, handler=self)

    def on_transaction_declared(self, event: Event) -> None:
        self.transaction = event.transaction
        self.fill()

    def on_sendable(self, event: Event) -> None:  # noqa: ARG002
        self.fill()

    def fill(self) -> None:
        if self.transaction is None or not self.sender.credit:
            return
        self.begin()
        while self.transaction is not None and self.sender.credit:
            self.transaction.send(self.sender, _message(self.size))
            self.sent += 1
            if self.sent % BATCH == 0:
                transaction, self.transaction = self.transaction, None
                transaction.commit()

    def on_transaction_committed(self, event: Event) -> None:  # noqa: ARG002
        self.done += BATCH - 1
        if self.step():
            self.container.declare_transaction(self.connection, handler=self)


@attrs.frozen
class Reactor:
    """proton's `Container`."""

    url: str
    name = "Container"

    def send(self, node: str, size: int, count: int, *, sync: bool) -> float:
        """Send messages; until all are accepted."""
        return _run((_SendOne if sync else _Send)(self.url, node, size, count))

    def receive(self, node: str, size: int, count: int, capacity: int, *, browse: bool = False) -> float:
        """Receive and accept messages, or only read them."""
        # proton itself never renews a single credit, so that is given by the handler.
        return _run((_Browse if browse else _Receive)(self.url, node, size, count, capacity if capacity > 1 else 0))

    def request(self, node: str, size: int, count: int) -> float:
        """Requests, each after the answer to the one before."""
        return _run(_Request(self.url, node, size, count, 10))

    def transact(self, node: str, size: int, count: int) -> float:
        """Send messages in transactions."""
        return _run(_Transact(self.url, node, size, count))


@attrs.frozen
class Cpp:
    """The programs of qpidd's C++ client: with their own measurement of the rate."""

    url: str
    name = "C++ programs"

    def send(self, node: str, size: int, count: int, *, sync: bool, capacity: int = 1000) -> float:
        """Send messages; until all are accepted."""
        most = "1" if sync else str(capacity)
        return self._run("qpid-send", node, count, "--content-size", str(size), "--capacity", most)

    def receive(self, node: str, size: int, count: int, capacity: int, *, browse: bool = False) -> float:
        """Receive and acknowledge messages, or only read them."""
        del size
        address = f"{node}; {{mode: browse}}" if browse else node
        more = ("--capacity", str(capacity), "--print-content", "no", "--timeout", str(TIMEOUT))
        return self._run("qpid-receive", address, count, *more)

    def transact(self, node: str, size: int, count: int) -> float:
        """Send messages in transactions."""
        return self._run("qpid-send", node, count, "--content-size", str(size), "--tx", str(BATCH))

    def _run(self, program: str, address: str, count: int, *options: str) -> float:
        common = ("-b", self.url.removeprefix("amqp://"), "-a", address, "-m", str(count), "--report-total")
        command = [str(Path(os.environ["QMF_BENCH_QPID_PROGRAMS"]) / program), *common, *options]
        command += ["--connection-options", "{protocol: amqp1.0}"]
        begin = _Clock.now()
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        if _Clock.now is _processor_time:
            return _Clock.now() - begin
        header, values = (line.split() for line in done.stdout.splitlines()[-2:])
        return count / float(values[header.index("tp(m/s)")])


def _run(handler: _Handler) -> float:
    Container(handler).run()
    if handler.done != handler.count:
        raise RuntimeError(f"{handler.done} messages of {handler.count}")
    return handler.seconds


def _message(size: int) -> Message:
    return Message(body=bytes(size), inferred=True)


def _check(body: object, size: int) -> None:
    if not isinstance(body, bytes | memoryview) or len(body) != size:
        raise RuntimeError(f"a message of {size} bytes arrived as {body!r:.50}")


@contextlib.contextmanager
def brokers() -> Iterator[dict[str, str]]:
    """URLs by name: the embedded broker in a process of its own and, where it is named, a qpidd."""
    with own_broker() as (url, _):
        named = qpidd()
        yield {"qmf-broker": url, **({"qpidd": named} if named else {})}


@contextlib.contextmanager
def queue(url: str, size: int = 0, count: int = 0) -> Iterator[str]:
    """A new queue, with so many messages."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    with messaging.Connection.establish(url) as connection:
        session = connection.session()
        sender = session.sender(f"{name}; {{create: always, delete: always, node: {{type: queue}}}}", capacity=1000)
        for _ in range(count):
            sender.send(messaging.Message(bytes(size)), sync=False)
        session.sync(TIMEOUT)
        yield name


def read_options(description: str) -> argparse.Namespace:
    """The options of these benchmarks: `rounds` and `json`."""
    options = parser(description)
    options.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds per figure (default: %(default)s)")
    options.add_argument("--processor", action="store_true", help="per second of the client's processor time")
    arguments = options.parse_args()
    if arguments.processor:
        use_processor_time()
    return arguments


def has_programs(broker: str) -> bool:
    """Whether the C++ programs can be measured with this broker."""
    return broker == "qpidd" and bool(os.environ.get("QMF_BENCH_QPID_PROGRAMS"))


def rates(
    title: str, count: int, rounds: int, runs: Mapping[str, Callable[[], float]], *, round_trips: bool = False
) -> list[Figure]:
    """Run each client in turns, and give our rates beside the others'.

    Args:
        title: of the figures.
        count: messages of a run.
        rounds: runs that count, after one that does not.
        runs: what returns seconds, by the name of the client; ours first.
        round_trips: each message waits for an answer before the next one.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, measure in runs.items():
            taken = measure()
            if number:
                seconds[name].append(taken)
    rate = {name: count / statistics.median(values) for name, values in seconds.items()}
    unit = "/s of processor time" if _Clock.now is _processor_time else "/s"
    return [
        Figure(f"{title}: {ours}", rate[ours], unit, peer, rate[peer], at_least=_wanted(ours, peer, round_trips))
        for ours in (QMF.name, Aio.name)
        for peer in (Blocking.name, Reactor.name, Cpp.name)
        if peer in rate
    ]


def _wanted(ours: str, peer: str, round_trips: bool) -> float | None:
    """The part of a peer's rate that ours is to reach; None where it is shown only."""
    if peer != Cpp.name:
        return None
    if not round_trips:
        return 0.8
    return 0.75 if ours == QMF.name else 0.9
