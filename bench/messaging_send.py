"""Messages sent a second with the messaging API, asynchronously and synchronously, beside proton and C++.

Asynchronous: up to 1,000 messages wait for their acceptance. `BlockingConnection` has no such operation.

    python bench/messaging_send.py [--rounds N] [--processor] [--json FILE]

Brokers and programs that the environment names join: see messaging_clients.py.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from figures import Figure, report
from messaging_clients import QMF, SIZES, Aio, Blocking, Cpp, Reactor, brokers, has_programs, queue, rates, read_options


def main() -> None:
    """Measure and report."""
    arguments = read_options("Sending with the messaging API.")
    figures: list[Figure] = []
    with brokers() as urls:
        for broker, url in urls.items():
            for label, (size, most) in SIZES.items():
                for sync in (False, True):
                    count = most // 8 if sync else most
                    runs: dict[str, Callable[[], float]] = {
                        client.name: partial(_send, url, partial(client.send, size=size, count=count, sync=sync))
                        for client in (QMF(url), Aio(url), Reactor(url))
                    }
                    if sync:
                        runs[Blocking.name] = partial(_send, url, partial(Blocking(url).send, size=size, count=count))
                    if has_programs(broker):
                        runs[Cpp.name] = partial(_send, url, partial(Cpp(url).send, size=size, count=count, sync=sync))
                    kind = "synchronous" if sync else "asynchronous"
                    figures += rates(f"send {kind}, {label}, {broker}", count, arguments.rounds, runs, round_trips=sync)
    report(figures, arguments.json)


def _send(url: str, send: Callable[[str], float]) -> float:
    with queue(url) as node:
        return send(node)


if __name__ == "__main__":
    main()
