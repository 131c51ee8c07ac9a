"""Messages sent a second in transactions of 100 with the messaging API, beside proton's `Container` and C++.

`BlockingConnection` has no transactions.

    python bench/messaging_transactions.py [--rounds N] [--processor] [--json FILE]

Brokers and programs that the environment names join: see messaging_clients.py.
"""

from __future__ import annotations

from functools import partial

from figures import Figure, report
from messaging_clients import BATCH, QMF, SIZES, Aio, Cpp, Reactor, brokers, has_programs, queue, rates, read_options


def main() -> None:
    """Measure and report."""
    arguments = read_options("Transactions with the messaging API.")
    figures: list[Figure] = []
    with brokers() as urls:
        for broker, url in urls.items():
            for label, (size, count) in SIZES.items():
                clients: list[QMF | Aio | Reactor | Cpp] = [QMF(url), Aio(url), Reactor(url)]
                if has_programs(broker):
                    clients.append(Cpp(url))
                runs = {client.name: partial(_transact, client, size, count) for client in clients}
                figures += rates(f"transactions of {BATCH}, {label}, {broker}", count, arguments.rounds, runs)
    report(figures, arguments.json)


def _transact(client: QMF | Aio | Reactor | Cpp, size: int, count: int) -> float:
    with queue(client.url) as node:
        return client.transact(node, size, count)


if __name__ == "__main__":
    main()
