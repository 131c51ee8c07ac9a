"""Messages go from one broker to another one by a route, and by a bridge of qpidd (AMQP 0-10) beside it.

Both brokers are processes of their own, and their route takes a backlog of messages from a queue, as after a cut. Of
each kind of brokers the rate is reported by the clock and by the processor time of both brokers together, the latency
of a hop (a message sent to the source until it is received at the destination, less the same at one broker), and what
the backlog adds to the memory of the destination. QMF_BENCH_QPIDD_COMMAND starts the two qpidd (`broker_peers.py`).

    python bench/federation.py [--messages N] [--size N] [--hops N] [--json FILE]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from urllib.parse import urlsplit

from broker_peers import OURS, QPIDD, MeasuredBroker, brokers
from figures import Figure, note, parser, report

from qmf.client import BrokerAgent
from qmf.client.objects import Queue
from qmf.messaging import Connection, Message, Session

#: The rate of a route by a bridge of qpidd's that is wanted.
WANTED = 0.8
#: Seconds for everything that is waited for.
TIMEOUT = 600.0
#: Messages that are sent at once.
BATCH = 1_000


def measure(pair: Sequence[MeasuredBroker], count: int, size: int, hops: int) -> dict[str, float]:
    """What a route between two brokers of a kind does; the first one is its source."""
    source, target = pair
    with ExitStack() as stack:
        ends = [stack.enter_context(Connection.establish(broker.url, timeout=TIMEOUT)) for broker in pair]
        agents = [stack.enter_context(BrokerAgent.connect(broker.url, timeout=TIMEOUT)) for broker in pair]
        for agent in agents:
            agent.addQueue("q", {"qpid.max_count": 0, "qpid.max_size": 0})
        agents[1].bind("amq.fanout", "q", "")
        sessions = [end.session() for end in ends]
        _fill(sessions[0], count, size)
        memory, used, began = target.memory(), source.cpu() + target.cpu(), time.perf_counter()
        _route(agents[1], source)
        while _queue(agents[1]).msgTotalEnqueues < count:
            time.sleep(0.02)
        wall, spent = time.perf_counter() - began, source.cpu() + target.cpu() - used
        grown = target.memory() - memory
        for session in sessions:
            session.sync()
        _empty(agents)
        direct = _latency(sessions[1], sessions[1], hops, "amq.fanout")
        return {
            "rate": count / wall,
            "by processor": count / spent,
            "hop": (_latency(sessions[0], sessions[1], hops, "q") - direct) * 1e3,
            "memory": grown / count,
        }


def _route(agent: BrokerAgent, source: MeasuredBroker) -> None:
    """A queue route, with acknowledgement, as ours always have."""
    place = urlsplit(source.url)
    agent.create("link", "bench", {"host": place.hostname, "port": place.port})
    route = {"link": "bench", "src": "q", "dest": "amq.fanout", "srcIsQueue": True, "sync": 100, "credit": 500}
    agent.create("bridge", "bench.route", route)


def _fill(session: Session, count: int, size: int) -> None:
    sender = session.sender("q", capacity=BATCH)
    body = b"x" * size
    for _ in range(count):
        sender.send(Message(body), sync=False)
    session.sync()


def _empty(agents: Sequence[BrokerAgent]) -> None:
    for agent in agents:
        _queue(agent).purge(0)


def _latency(start: Session, end: Session, hops: int, address: str) -> float:
    """Seconds that a message takes from one session to the other, the median."""
    sender, receiver = start.sender(address), end.receiver("q", capacity=10)
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


def _queue(agent: BrokerAgent) -> Queue:
    found = agent.getQueue("q")
    if found is None:
        raise RuntimeError("the queue of the benchmark is gone")
    return found


def main() -> None:
    """Measure each kind of brokers."""
    options = parser(__doc__)
    options.add_argument("--messages", type=int, default=100_000, help="in the backlog")
    options.add_argument("--size", type=int, default=100, help="of a message, in bytes")
    options.add_argument("--hops", type=int, default=300, help="messages whose latency is measured")
    arguments = options.parse_args()
    found: dict[str, dict[str, float]] = {}
    for start in brokers(None, "--auth", "no"):
        with ExitStack() as stack:
            pair = [stack.enter_context(start()) for _ in range(2)]
            found[pair[0].name] = measure(pair, arguments.messages, arguments.size, arguments.hops)
            note(f"{pair[0].name}: {found[pair[0].name]}")
    report(_figures(found, arguments.messages), arguments.json)


def _figures(found: dict[str, dict[str, float]], count: int) -> list[Figure]:
    ours, peer = found[OURS], found.get(QPIDD, {})
    name = QPIDD if peer else ""
    return [
        Figure("route, by the clock", ours["rate"], "messages/s", name, peer.get("rate"), at_least=WANTED),
        Figure(
            "route, both brokers' processor time",
            ours["by processor"],
            "messages/s",
            name,
            peer.get("by processor"),
            at_least=WANTED,
        ),
        Figure("a hop", ours["hop"], "ms", name, peer.get("hop")),
        Figure(f"memory of {count:,} messages", ours["memory"], "bytes each", name, peer.get("memory")),
    ]


if __name__ == "__main__":
    main()
