"""All agents of a site come back after their broker was restarted, with and without its own agent.

Agents and broker are processes of their own. All agents are in one process, without collections of its oldest objects:
an agent of a site is a process of its own, and so small that its return causes none. The broker has its usual limits.
Of both processes the processor time for an agent is reported; the wall time until all are back, and how many handshakes
failed. The limits are those of 10,000 agents that are to be back within 20 s on two cores: 2 ms of the broker and 2 ms
of the agents each, and no handshake that fails.

    python bench/broker_returns.py [--agents N] [--patience SECONDS] [--json FILE]
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from figures import Figure, note, parser, report
from processes import Program, own_broker, program
from scale import raise_file_limit

from qmf.broker.listener import OPEN_TIMEOUT

#: Milliseconds of the broker, and of the agents' process, for an agent: 20 s for 10,000 of them.
LIMIT = 2.0
#: Seconds between publications of the broker's own agent; 0 for none.
MANAGEMENTS = (0.0, 10.0)
_HERE = Path(__file__).resolve().parent


def returns(count: int, management: float, patience: float) -> list[Figure]:
    """Agents join, their broker is killed and started again, and they come back."""
    with contextlib.ExitStack() as stack:
        url, broker = stack.enter_context(own_broker(management))
        crowd = stack.enter_context(program(sys.executable, str(_HERE / "scale_agents.py"), url, str(count)))
        _expect(crowd.line(), "ready")
        broker.kill()
        _expect(crowd.ask("lost"), "lost")
        again, restarted = stack.enter_context(own_broker(management, 0, int(url.rpartition(":")[2]), patience))
        _expect(again, url)
        used, began = (restarted.cpu(), crowd.cpu()), time.perf_counter()
        _expect(crowd.ask("back"), "back")
        wall = time.perf_counter() - began
        return _figures(count, management, (restarted.cpu() - used[0], crowd.cpu() - used[1]), wall, restarted)


def _figures(count: int, management: float, spent: tuple[float, float], wall: float, broker: Program) -> list[Figure]:
    connections, failures = map(int, broker.ask("connections").split())
    name = f"{count:,} agents back, {'with' if management else 'without'} management"
    note(f"{name}: {wall:.1f} s by the clock, {connections:,} connections, load {os.getloadavg()[0]:.1f}")
    return [
        Figure(f"{name}: the broker", spent[0] / count * 1e3, "ms of the processor each", limit=LIMIT),
        Figure(f"{name}: the agents", spent[1] / count * 1e3, "ms of the processor each", limit=LIMIT),
        Figure(f"{name}: by the clock", wall, "s"),
        Figure(f"{name}: handshakes that failed", failures, "in all", limit=0),
    ]


def _expect(line: str, expected: str) -> None:
    """End the program unless another one says what it has to say."""
    if line != expected:
        sys.exit(f"{line} instead of {expected}")


def main() -> None:
    """Measure and report."""
    options = parser("Agents that come back to their broker.")
    options.add_argument("--agents", type=int, default=2_000, help="how many (default: %(default)s)")
    options.add_argument(
        "--patience",
        type=float,
        default=OPEN_TIMEOUT,
        help="seconds for a step of a handshake (default: %(default)g)",
    )
    arguments = options.parse_args()
    raise_file_limit()
    report(
        [figure for item in MANAGEMENTS for figure in returns(arguments.agents, item, arguments.patience)],
        arguments.json,
    )


if __name__ == "__main__":
    main()
