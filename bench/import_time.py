"""How long it takes to import the console and the agent, in fresh processes.

The peer is what they cannot do without: `import asyncio, attrs`. The limit is that of a program that is started for one
command: 150 ms for an import. "in use" loads what a program needs to connect. Figures are medians of rounds that take
turns: milliseconds of the clock, and of the processor, which other programs on the machine disturb less; the
interpreter's own start is in all of them.

    python bench/import_time.py [--rounds N] [--json FILE]
"""

from __future__ import annotations

import os
import statistics
import sys
import time

from figures import Figure, parser, report
from processes import COMPILED

LIMIT = 150.0
PEER = "import asyncio, attrs"
CASES = {
    "the interpreter": "pass",
    PEER: PEER,
    "import qmf.console": "import qmf.console",
    "import qmf.console.aio": "import qmf.console.aio",
    "import qmf.agent": "import qmf.agent",
    "console in use": "from qmf.console import Session; import qmf.bus.client.network_connection",
    "async console in use": "from qmf.console.aio import Client; import qmf.bus.client.network_connection",
    "agent in use": "from qmf.agent import Agent; import qmf.bus.client.network_connection",
}


def measure(code: str) -> tuple[float, float]:
    """Milliseconds of clock and processor that a fresh interpreter needs for `code`."""
    start = time.perf_counter()
    child = os.posix_spawn(sys.executable, [sys.executable, "-P", "-c", code], os.environ | COMPILED)
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - start
    if status:
        sys.exit(f"failed: {code}")
    return wall * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3


def main() -> None:
    """Measure and report."""
    options = parser("Import times beside those of asyncio and attrs.")
    options.add_argument("--rounds", type=int, default=15, metavar="N", help="rounds per figure (default: %(default)s)")
    arguments = options.parse_args()
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in CASES}
    for code in CASES.values():
        measure(code)  # compiled files and the system's caches are there now
    for _ in range(arguments.rounds):
        for name, code in CASES.items():
            rounds[name].append(measure(code))
    medians = {name: tuple(map(statistics.median, zip(*values, strict=True))) for name, values in rounds.items()}
    peer = medians[PEER]
    figures = [
        Figure(name, wall, "ms", PEER, peer[0], limit=LIMIT if name.startswith("import qmf") else None)
        for name, (wall, _) in medians.items()
    ]
    figures += [
        Figure(f"{name}: processor", used, "ms", PEER, peer[1])
        for name, (_, used) in medians.items()
        if name.endswith("in use")
    ]
    report(figures, arguments.json)


if __name__ == "__main__":
    main()
