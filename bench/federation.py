"""Messages go from one broker to another by a route: ours, a bridge of qpidd (AMQP 0-10), a shovel of RabbitMQ.

Of each kind of brokers, two are processes of their own, and the route takes a backlog of messages from a queue. The
program reports the rate, by the clock and by the processor time of both brokers together, the latency of a hop (a
message sent to the source until it is received at the destination, less the same at one broker), and what the backlog
adds to the memory of the destination. QMF_BENCH_QPIDD_COMMAND starts the two qpidd (`broker_peers.py`); RabbitMQ is
that of `scripts/brokers.py`, where it was fetched. `federation_links.py` is about idle links, and those that are cut.

    python bench/federation.py [--messages N] [--hops N] [--json FILE]
"""

from __future__ import annotations

import statistics
import time

from broker_peers import OURS, QPIDD
from federation_peers import ARRIVED, RABBITMQ, TIMEOUT, FederatedPair, pairs
from figures import Figure, note, parser, report

from qmf.messaging import Message, Session

#: The rate of a route by a bridge of qpidd's that is wanted.
WANTED = 0.8
#: What is measured, its unit, and whether qpidd's is a goal.
UNITS = {
    "route, by the clock": ("messages/s", True),
    "route, both brokers' processor time": ("messages/s", True),
    "a hop": ("ms", False),
    "memory of a message that has arrived": ("bytes", False),
}


def measure(pair: FederatedPair, count: int, hops: int) -> dict[str, float]:
    """What a route between two brokers of a kind does."""
    pair.add_queue("q")
    pair.fill("q", count)
    memory, used, began = pair.target.memory(), pair.cpu(), time.perf_counter()
    pair.add_route("bench", "q", pair.source.url)
    pair.wait_for_messages(count)
    wall, spent = time.perf_counter() - began, pair.cpu() - used
    grown = pair.target.memory() - memory
    pair.empty()
    source, target = pair.sessions
    direct = _latency(target, target, hops, pair.address(ARRIVED), pair.address(ARRIVED))
    routed = _latency(source, target, hops, pair.address("q"), pair.address(ARRIVED))
    return dict(zip(UNITS, (count / wall, count / spent, (routed - direct) * 1e3, grown / count), strict=True))


def _latency(start: Session, end: Session, hops: int, address: str, received: str) -> float:
    """Seconds that a message takes from one session to the other, the median."""
    sender, receiver = start.sender(address), end.receiver(received, capacity=10)
    times = []
    for _ in range(hops):
        began = time.perf_counter()
        sender.send(Message(b"x"), sync=False)
        receiver.fetch(TIMEOUT)
        times.append(time.perf_counter() - began)
        end.acknowledge(sync=False)
    sender.close()
    receiver.close()
    return statistics.median(times)


def main() -> None:
    """Measure each kind of brokers."""
    options = parser(__doc__)
    options.add_argument("--messages", type=int, default=100_000, help="in the backlog")
    options.add_argument("--hops", type=int, default=300, help="messages whose latency is measured")
    arguments = options.parse_args()
    found: dict[str, dict[str, float]] = {}
    for start in pairs():
        with start() as pair:
            found[pair.name] = measure(pair, arguments.messages, arguments.hops)
            note(f"{pair.name}: {found[pair.name]}")
    report(_figures(found), arguments.json)


def _figures(found: dict[str, dict[str, float]]) -> list[Figure]:
    ours = found[OURS]
    peers = [kind for kind in (QPIDD, RABBITMQ) if kind in found]
    figures = []
    for name, (unit, is_goal) in UNITS.items():
        for kind in peers or [""]:
            wanted = WANTED if is_goal and kind == QPIDD else None
            peer = found[kind][name] if kind else None
            figures.append(Figure(name, ours[name], unit, kind, peer, at_least=wanted))
    return figures


if __name__ == "__main__":
    main()
