"""How long from the command to the prompt of qmf-shell, and to its first list, with a broker that is up?

Starts `qmf-shell -b URL` in a pseudo-terminal again and again, waits for its prompt, types `list` and waits for a class
with objects; then `qmf-shell -b URL -c list` with a pipe. The broker and an agent are processes of their own, or the
broker is the one that --broker names. The peer is ``python -c pass``: what an interpreter costs that does nothing.
Rounds take turns. The program fails when a median is above its limit.

    python bench/shell_prompt.py [--broker URL] [--runs N] [--json FILE]
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import attrs
import pexpect
from figures import Figure, parser, report
from processes import COMPILED, own_agent, own_broker

#: Milliseconds that medians may take.
LIMIT = 500.0
#: Objects of the agent: enough that no list is empty.
OBJECTS = 20
PEER = "python -c pass"
_PROGRAM = [sys.executable, "-m", "qmf_shell.main"]
#: A class of which there are objects, in a list.
_ROW = re.compile(rb"\S  +\w+ +[1-9]\d* +0")


@attrs.frozen
class Start:
    """One start in a terminal, in milliseconds.

    Attributes:
        prompt: from the command to the prompt.
        first: from typing `list` there to its first row.
    """

    prompt: float
    first: float


def environment(home: str) -> dict[str, str]:
    """Ours, without the user's settings and history."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return (
        os.environ
        | COMPILED
        | {
            "PYTHONPATH": path,
            "HOME": home,
            "XDG_STATE_HOME": home,
            "XDG_CONFIG_HOME": home,
            "TERM": "xterm-256color",
            "NO_COLOR": "1",  # rows without signs in between
        }
    )


def in_terminal(url: str, home: str) -> Start:
    """One start, until the first list is drawn."""
    start = time.perf_counter()
    child = pexpect.spawn(
        _PROGRAM[0], [*_PROGRAM[1:], "-b", url], env=environment(home), dimensions=(50, 100), timeout=30
    )
    child.delaybeforesend = None  # pexpect waits 50 ms otherwise
    try:
        # The program asks the terminal where the cursor is before it draws; a terminal answers at once.
        if child.expect_exact([b"\x1b[6n", b"qmf>"]) == 0:
            child.send(b"\x1b[1;1R")
            child.expect_exact(b"qmf>")
        prompt = time.perf_counter()
        child.send(b"list\r")
        child.expect(_ROW)
        return Start((prompt - start) * 1e3, (time.perf_counter() - prompt) * 1e3)
    finally:
        child.close(force=True)


def one_shot(url: str, home: str) -> tuple[float, float]:
    """One command without a terminal: milliseconds until the first row, and of processor time in all."""
    start = time.perf_counter()
    with subprocess.Popen(
        [*_PROGRAM, "-b", url, "-c", "list"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment(home)
    ) as process:
        assert process.stdout is not None
        found = any(_ROW.search(line) for line in process.stdout)
        took = time.perf_counter() - start
        assert found, "an empty list"
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
    return took * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3


def python() -> float:
    """One start of an interpreter that does nothing, in milliseconds."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return (time.perf_counter() - start) * 1e3


def main() -> int:
    """Measure, print, and compare with the limits."""
    options = parser("Time to the prompt and to the first list.")
    options.add_argument("--broker", metavar="URL", help="measure against this one")
    options.add_argument("--runs", type=int, default=15, help="starts that count (%(default)s)")
    chosen = options.parse_args()
    with contextlib.ExitStack() as stack:
        url = chosen.broker
        if url is None:
            url, _ = stack.enter_context(own_broker())
            stack.enter_context(own_agent(url, OBJECTS))
        home = stack.enter_context(tempfile.TemporaryDirectory())
        in_terminal(url, home)
        rounds = [(in_terminal(url, home), one_shot(url, home), python()) for _ in range(chosen.runs)]
    peer = statistics.median(value for _, _, value in rounds)

    def figure(name: str, values: list[float], limit: float | None = LIMIT) -> Figure:
        return Figure(name, statistics.median(values), "ms", PEER, peer, limit=limit)

    figures = [
        figure("prompt", [start.prompt for start, _, _ in rounds]),
        figure("list at the prompt", [start.first for start, _, _ in rounds]),
        figure("qmf-shell -c list, first row", [took for _, (took, _), _ in rounds]),
        figure("qmf-shell -c list, processor", [used for _, (_, used), _ in rounds], None),
    ]
    report(figures, chosen.json)
    return 0 if all(item.reached is not False for item in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
