"""How long from the command to the prompt, with a broker that is up?

Starts `qmf-shell -b URL` in a pseudo-terminal again and again and waits for its prompt, against an embedded broker with
a host agent in a process of its own, or against the broker named by --broker. The peer is ``python -c pass``: what an
interpreter costs that does nothing. The limit is 0.5 s; the program fails when the median is above it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pexpect

#: Seconds that the median may take.
LIMIT = 0.5
_PROGRAM = [sys.executable, "-m", "qmf_shell.main"]


@contextlib.contextmanager
def own_broker() -> Iterator[str]:
    """A broker with a host agent, in another process: in this one it would share the interpreter with the clock."""
    code = (
        "import sys, time\n"
        "from qmf.broker import EmbeddedBroker\n"
        "from qmf.hostagent import EmbeddedHostAgent\n"
        "with EmbeddedBroker() as broker, EmbeddedHostAgent(broker.url, 5.0):\n"
        "    print(broker.url, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment()
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def _environment(home: str = "/nonexistent") -> dict[str, str]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return os.environ | {"PYTHONPATH": path, "HOME": home, "XDG_STATE_HOME": home, "TERM": "xterm-256color"}


def prompt_seconds(url: str, home: str) -> float:
    """One start, until the prompt is drawn."""
    start = time.perf_counter()
    child = pexpect.spawn(
        _PROGRAM[0], [*_PROGRAM[1:], "-b", url], env=_environment(home), dimensions=(30, 100), timeout=30
    )
    child.delaybeforesend = None  # pexpect waits 50 ms otherwise
    try:
        # The program asks the terminal where the cursor is before it draws; a terminal answers at once.
        if child.expect_exact([b"\x1b[6n", b"qmf>"]) == 0:
            child.send(b"\x1b[1;1R")
            child.expect_exact(b"qmf>")
        return time.perf_counter() - start
    finally:
        child.close(force=True)


def python_seconds() -> float:
    """One start of an interpreter that does nothing."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - start


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and compare with the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--broker", metavar="URL", help="measure against this one")
    parser.add_argument("--runs", type=int, default=15, help="starts that count (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE")
    options = parser.parse_args(argv)
    with contextlib.ExitStack() as stack:
        url = options.broker or stack.enter_context(own_broker())
        home = stack.enter_context(tempfile.TemporaryDirectory())
        prompt_seconds(url, home)
        prompts = [prompt_seconds(url, home) for _ in range(options.runs)]
        pythons = [python_seconds() for _ in range(options.runs)]
    median, python = statistics.median(prompts), statistics.median(pythons)
    spread = f"fastest {min(prompts) * 1000:.1f}, slowest {max(prompts) * 1000:.1f}"
    print(f"prompt         {median * 1000:7.1f} ms  ({spread})")
    print(f"python -c pass {python * 1000:7.1f} ms  ratio {median / python:.1f}")
    print(f"limit          {LIMIT * 1000:7.1f} ms  {'kept' if median <= LIMIT else 'MISSED'}")
    if options.json:
        figures = {"prompt_s": median, "python_s": python, "ratio": median / python, "limit_s": LIMIT, "runs": prompts}
        Path(options.json).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0 if median <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
