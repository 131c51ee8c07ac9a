"""Persistent messages a second into a durable queue, beside qpidd's linearstore and the disk's own rate of fsync.

A message is answered when it is on the disk. The clients are the same for both brokers: see broker_load.py.

    python bench/broker_persistent.py [--rounds N] [--processor] [--folder DIR] [--json FILE] [--part N]

Brokers and programs that the environment names join: see broker_peers.py.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
import uuid
from pathlib import Path

import attrs
from broker_load import Load, clients, send_command
from broker_peers import OURS, MeasuredBroker, beside, brokers, new_queue, read_options
from figures import Figure, note, report

#: Writes of a measurement of the disk, and their size: that of a page.
WRITES, PAGE = 500, 4096
#: Of a run.
SECONDS = 4.0


@attrs.frozen
class Case:
    """Something to measure.

    Attributes:
        title: of the figure.
        size: bytes of a message.
        messages: that are sent, or as many as take `SECONDS`.
        in_flight: messages that wait for their outcomes.
        wanted: of qpidd's rate.
    """

    title: str
    size: int
    messages: int
    in_flight: int
    wanted: float | None = None


CASES = (
    Case("1 in flight, 100 B", 100, 1_000, 1),
    Case("100 in flight, 100 B", 100, 20_000, 100, 1.0),
    Case("100 in flight, 10 kB", 10_240, 5_000, 100, 1.0),
)


def disk_rate(folder: Path) -> float:
    """Small writes, each followed by fsync, in a second."""
    with (folder / "disk").open("wb", buffering=0) as file:
        begin = time.perf_counter()
        for _ in range(WRITES):
            file.write(bytes(PAGE))
            os.fsync(file.fileno())
        return WRITES / (time.perf_counter() - begin)


def enough(broker: MeasuredBroker, case: Case, part: int) -> int:
    """How many messages to send. The linearstore writes what is not full twice a second."""
    few = max(5, 2 * case.in_flight)
    return max(few, min(case.messages // part, round(measure(broker, case, few, processor=False) * SECONDS)))


def measure(broker: MeasuredBroker, case: Case, count: int, *, processor: bool) -> float:
    """Messages that are sent in a second."""
    arguments = "qpid.max_size: 500000000, qpid.flow_stop_size: 0, qpid.flow_stop_count: 0"
    with new_queue(broker.url, f"bench-{uuid.uuid4().hex[:8]}", durable=True, arguments=arguments) as node:
        before = broker.cpu()
        command = send_command(broker.url, node, count, size=case.size, capacity=case.in_flight, durable=True)
        load = Load([command])
        try:
            (rate,) = load.rates()
        finally:
            load.end()
        return count / (broker.cpu() - before) if processor else rate


def main() -> None:
    """Measure and report."""
    options = read_options("Persistent messages into the embedded broker.")
    options.add_argument("--part", type=int, default=1, metavar="N", help="send only this part of the messages: 1/N")
    options.add_argument("--folder", type=Path, help="where the stores lie (default: the folder for temporary files)")
    arguments = options.parse_args()
    note(f"clients: {clients()}")
    rates: dict[Case, dict[str, list[float]]] = {case: {} for case in CASES}
    disk: list[float] = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        for start in brokers(folder):
            with start() as broker:
                for case in CASES:
                    found = rates[case][broker.name] = []
                    count = enough(broker, case, arguments.part)
                    for _ in range(arguments.rounds):
                        disk.append(disk_rate(folder))
                        found.append(measure(broker, case, count, processor=arguments.processor))
                    note(f"{broker.name}, {case.title}: {', '.join(f'{rate:,.0f}' for rate in found)}")
    unit = "/s of processor time" if arguments.processor else "/s"
    figures: list[Figure] = [beside(case.title, unit, rates[case], at_least=case.wanted) for case in CASES]
    if not arguments.processor:
        fsync = statistics.median(disk)
        for case in CASES:
            figures.append(Figure(case.title, statistics.median(rates[case][OURS]), unit, "fsync of the disk", fsync))
    report(figures, arguments.json)


if __name__ == "__main__":
    main()
