"""How long changes take to many consoles that follow the same objects, and what they cost agent and broker.

All objects change once a second. Most consoles only take messages, as consoles with processors of their own would take
from these; a few are ours, and give the delays from each change to its arrival: the interval of a second included. The
peer is the same with one console.

    python bench/follow_delay.py [--consoles N] [--objects N] [--seconds N] [--json FILE]
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import time
from pathlib import Path

import attrs
from figures import Figure, note, parser, report
from processes import own_broker, program
from scale import raise_file_limit

#: Consoles whose delays are measured, in one process.
MEASURED = 2
#: Seconds until all publish under one key, and until old changes have come.
SETTLE = 4.0
#: Milliseconds that 99 of 100 changes may take, and how many times as much as for one console the agent may use.
DELAY, TIMES = 2000.0, 2.0
_PARTS = str(Path(__file__).resolve().parent / "follow_parts.py")


@attrs.frozen
class Result:
    """What following cost a second.

    Attributes:
        agent, broker: seconds of processor time.
        delays: milliseconds, of each change at each measured console.
        megabytes: that the others took.
    """

    agent: float
    broker: float
    delays: list[float]
    megabytes: float


def follow(consoles: int, objects: int, seconds: float) -> Result:
    """Measure with so many consoles."""
    measured = min(MEASURED, consoles)
    with contextlib.ExitStack() as stack:
        url, broker = stack.enter_context(own_broker())
        agent = stack.enter_context(program(sys.executable, _PARTS, "agent", url, str(objects)))
        _expect(agent.line())
        others = consoles - measured
        takers = stack.enter_context(program(sys.executable, _PARTS, "takers", url, str(others))) if others else None
        if takers is not None:
            _expect(takers.line())
        party = stack.enter_context(program(sys.executable, _PARTS, "consoles", url, str(measured)))
        _expect(party.line())
        agent.tell("change")
        time.sleep(SETTLE)
        party.ask("delays")
        if takers is not None:
            takers.ask("bytes")
        used, began = (agent.cpu(), broker.cpu()), time.perf_counter()
        time.sleep(seconds)
        passed = time.perf_counter() - began
        spent = [after - before for after, before in zip((agent.cpu(), broker.cpu()), used, strict=True)]
        delays = [float(word) for word in party.ask("delays").split()]
        taken = 0 if takers is None else int(takers.ask("bytes"))
        return Result(spent[0] / passed, spent[1] / passed, delays, taken / passed / 1e6)


def _expect(line: str) -> None:
    if line != "ready":
        sys.exit(f"{line} instead of ready")


def main() -> None:
    """Measure and report."""
    options = parser("Delays of changes to many consoles.")
    options.add_argument("--consoles", type=int, default=500, metavar="N", help="how many (default: %(default)s)")
    options.add_argument("--objects", type=int, default=1_000, metavar="N", help="that change (default: %(default)s)")
    options.add_argument("--seconds", type=float, default=20.0, metavar="N", help="measured (default: %(default)s)")
    arguments = options.parse_args()
    raise_file_limit()
    alone, many = (
        follow(count, arguments.objects, arguments.seconds) for count in (1, max(arguments.consoles, MEASURED + 1))
    )
    note(f"{many.megabytes:.1f} MB a second to the consoles, load {os.getloadavg()[0]:.1f}")
    name = f"{arguments.consoles:,} consoles, {arguments.objects:,} changes a second"
    last = statistics.quantiles(many.delays, n=100)[-1]
    report(
        [
            Figure(f"{name}: 99 of 100 came within", last, "ms", limit=DELAY),
            Figure(f"{name}: half came within", statistics.median(many.delays), "ms"),
            Figure(
                f"{name}: the agent",
                many.agent * 1e3,
                "ms of the processor a second",
                "one console",
                alone.agent * 1e3,
                at_most=TIMES,
            ),
            Figure(f"{name}: the broker", many.broker * 1e3, "ms of the processor a second"),
        ],
        arguments.json,
    )


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
