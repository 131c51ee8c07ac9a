"""How long does qmf-shell take to list 10,000 objects, and to show one of them by its name?

The shell is started for one command each; so is the peer, a script of a few lines over `qmf.console.aio` that fetches
the same objects and counts them. Broker and agent are processes of their own. Rounds take turns.

    python bench/shell_objects.py [--objects N] [--runs N] [--json FILE]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from figures import Figure, parser, report
from processes import COMPILED, own_agent, own_broker

#: A shell that takes twice the time of the library below it would be doing something wrong.
AT_MOST = 2.0
PEER = "a script over the console"
_PEER = """
import asyncio, sys
from qmf.console.aio import Client

async def main():
    async with Client(sys.argv[1]) as client:
        print(len(await client.objects("queue")))

asyncio.run(main())
"""


def timed(command: list[str], expected: str) -> float:
    """Milliseconds that a command takes; its output must have the expected text."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = os.environ | COMPILED | {"PYTHONPATH": path}
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True, env=environment)
    took = (time.perf_counter() - start) * 1e3
    assert expected in done.stdout, f"{command}: no {expected!r} in {done.stdout[-200:]!r}"
    return took


def main() -> int:
    """Measure and print."""
    options = parser("Lists of many objects.")
    options.add_argument("--objects", type=int, default=10_000, help="objects of the agent (%(default)s)")
    options.add_argument("--runs", type=int, default=5, help="runs that count (%(default)s)")
    chosen = options.parse_args()
    last = f"queue-{chosen.objects - 1}"
    lines = {
        "list queue": last,
        "list queue --csv": last,
        "list queue sort msgDepth desc limit 10": f"{chosen.objects:,} objects",
        f"list queue where name = {last}": "1 object",
        f"show queue:{last}": last,
    }
    with own_broker() as (url, _), own_agent(url, chosen.objects):

        def shell(line: str) -> list[str]:
            line, csv, _ = line.partition(" --csv")
            return ["-m", "qmf_shell.main", "-b", url, *(["--csv"] if csv else []), "-c", line]

        peers: list[float] = []
        times: dict[str, list[float]] = {line: [] for line in lines}
        for _ in range(chosen.runs):
            peers.append(timed(["-c", _PEER, url], str(chosen.objects)))
            for line, expected in lines.items():
                times[line].append(timed(shell(line), expected))
    peer = statistics.median(peers)
    figures = [
        Figure(line, statistics.median(values), "ms", PEER, peer, at_most=AT_MOST) for line, values in times.items()
    ]
    report(figures, chosen.json)
    return 0 if all(item.reached for item in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
