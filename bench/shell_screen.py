"""How much of a processor does a live screen of qmf-shell take, over 10,000 objects, at one update a second?

The shell shows ``watch queue`` in a pseudo-terminal of 80x24, sorted by a counter; broker and agent are processes of
their own. In each second some of the objects change. The limit is 5 % of one core with 200 of them changing in a
second; more are measured to show what they cost.

    python bench/shell_screen.py [--objects N] [--seconds N] [--json FILE]
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time

import pexpect
import psutil
import pyte
from figures import Figure, parser, report
from processes import COMPILED, own_agent, own_broker

COLUMNS, ROWS = 80, 24
LIMIT = 5.0
#: Objects that change in a second, with the limit in percent of a core; None: only shown.
CHANGES: dict[int, float | None] = {0: LIMIT, 200: LIMIT, 1000: None, 10_000: None}
WAIT_LIMIT = 60.0
#: Seconds until the first objects are no longer news.
SETTLED = 15.0


class Shell:
    """qmf-shell in a terminal that is drawn into memory, so that it is certain what it shows."""

    def __init__(self, url: str, home: str) -> None:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        folders = {"HOME": home, "XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home}
        self._child = pexpect.spawn(
            sys.executable,
            ["-m", "qmf_shell.main", "-b", url],
            env=dict(os.environ) | COMPILED | folders | {"TERM": "xterm-256color", "PYTHONPATH": path},
            dimensions=(ROWS, COLUMNS),
            encoding="utf-8",
        )
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self._screen)
        self._usage = psutil.Process(self._child.pid)
        self._lock = threading.Lock()
        self.drawn = 0
        """Characters that the program wrote."""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                data = self._child.read_nonblocking(65536, 3600)
            except (pexpect.EOF, OSError, ValueError):
                return
            with self._lock:
                self.drawn += len(data)
                self._stream.feed(data)
            if "\x1b[6n" in data:  # where is the cursor?
                self._child.send(f"\x1b[{self._screen.cursor.y + 1};1R")

    def type(self, keys: str, expected: str) -> None:
        """Type keys, and wait for a text on the screen."""
        self._child.send(keys)
        self.sees(expected)

    def sees(self, expected: str) -> None:
        """Wait for a text on the screen."""
        deadline = time.monotonic() + WAIT_LIMIT
        while True:
            with self._lock:
                lines = list(self._screen.display)
            if any(expected in line for line in lines):
                return
            assert time.monotonic() < deadline, "\n".join(lines)
            time.sleep(0.1)

    def cpu(self) -> float:
        """Seconds of processor time that it used so far."""
        times = self._usage.cpu_times()
        return times.user + times.system

    def end(self) -> None:
        """End it."""
        self._child.close(force=True)


def main() -> int:
    """Measure and print."""
    options = parser("A live screen over many objects.")
    options.add_argument("--objects", type=int, default=10_000, help="objects of the agent (%(default)s)")
    options.add_argument("--seconds", type=int, default=20, help="seconds of each measurement (%(default)s)")
    chosen = options.parse_args()
    figures: list[Figure] = []
    with (
        tempfile.TemporaryDirectory() as home,
        own_broker() as (url, _),
        own_agent(url, chosen.objects) as agent,
    ):
        shell = Shell(url, home)
        try:
            shell.sees("qmf> ")
            shell.type("watch -n 1 queue sort msgTotalEnqueues desc\r", f"{chosen.objects:,} objects")
            shell.sees("queue-")
            time.sleep(SETTLED)
            for count, limit in CHANGES.items():
                count = min(count, chosen.objects)
                began, before, drawn = time.monotonic(), shell.cpu(), shell.drawn
                for second in range(chosen.seconds):
                    if count:
                        agent.ask(f"change {count}")
                    time.sleep(max(0.0, began + second + 1 - time.monotonic()))
                share = (shell.cpu() - before) / (time.monotonic() - began) * 100
                assert shell.drawn > drawn, "nothing was drawn"
                name = f"{count:,} of {chosen.objects:,} objects change in a second"
                figures.append(Figure(name, share, "%", limit=limit))
        finally:
            shell.end()
    report(figures, chosen.json)
    reached = [item for item in figures if item.limit is not None]
    print("of the limit: " + ", ".join(f"{item.value / LIMIT:.2f} x" for item in reached))
    return 0 if all(item.reached for item in reached) else 1


if __name__ == "__main__":
    sys.exit(main())
