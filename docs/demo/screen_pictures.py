"""Makes the pictures of live screens and tables in docs/shell.md: a real session in terminals of three sizes, as SVG.

An embedded broker and an agent with invented queues, whose counters grow while the session lasts, run in this process.

    python docs/demo/screen_pictures.py --out docs/demo
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from invented_queues import InventedQueues
from shell_picture import Terminal, drawn
from terminal_svg import terminal_svg

from qmf.agent import Agent
from qmf.broker import EmbeddedBroker

SIZES = ((80, 24), (120, 40), (200, 50))
#: Seconds for which a screen runs before it is drawn, so that there are rates.
RUNNING = 8.0
#: Pictures by name: what is typed at the prompt, then on the screen, and what is seen in the end.
SCREENS = (
    ("watch", "watch -n 1 queue sort msgTotalEnqueues desc\r", "", r"orders"),
    ("object", "watch -n 1 queue:orders\r", "", r"msgTotalEnqueues"),
    ("references", "watch -n 1 queue:orders\r", "\t", r"from +\d+ +binding"),
    ("events", "events -f\r", "", r"queueDeclare"),
    ("list", "list queue limit 15\r", "", r"more beyond"),
)


def work(queues: InventedQueues, ended: threading.Event) -> None:
    """Let messages come, until `ended` is set; on a thread of its own."""
    queues.add_messages(2_300_000, 410_000)
    beats = 0
    while not ended.wait(0.7):
        beats += 1
        queues.let_messages_come(12, busy=1, least=900)
        if beats % 2:
            queues.subscribe()
        else:
            queues.declare(beats)


def picture(url: str, port: int, home: str, size: tuple[int, int], keys: tuple[str, str], seen: str) -> str:
    """One picture."""
    columns, rows = size
    line, more = keys
    terminal = Terminal(url, home, columns, rows)
    try:
        terminal.ready()
        terminal.type("list queue limit 1\r", "more beyond")  # so that objects have the same ids in all pictures
        terminal.ready()
        terminal.child.send("clear\r")
        terminal.until(lambda lines: not any("more beyond" in text for text in lines))
        terminal.ready()
        terminal.type(line, seen if not more else "q leave")
        if more:
            terminal.type(more, seen)
        if not line.startswith("list"):
            end = time.monotonic() + RUNNING
            terminal.until(lambda _: time.monotonic() > end)
        else:
            terminal.ready()
        terminal.settle()
        return terminal_svg(drawn(terminal.screen, port, whole=True), columns, f"{columns} x {rows}: {line.strip()}")
    finally:
        terminal.child.close(force=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description="Make the pictures of qmf-shell's screens in docs/shell.md.")
    parser.add_argument("--out", metavar="FOLDER", default="docs/demo", help="where to (default: %(default)s)")
    parser.add_argument("names", nargs="*", help="only these pictures")
    options = parser.parse_args(argv)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as home,
        EmbeddedBroker() as broker,
        Agent.run_in_thread(broker.url, vendor="example.org", product="shop", instance="1", interval=1) as thread,
        contextlib.ExitStack() as stack,
    ):
        ended = threading.Event()
        queues = InventedQueues(thread.agent, 112, ["shop.orders.#"])
        worker = threading.Thread(target=work, args=(queues, ended))
        worker.start()
        stack.callback(worker.join)
        stack.callback(ended.set)
        for name, line, more, seen in SCREENS:
            if options.names and name not in options.names:
                continue
            for columns, rows in SIZES:
                text = picture(broker.url, broker.port, home, (columns, rows), (line, more), seen)
                text = re.sub(r"amqp://127\.0\.0\.1:\d+", "amqp://mq1", text)
                (folder / f"{name}-{columns}x{rows}.svg").write_text(text, encoding="utf-8")
                print(f"{name}-{columns}x{rows}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
