"""What a message to a topic exchange of the embedded broker costs as bindings grow to 100,000, beside qpidd.

Each binding has a key of its own, `stock.N.*`; each message matches one. The bindings are made by the management of
either broker, as an operator would make them. The queue is a ring, so that nobody has to receive.

    python bench/broker_bindings.py [--bindings N...] [--messages N] [--rounds N] [--processor] [--json FILE]

Brokers that the environment names join: see broker_peers.py.
"""

from __future__ import annotations

import time
import uuid

from broker_peers import OURS, MeasuredBroker, beside, brokers, new_queue, read_options
from figures import Figure, note, report

from qmf import messaging
from qmf.client import BrokerAgent

EXCHANGE = "amq.topic"
#: How often the cost may grow from the fewest bindings to the most, of which there are 10,000 times as many.
GROWTH = 4.0
#: Requests to the management, and messages, on the way.
WINDOW = 500
TIMEOUT = 120
#: Number that spreads the keys of messages over the bindings.
PRIME = 7_919


def bind(broker: MeasuredBroker, queue: str, first: int, last: int) -> float:
    """Make bindings from a number up to another; returns the seconds for one."""
    with messaging.Connection.establish(broker.url) as connection:
        session = connection.session()
        answers = session.receiver(f"qmf.default.topic/direct.{uuid.uuid4()}", capacity=WINDOW)
        requests = session.sender("qmf.default.direct/broker", capacity=WINDOW)
        properties = {"method": "request", "qmf.opcode": "_method_request", "x-amqp-0-10.app-id": "qmf2"}
        begin = time.perf_counter()
        for number in range(first, last + WINDOW):
            if number < last:
                name = f"{EXCHANGE}/{queue}/stock.{number}.*"
                content = {
                    "_object_id": {"_object_name": "org.apache.qpid.broker:broker:amqp-broker"},
                    "_method_name": "create",
                    "_arguments": {"type": "binding", "name": name, "properties": {}, "strict": True},
                }
                message = messaging.Message(
                    content, reply_to=str(answers.source), correlation_id=str(number), properties=properties
                )
                requests.send(message, sync=False, timeout=TIMEOUT)
            if number - first >= WINDOW and number - WINDOW < last:
                answer = answers.fetch(TIMEOUT)
                if answer.properties.get("qmf.opcode") != "_method_response":
                    raise RuntimeError(f"{broker.name} made no binding: {answer.content!r}")
                session.acknowledge(sync=False)
        return (time.perf_counter() - begin) / (last - first)


def send(broker: MeasuredBroker, bindings: int, count: int, *, processor: bool) -> float:
    """Microseconds for a message."""
    with messaging.Connection.establish(broker.url) as connection:
        session = connection.session()
        sender = session.sender(EXCHANGE, capacity=WINDOW)
        messages = [
            messaging.Message(bytes(100), subject=f"stock.{number * PRIME % bindings}.price") for number in range(count)
        ]
        clock, used = time.perf_counter(), broker.cpu()
        for message in messages:
            sender.send(message, sync=False, timeout=TIMEOUT)
        session.sync(TIMEOUT)
        clock, used = time.perf_counter() - clock, broker.cpu() - used
    return (used if processor else clock) / count * 1e6


def routed(broker: MeasuredBroker, queue: str) -> int:
    """Messages that a queue has got."""
    with messaging.Connection.establish(broker.url) as connection:
        found = BrokerAgent(connection, TIMEOUT).getQueue(queue)
        assert found is not None
        return int(found.getAttributes()["msgTotalEnqueues"])


def main() -> None:
    """Measure and report."""
    options = read_options("Bindings of a topic exchange of the embedded broker.")
    options.add_argument("--bindings", type=int, nargs="+", default=[10, 1_000, 100_000], metavar="N")
    options.add_argument("--messages", type=int, default=20_000, metavar="N", help="of a round (default: %(default)s)")
    arguments = options.parse_args()
    costs: dict[int, dict[str, list[float]]] = {count: {} for count in arguments.bindings}
    for start in brokers():
        ring = "qpid.policy_type: ring, qpid.max_count: 1000"
        with start() as broker, new_queue(broker.url, f"bench-{uuid.uuid4().hex[:8]}", arguments=ring) as queue:
            made = 0
            for count, found in costs.items():
                each = bind(broker, queue, made, count)
                made = count
                found[broker.name] = [
                    send(broker, count, arguments.messages, processor=arguments.processor)
                    for _ in range(arguments.rounds)
                ]
                values = ", ".join(f"{value:.1f}" for value in found[broker.name])
                note(f"{broker.name}, {count:,} bindings (each made in {each * 1e6:.0f} us): {values} us a message")
            sent = len(costs) * arguments.rounds * arguments.messages
            if (count := routed(broker, queue)) != sent:
                raise RuntimeError(f"{broker.name} has routed {count:,} messages of {sent:,}")
    unit = "us of the processor" if arguments.processor else "us"
    figures: list[Figure] = [beside(f"message, {count:,} bindings", unit, found) for count, found in costs.items()]
    few, many = figures[0], figures[-1]
    figures.append(
        Figure(
            f"{OURS}: {arguments.bindings[-1]:,} bindings",
            many.value,
            unit,
            f"{arguments.bindings[0]:,} bindings",
            few.value,
            at_most=GROWTH,
        )
    )
    report(figures, arguments.json)


if __name__ == "__main__":
    main()
