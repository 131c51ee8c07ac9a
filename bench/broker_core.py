"""What the broker's core costs for a transient message: read, routed, put on a queue and delivered, without AMQP.

Beside the least that Python can do for a queue, a `deque` with a dictionary of what is unsettled, in the same run. And
how the cost of routing grows with the number of bindings to a topic exchange.

    python bench/broker_core.py [--messages N] [--json FILE]
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections import deque
from collections.abc import Callable, Sequence

import attrs
from figures import Figure, parser, report

from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import Message as BrokerMessage
from qmf.broker.nodes.message import read_message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import QueueSettings
from qmf.codec import Message, Section, encode_message

ROUNDS = 5
PEER = "deque and dictionary"
#: Bindings to one topic exchange, each with a key of its own.
BINDINGS = (10, 1_000, 100_000)


@attrs.define(eq=False)
class Receiver:
    """A consumer that accepts what it gets at once, or, if it is presettled, has nothing to accept."""

    queue: Queue
    presettled: bool
    selector: Callable[[BrokerMessage], bool] | None = None
    count: int = 0

    def ready(self) -> bool:
        return True

    def deliver(self, entry: Entry) -> None:
        self.count += 1
        if not self.presettled:
            self.queue.delivery.accept(entry)

    def room(self) -> int:
        return 1 << 30

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        assert self.presettled, "entries that are delivered together are acquired later"
        self.count += len(entries)
        return len(entries)


def encoded(subject: str, size: int = 100) -> bytes:
    """A message as clients send it."""
    return encode_message(Message(to="amq.topic", subject=subject, section=Section.DATA, body=b"x" * size))


def seconds(run: Callable[[], None]) -> float:
    """Processor time of a run, the median of several."""
    rounds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        run()
        rounds.append(time.process_time() - start)
    return statistics.median(rounds)


def least(count: int) -> float:
    """A message goes through a `deque`, and is unsettled for a moment."""
    data, waiting, unsettled = encoded("k"), deque[bytes](), dict[int, bytes]()
    numbers = itertools.count()

    def run() -> None:
        for _ in range(count):
            waiting.append(data)
            tag = next(numbers)
            unsettled[tag] = waiting.popleft()
            del unsettled[tag]

    return seconds(run)


def through_a_queue(count: int, *, presettled: bool, settings: QueueSettings | None = None) -> float:
    """Messages to a topic exchange with a binding, whose queue has a receiver."""
    registry = NodeRegistry()
    exchange, queue = registry.find("amq.topic"), registry.declare_queue("q", settings)
    assert isinstance(exchange, Exchange)
    registry.bind(exchange, queue, BindingSpec("k"))
    receiver = Receiver(queue, presettled)
    queue.delivery.add_consumer(receiver)
    data = encoded("k")

    def run() -> None:
        for _ in range(count):
            registry.publish(exchange, read_message(data, 0.0))

    taken = seconds(run)
    assert receiver.count == ROUNDS * count
    return taken


def stored(count: int, settings: QueueSettings | None = None) -> float:
    """Messages that wait in a queue before they are taken."""
    registry = NodeRegistry()
    queue = registry.declare_queue("q", settings)
    receiver = Receiver(queue, presettled=True)
    data = encoded("k")

    def run() -> None:
        for _ in range(count):
            registry.publish(queue, read_message(data, 0.0))
        queue.delivery.add_consumer(receiver)
        queue.delivery.dispatch()
        queue.delivery.remove_consumer(receiver)

    taken = seconds(run)
    assert (receiver.count, queue.contents.depth.count) == (ROUNDS * count, 0)
    return taken


def routed(bindings: int, count: int) -> float:
    """Messages with keys that are all different, to an exchange with many bindings; each matches two of them."""
    registry = NodeRegistry()
    exchange, queue = registry.find("amq.topic"), registry.declare_queue("q")
    assert isinstance(exchange, Exchange)
    for number in range(bindings):
        registry.bind(exchange, queue, BindingSpec(f"stock.{number}.*"))
    registry.bind(exchange, queue, BindingSpec("#.price"))
    messages = [read_message(encoded(f"stock.{number % bindings}.price"), 0.0) for number in range(count)]

    def run() -> None:
        for message in messages:
            exchange.route(message)

    assert len(exchange.route(messages[0])) == 1
    return seconds(run)


def main() -> None:
    """Measure and report."""
    options = parser("The broker's core for transient messages.")
    options.add_argument("--messages", type=int, default=50_000, metavar="N", help="per round (default: %(default)s)")
    arguments = options.parse_args()
    count = arguments.messages
    floor = least(count) / count * 1e6
    cases = {
        "delivered at once, presettled": through_a_queue(count, presettled=True),
        "delivered at once, then accepted": through_a_queue(count, presettled=False),
        "stored first": stored(count),
        "stored first, 10 priorities": stored(count, QueueSettings(priorities=10)),
    }
    figures = [Figure(name, taken / count * 1e6, "µs", PEER, floor) for name, taken in cases.items()]
    few = None
    for bindings in BINDINGS:
        cost = routed(bindings, 2_000) / 2_000 * 1e6
        few = few or cost
        # Ten thousand times as many bindings may not cost more than twenty times as much.
        figures.append(Figure(f"routed, {bindings:,} bindings", cost, "µs", f"{BINDINGS[0]} bindings", few, at_most=20))
    report(figures, arguments.json)


if __name__ == "__main__":
    main()
