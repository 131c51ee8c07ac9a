"""Messages received a second with the messaging API, by capacity, and browsed, beside proton and C++.

    python bench/messaging_receive.py [--rounds N] [--processor] [--json FILE]

Brokers and programs that the environment names join: see messaging_clients.py.
"""

from __future__ import annotations

from functools import partial

from figures import Figure, report
from messaging_clients import QMF, SIZES, Aio, Blocking, Cpp, Reactor, brokers, has_programs, queue, rates, read_options

#: Capacity of the receiver, and the part of the messages that is enough for a measurement with it.
CAPACITIES = {1: 8, 10: 4, 1000: 1}


def main() -> None:
    """Measure and report."""
    arguments = read_options("Receiving with the messaging API.")
    figures: list[Figure] = []
    with brokers() as urls:
        for broker, url in urls.items():
            cpp = has_programs(broker)
            for label, (size, most) in SIZES.items():
                for capacity, part in CAPACITIES.items():
                    title = f"receive, capacity {capacity}, {label}, {broker}"
                    figures += _measure(title, url, size, most // part, capacity, arguments.rounds, cpp=cpp)
                title = f"browse, capacity 1000, {label}, {broker}"
                figures += _measure(
                    title, url, size, most, 1000, arguments.rounds, cpp=has_programs(broker), browse=True
                )
    report(figures, arguments.json)


def _measure(
    title: str, url: str, size: int, count: int, capacity: int, rounds: int, *, cpp: bool, browse: bool = False
) -> list[Figure]:
    clients: list[QMF | Aio | Blocking | Reactor | Cpp] = [QMF(url), Aio(url), Blocking(url), Reactor(url)]
    if cpp:
        clients.append(Cpp(url))

    def run(client: QMF | Aio | Blocking | Reactor | Cpp) -> float:
        with queue(url, size, count) as node:
            return client.receive(node, size, count, capacity, browse=browse)

    runs = {client.name: partial(run, client) for client in clients}
    return rates(title, count, rounds, runs, round_trips=capacity == 1)


if __name__ == "__main__":
    main()
