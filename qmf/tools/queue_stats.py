"""`qpid-queue-stats`: depths and rates of queues, a line for each queue that has changed."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from time import monotonic, sleep

import attrs

from qmf._option_values import regular_expression, seconds_between, whole_number
from qmf.client import BrokerAgent, Queue
from qmf.errors import QmfError
from qmf.tools.connecting import (
    OK,
    TIMEOUT,
    BrokerAccess,
    ToolParser,
    access_of,
    add_connection_options,
    add_own_option,
    check_connection_options,
    open_broker,
    run_tool,
)

HEADING = "Queue Name                                     Sec       Depth     Enq Rate     Deq Rate"

#: Seconds between two attempts to connect again.
_RETRY = 2.0


@attrs.frozen
class QueueSample:
    """What a queue had at a time.

    Attributes:
        time: seconds of a monotonic clock.
        enqueued, dequeued: messages in total.
        depth: messages now.
    """

    time: float
    enqueued: int
    dequeued: int
    depth: int


class QueueRates:
    """Compares samples of queues, each with the one before."""

    def __init__(self, patterns: Iterable[re.Pattern[str]] = ()) -> None:
        """Begin without a sample; `patterns`: only queues whose names begin with a match; none for all."""
        self._patterns = tuple(patterns)
        self._samples: dict[str, QueueSample] = {}

    def lines(self, queues: Iterable[Queue], now: float) -> Iterator[str]:
        """A line for each queue that has changed since it was sampled before.

        Args:
            queues: all queues of the broker.
            now: seconds of a monotonic clock.
        """
        before, self._samples = self._samples, {}
        for queue in queues:
            name = str(queue.name)
            if self._patterns and not any(pattern.match(name) for pattern in self._patterns):
                continue
            sample = QueueSample(now, int(queue.msgTotalEnqueues), int(queue.msgTotalDequeues), int(queue.msgDepth))
            last = before.get(name)
            self._samples[name] = sample
            if last is not None and (line := _line(name, last, sample)):
                yield line

    def clear(self) -> None:
        """Forget all samples: the broker may have restarted."""
        self._samples.clear()


def _line(name: str, last: QueueSample, sample: QueueSample) -> str:
    unchanged = attrs.evolve(last, time=sample.time) == sample
    seconds = sample.time - last.time
    if unchanged or seconds <= 0:
        return ""
    enqueued = (sample.enqueued - last.enqueued) / seconds
    dequeued = (sample.dequeued - last.dequeued) / seconds
    return f"{name:<41}{seconds:10.2f}{sample.depth:11d}{enqueued:13.2f}{dequeued:13.2f}"


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = ToolParser(
        prog="qpid-queue-stats",
        description="Print depth and rates of each queue that changes, until Ctrl-C.",
        epilog="exit codes: 0 success, 1 no connection, 2 wrong usage.",
    )
    add_connection_options(parser, "-a", "--broker-address", "-b", "--broker")
    add = parser.add_argument
    add("-f", "--filter", type=_patterns, default=(), metavar="<names>", help="queues: regular expressions with commas")
    add(
        "-i",
        "--interval",
        type=seconds_between(0.01, 86_400),
        default=10.0,
        metavar="<secs>",
        help="seconds between samples (%(default)g)",
    )
    add("-n", "--count", type=whole_number, metavar="<n>", help="end after so many comparisons")
    add_own_option(parser.add_argument)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; `argv`: arguments without the program's name; None means those of the process.

    Returns:
        0 for success, also after Ctrl-C; 1 if the broker cannot be reached. Wrong usage ends the program with 2.
    """
    parser = build_parser()
    options = parser.parse_args(argv)
    check_connection_options(parser, options)
    return run_tool(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    access = access_of(options)
    with open_broker(access, options.timeout) as broker:
        print(f"{HEADING}\n{'=' * len(HEADING)}", flush=True)
        try:
            _watch(broker, access, options)
        except KeyboardInterrupt:
            print()
    return OK


def _watch(broker: BrokerAgent, access: BrokerAccess, options: argparse.Namespace) -> None:
    rates = QueueRates(options.filter)
    left = options.count
    while True:
        try:
            queues = broker.getAllQueues()
        except QmfError as error:
            print(f"*** Broker connection lost - {error}, retrying...", file=sys.stderr, flush=True)
            rates.clear()
            _connect_again(broker, access, options.timeout or TIMEOUT)
            print("*** Broker connected", file=sys.stderr, flush=True)
            continue
        shown = [queue for queue in queues if options.all or not queue.is_own]
        for line in rates.lines(shown, monotonic()):
            print(line)
        sys.stdout.flush()
        if left is not None:
            if left == 0:
                return
            left -= 1
        sleep(options.interval)


def _connect_again(broker: BrokerAgent, access: BrokerAccess, timeout: float) -> None:
    while True:
        try:
            connection = BrokerAgent.connection(access.address, timeout, **access.options)
        except QmfError:
            sleep(_RETRY)
            continue
        broker.reconnect(connection)
        return


def _patterns(text: str) -> tuple[re.Pattern[str], ...]:
    return tuple(regular_expression(item) for item in text.split(",") if item)
