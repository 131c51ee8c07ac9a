"""Messages go from one broker to another by a route: ours, a bridge of qpidd (AMQP 0-10), a shovel of RabbitMQ.

Of each kind of brokers, two are processes of their own. For each kind, in turns:

- A route takes a backlog of messages from a queue: its rate, by the clock and by the processor time of both brokers
  together, and what the backlog adds to the memory of the destination. All kinds acknowledge what they have taken, have
  the same number of messages on the way at most, and get and hold the same messages.
- The same with durable queues and messages; ours besides exactly once, beside itself at least once.
- The latency of a hop: a message sent to the source until it is received at the destination, less the same at one
  broker.

QMF_BENCH_QPIDD_COMMAND starts the two qpidd, with their store (`broker_peers.py`); RabbitMQ is that of
`scripts/brokers.py`, where it was fetched, and measured once. `federation_links.py` is about idle links, and those that
are cut.

    python bench/federation.py [--messages N] [--durable N] [--hops N] [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import defaultdict

from broker_peers import OURS, QPIDD
from federation_peers import ARRIVED, KEPT, RABBITMQ, TIMEOUT, FederatedPair, pairs
from federation_table import Row, print_rows
from figures import Figure, note, parser, report

from qmf.messaging import Message, Session

#: The rate of a route by a bridge of qpidd's that is wanted, and that of exactly-once by the one of at-least-once.
WANTED, WANTED_EXACTLY = 0.8, 0.8
#: Milliseconds that a hop may add.
MAX_HOP = 1.0

_ROUTE, _DURABLE, _EXACTLY = "route", "durable route", "durable route, exactly once"
#: The queue of each at the source, which is the name of its route.
_QUEUES = {_ROUTE: "route", _DURABLE: "durable", _EXACTLY: "exactly"}
_CLOCK, _PROCESSOR = "by the clock", "by processor time of both brokers"
_HOP, _MEMORY = "a hop", "memory of a message that has arrived"
_RATE = "messages/s"

_ROWS = (
    Row("messages in a second of processor time of both brokers (of {messages:,})", [f"{_ROUTE}, {_PROCESSOR}"]),
    Row("messages in a second by the clock", [f"{_ROUTE}, {_CLOCK}"]),
    Row(
        "durable messages in a second of processor time of both brokers, at least once (of {durable:,})",
        [f"{_DURABLE}, {_PROCESSOR}"],
    ),
    Row("durable messages in a second by the clock", [f"{_DURABLE}, {_CLOCK}"]),
    Row("the same, exactly once: processor time; clock", [f"{_EXACTLY}, {_PROCESSOR}", f"{_EXACTLY}, {_CLOCK}"]),
    Row("a hop, beyond the way over one broker", [_HOP], " ms", 2),
    Row("memory of a message that has arrived", [_MEMORY], " B", 0),
)

#: What was measured of one kind of brokers, in each round.
Found = dict[str, list[float]]


def measure(pair: FederatedPair, arguments: argparse.Namespace, found: Found) -> None:
    """What routes between two brokers of a kind do, once."""
    memory = pair.target.memory()
    _measure_rate(pair, _ROUTE, arguments.messages, found)
    found[_MEMORY].append((pair.target.memory() - memory) / arguments.messages)
    pair.empty()
    _measure_rate(pair, _DURABLE, arguments.durable, found)
    if pair.name == OURS:
        _measure_rate(pair, _EXACTLY, arguments.durable, found)
    source, target = pair.sessions
    direct = _latency(target, target, arguments.hops, pair.address(ARRIVED), pair.address(ARRIVED))
    routed = _latency(source, target, arguments.hops, pair.address(_QUEUES[_ROUTE]), pair.address(ARRIVED))
    found[_HOP].append((routed - direct) * 1e3)


def _measure_rate(pair: FederatedPair, kind: str, count: int, found: Found) -> None:
    """The rate of a route, which stays if it is the one whose hops are measured."""
    durable, name = kind != _ROUTE, _QUEUES[kind]
    target = KEPT if durable else ARRIVED
    pair.add_queue(name, durable=durable)
    pair.fill(name, count, durable=durable)
    arrived = pair.count_arrived(target)
    used, began = pair.cpu(), time.perf_counter()
    pair.add_route(name, name, pair.source.url, target=target, exactly_once=kind == _EXACTLY)
    pair.wait_for_messages(arrived + count, target)
    wall, spent = time.perf_counter() - began, pair.cpu() - used
    found[f"{kind}, {_CLOCK}"].append(count / wall)
    found[f"{kind}, {_PROCESSOR}"].append(count / spent)
    if durable:
        pair.remove_route(name)


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
    options.add_argument("--durable", type=int, default=20_000, help="in the backlog of durable ones")
    options.add_argument("--hops", type=int, default=300, help="messages whose latency is measured")
    options.add_argument("--rounds", type=int, default=3, help="in turns; RabbitMQ has one")
    arguments = options.parse_args()
    found: dict[str, Found] = {}
    for number in range(arguments.rounds):
        for start in pairs(rabbitmq=number == 0):
            with start() as pair:
                measure(pair, arguments, found.setdefault(pair.name, defaultdict(list)))
                note(f"{pair.name}: { {name: round(values[-1], 3) for name, values in found[pair.name].items()} }")
    values = {kind: {name: statistics.median(each) for name, each in of.items()} for kind, of in found.items()}
    report(_figures(values), arguments.json)
    print_rows(_ROWS, values, vars(arguments))


def _figures(values: dict[str, dict[str, float]]) -> list[Figure]:
    ours = values[OURS]
    figures = []
    for kind in (_ROUTE, _DURABLE):
        for how in (_CLOCK, _PROCESSOR):
            figures += _beside(f"{kind}, {how}", _RATE, values, at_least=WANTED)
    for how in (_CLOCK, _PROCESSOR):
        peer = ours[f"{_DURABLE}, {how}"]
        name = f"{_EXACTLY}, {how}"
        figures.append(Figure(name, ours[name], _RATE, "at least once", peer, at_least=WANTED_EXACTLY))
    figures += _beside(_HOP, "ms", values, limit=MAX_HOP)
    return figures + _beside(_MEMORY, "bytes", values, at_most=1.0)


def _beside(
    name: str,
    unit: str,
    values: dict[str, dict[str, float]],
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    limit: float | None = None,
) -> list[Figure]:
    """A figure beside that of each peer; the goals are about qpidd, and about ours alone."""
    own = values[OURS][name]
    peers = [kind for kind in (QPIDD, RABBITMQ) if kind in values]
    if not peers:
        return [Figure(name, own, unit, limit=limit)]
    return [
        Figure(name, own, unit, kind, values[kind][name], at_least=at_least, at_most=at_most, limit=limit)
        if kind == QPIDD
        else Figure(name, own, unit, kind, values[kind][name])
        for kind in peers
    ]


if __name__ == "__main__":
    main()
