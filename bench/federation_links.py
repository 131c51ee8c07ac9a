"""1,000 links that have nothing to do, and a backlog after a cut: ours, bridges of qpidd, shovels of RabbitMQ.

Of each kind of brokers, two are processes of their own, and one of them takes messages from the other:

- 1,000 links with a route each, from a queue that is empty: what one costs of the memory of both brokers, and what all
  cost of a processor while nothing happens. RabbitMQ has its shovels in its configuration, since to create hundreds
  takes minutes.
- A route that goes through a proxy, which is cut: messages come to the source meanwhile. When the proxy is there again,
  the time from then until the first hundredth of them and until all have arrived; the processor time of both brokers;
  and what is left of their memory after the first and after the last of several such cuts.

QMF_BENCH_QPIDD_COMMAND starts the two qpidd (`broker_peers.py`); RabbitMQ is that of `scripts/brokers.py`, where it was
fetched.

    python bench/federation_links.py [--links N] [--messages N] [--cuts N] [--seconds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from contextlib import ExitStack

from broker_peers import OURS, QPIDD
from cut_proxy import CutProxy
from federation_peers import RABBITMQ, FederatedPair, pairs
from federation_table import Row, print_rows
from figures import Figure, note, parser, report

#: The names of what is measured of each kind, and their units.
UNITS = {
    "memory of a link": "kB",
    "idle links": "% of a processor",
    "backlog, until the first hundredth": "s",
    "backlog, from then on": "messages/s",
    "backlog, processor time": "s",
    "memory kept after the first cut": "MB",
    "memory kept by the further cuts": "MB",
}
#: The most that is wanted of ours: a wait between two attempts, and memory that stays about the same.
LIMITS = {"backlog, until the first hundredth": 6.0, "memory kept by the further cuts": 16.0}

_ROWS = (
    Row("memory of an idle link with a route, of both brokers, one of {links:,}", ["memory of a link"], " kB", 0),
    Row("processor for {links:,} idle links, both brokers, with management each 10 s", ["idle links"], " %", 1),
    Row(
        "{messages:,} messages that came during a cut of ten seconds or more: until the first hundredth of them has"
        " arrived",
        ["backlog, until the first hundredth"],
        " s",
        1,
    ),
    Row("messages in a second by the clock from then on", ["backlog, from then on"]),
    Row("processor time for these, both brokers", ["backlog, processor time"], " s", 1),
    Row(
        "memory that both brokers keep after that; and after further such cuts, in addition",
        ["memory kept after the first cut", "memory kept by the further cuts"],
        " MB",
        0,
    ),
)


def measure_idle(pair: FederatedPair, count: int, seconds: float) -> dict[str, float]:
    """What so many links cost that have nothing to do: the memory of one, and the share of a processor of all."""
    pair.add_queue("idle")
    before = pair.memory()
    pair.add_idle_routes(count, "idle")
    time.sleep(seconds / 4)  # what belongs to the beginning is over
    memory, spent = pair.memory(), pair.cpu()
    time.sleep(seconds)
    spent = pair.cpu() - spent
    return {"memory of a link": (memory - before) / count / 1e3, "idle links": 100 * spent / seconds}


def measure_cuts(pair: FederatedPair, count: int, cuts: int) -> dict[str, float]:
    """What a backlog costs that has grown while a route was cut."""
    found: dict[str, list[float]] = {name: [] for name in ("first", "rest", "cpu", "memory")}
    pair.add_queue("backlog")
    start = pair.memory()
    with CutProxy(pair.source.url) as proxy:
        pair.add_route("cut", "backlog", proxy.url)
        pair.fill("backlog", 1)
        pair.wait_for_messages(1)
        for cut in range(1, cuts + 1):
            proxy.cut()
            pair.fill("backlog", count)
            spent, began = pair.cpu(), time.perf_counter()
            proxy.restore()
            pair.wait_for_messages(1 + (cut - 1) * count + count // 100)
            first = time.perf_counter()
            pair.wait_for_messages(1 + cut * count)
            found["first"].append(first - began)
            found["rest"].append((count - count // 100) / max(time.perf_counter() - first, 1e-3))
            found["cpu"].append(pair.cpu() - spent)
            pair.empty()
            found["memory"].append(pair.memory() - start)
    middle = cuts // 2
    return {
        "backlog, until the first hundredth": sorted(found["first"])[middle],
        "backlog, from then on": sorted(found["rest"])[middle],
        "backlog, processor time": sorted(found["cpu"])[middle],
        "memory kept after the first cut": found["memory"][0] / 1e6,
        "memory kept by the further cuts": (found["memory"][-1] - found["memory"][0]) / 1e6,
    }


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Measure each kind of brokers."""
    found: dict[str, dict[str, float]] = {}
    for start in pairs():
        with ExitStack() as stack:
            pair = stack.enter_context(start())
            found[pair.name] = measure_cuts(pair, arguments.messages, arguments.cuts)
            note(f"{pair.name}: {found[pair.name]}")
        with ExitStack() as stack:
            pair = stack.enter_context(start())
            found[pair.name] |= measure_idle(pair, arguments.links, arguments.seconds)
            note(f"{pair.name}: {found[pair.name]}")
    return found


def figures_of(found: dict[str, dict[str, float]], kinds: Sequence[str]) -> list[Figure]:
    """Ours, beside each of the others."""
    ours = found[OURS]
    others = [kind for kind in kinds if kind in found and kind != OURS]
    if not others:
        return [Figure(name, ours[name], unit, limit=LIMITS.get(name)) for name, unit in UNITS.items()]
    return [
        Figure(name, ours[name], unit, kind, found[kind].get(name), limit=LIMITS.get(name))
        for name, unit in UNITS.items()
        for kind in others
    ]


def main() -> None:
    """Measure, and report."""
    options = parser(__doc__)
    options.add_argument("--links", type=int, default=1_000, help="that have nothing to do")
    options.add_argument("--messages", type=int, default=100_000, help="of the backlog")
    options.add_argument("--cuts", type=int, default=2, help="of the route")
    options.add_argument("--seconds", type=float, default=20.0, help="for which idle links are looked at")
    arguments = options.parse_args()
    found = measure(arguments)
    report(figures_of(found, [QPIDD, RABBITMQ]), arguments.json)
    print_rows(_ROWS, found, vars(arguments))


if __name__ == "__main__":
    main()
