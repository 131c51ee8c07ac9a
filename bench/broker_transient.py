"""Transient messages a second through a queue of the embedded broker, and to 100 subscribers, beside qpidd.

The clients are the same for both brokers: see broker_load.py. With 100 subscribers, deliveries are counted.

    python bench/broker_transient.py [--rounds N] [--processor] [--json FILE] [--part N]

Brokers and programs that the environment names join: see broker_peers.py.
"""

from __future__ import annotations

import uuid

import attrs
from broker_load import clients, flow
from broker_peers import MeasuredBroker, beside, brokers, new_queue, read_options
from figures import Figure, note, report

#: Wanted of qpidd's rate.
WANTED = 0.5
#: A queue of either broker takes all messages, should a receiver be slow.
LIMITS = "qpid.max_size: 2000000000, qpid.flow_stop_size: 0, qpid.flow_stop_count: 0"


@attrs.frozen
class Case:
    """Something to measure.

    Attributes:
        title: of the figure.
        size: bytes of a message.
        messages: that are sent together.
        clients: as many producers as consumers.
        subscribers: of an exchange, in place of consumers of a queue, with one producer.
    """

    title: str
    size: int
    messages: int
    clients: int = 1
    subscribers: int = 0


CASES = (
    Case("1 producer and consumer, 100 B", 100, 100_000),
    Case("1 producer and consumer, 10 kB", 10_240, 20_000),
    Case("10 producers and consumers, 100 B", 100, 100_000, clients=10),
    Case("10 producers and consumers, 10 kB", 10_240, 20_000, clients=10),
    Case("100 subscribers, 100 B", 100, 1_000, subscribers=100),
    Case("100 subscribers, 10 kB", 10_240, 300, subscribers=100),
)


def measure(broker: MeasuredBroker, case: Case, part: int, *, processor: bool) -> float:
    """Messages that are delivered in a second; by the clock, or of the broker's processor time."""
    messages = max(case.messages // part, 10)
    if case.subscribers:
        deliveries = messages * case.subscribers
        clock, used = flow(
            broker,
            "amq.fanout",
            "amq.fanout",
            senders=1,
            receivers=case.subscribers,
            sent=messages,
            received=messages,
            size=case.size,
        )
    else:
        deliveries = messages
        each = messages // case.clients
        with new_queue(broker.url, f"bench-{uuid.uuid4().hex[:8]}", arguments=LIMITS) as node:
            clock, used = flow(
                broker,
                node,
                node,
                senders=case.clients,
                receivers=case.clients,
                sent=each,
                received=each,
                size=case.size,
            )
    return deliveries / (used if processor else clock)


def main() -> None:
    """Measure and report."""
    options = read_options("Transient messages through the embedded broker.")
    options.add_argument("--part", type=int, default=1, metavar="N", help="send only this part of the messages: 1/N")
    arguments = options.parse_args()
    note(f"clients: {clients()}")
    rates: dict[Case, dict[str, list[float]]] = {case: {} for case in CASES}
    for start in brokers():
        with start() as broker:
            for case in CASES:
                found = rates[case][broker.name] = []
                for _ in range(arguments.rounds):
                    found.append(measure(broker, case, arguments.part, processor=arguments.processor))
                note(f"{broker.name}, {case.title}: {', '.join(f'{rate:,.0f}' for rate in found)}")
    unit = "/s of processor time" if arguments.processor else "/s"
    figures: list[Figure] = [beside(case.title, unit, rates[case], at_least=WANTED) for case in CASES]
    report(figures, arguments.json)


if __name__ == "__main__":
    main()
