"""How quick are the pages of the web console, with 10,000 objects and 20 browsers, and does its memory stay flat?

- The first page: a browser opens the overview of an embedded broker with a host agent, until its table is there. Left
  out where there is no Chromium.
- Updates: 20 simulated browsers show the same table of 10,000 queues, ordered by a counter, while 200 of them change in
  a second; from a change at an agent until the last of them got it. Agents publish every 2 s, so that is the limit for
  what the console adds.
- Memory: visits of browsers that come and go, and the recorded values of a day: what the process grows by.

    python bench/web_pages.py [--objects N] [--browsers N] [--rounds N] [--json FILE]
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import shutil
import statistics
import sys
import threading
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
from figures import Figure, parser, report
from processes import Program, own_agent, own_broker, program
from simulated_browser import SimulatedBrowser

from qmf.agent import Agent
from qmf.console.aio import ObjectId
from qmf.models.broker.agent import Broker, Queue, Vhost
from qmf.web.pages.live.series import SeriesStore

INTERVAL = 2.0
ROUNDS = 10
WAIT_LIMIT = 60.0
#: Browsers of a round of visits.
VISITORS = 50
_TABLE = "/objects/org.apache.qpid.broker/queue?sort=-msgTotalEnqueues&columns=msgTotalEnqueues%2CconsumerCount"
_HERE = Path(__file__).resolve().parent


def _rows_of(elements: dict[str, Any]) -> Iterator[list[Any]]:
    """The rows of the tables among changed elements."""
    for element in elements.values():
        props = element.get("props", {}) if isinstance(element, dict) else {}
        if "rows" in props:
            yield props["rows"]


@contextlib.contextmanager
def own_pages(url: str) -> Iterator[tuple[str, Program]]:
    """The web console, in a process of its own."""
    with program(sys.executable, str(_HERE / "web_process.py"), url, "--pages") as web:
        yield web.line(), web


@contextlib.asynccontextmanager
async def browsers(url: str, count: int, on_rows: Callable[[int, list[Any]], None]) -> AsyncIterator[None]:
    """So many browsers that show the table."""

    def show_rows(number: int, elements: dict[str, Any]) -> None:
        for rows in _rows_of(elements):
            on_rows(number, rows)

    async with httpx.AsyncClient(timeout=WAIT_LIMIT) as http:
        opened: list[SimulatedBrowser] = []
        for number in range(count):
            browser = SimulatedBrowser(url, _TABLE, functools.partial(show_rows, number))
            await browser.load(http)
            await browser.connect()
            opened.append(browser)
        try:
            yield
        finally:
            for browser in opened:
                await browser.close()


async def updates(url: str, broker: str, count: int) -> list[float]:
    """Seconds from changes at an agent until the last browser got them."""
    seen: dict[int, str] = {}
    arrived = asyncio.Event()

    def on_rows(number: int, rows: list[Any]) -> None:
        if rows:
            seen[number] = rows[0]["cells"][2]["t"]
            arrived.set()

    found: list[float] = []
    with Agent.run_in_thread(broker, vendor="bench", product="marker", instance="1", interval=INTERVAL) as thread:
        own = Broker(name="marker")
        thread.agent.add(own)
        vhost = Vhost(name="/", brokerRef=own)
        thread.agent.add(vhost)
        queue = Queue(name="marker", vhostRef=vhost, durable=False, autoDelete=False, exclusive=False, arguments={})
        queue.msgTotalEnqueues.inc(10**12)
        thread.agent.add(queue)
        await asyncio.sleep(3 * INTERVAL)
        async with browsers(url, count, on_rows):
            await asyncio.sleep(5 * INTERVAL)
            for step in range(ROUNDS):
                text = f"{5001 + step:,}"
                queue.consumerCount.set(5001 + step)
                start = time.monotonic()
                async with asyncio.timeout(WAIT_LIMIT):
                    while sum(value == text for value in seen.values()) < count:
                        arrived.clear()
                        await arrived.wait()
                found.append(time.monotonic() - start)
                await asyncio.sleep(0.37 * INTERVAL)
    return found


async def visits(url: str, count: int) -> None:
    """So many browsers that are there at once, and go."""
    async with browsers(url, count, lambda *_: None):
        await asyncio.sleep(0)


def grown(url: str, web: Program, rounds: int, rest: float) -> float:
    """MB that the console grows by in so many rounds of visits, after two rounds in which its caches fill.

    The pages of a round are all kept at the same time, until the rest after it: so the heap needs as much in each,
    however quick the machine is at the moment.
    """
    before = 0.0
    for number in range(2 + rounds):
        if number == 2:
            before = web.memory()
        asyncio.run(visits(url, VISITORS))
        time.sleep(rest)
    return web.memory() - before


def first_page(chromium: str) -> float:
    """Seconds from the click until the overview's tables are there; the median of ten browsers without a cache."""
    from playwright.sync_api import sync_playwright

    command = "import sys; from qmf._entry import web; sys.argv = ['qmf-web', '--port', '0']; sys.exit(web())"
    found = []
    with program(sys.executable, "-c", command) as web, sync_playwright() as playwright:
        address = re.search(r"http://\S+", web.line())
        assert address is not None
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(11):
            context = browser.new_context()
            page = context.new_page()
            start = time.monotonic()
            page.goto(address[0], wait_until="commit")
            page.get_by_text("qmf:host:").first.wait_for()
            found.append(time.monotonic() - start)
            context.close()
        browser.close()
    return statistics.median(found[1:])


def day_of_values(series: int) -> float:
    """MB that the values of a day take at most in all, for so many series, beyond those of its first two hours."""
    now = 0.0
    store = SeriesStore(lambda: now)
    store.watch([(ObjectId(f"queue-{number}", "agent"), "depth") for number in range(series)])
    recorded = [store.series_of(ObjectId(f"queue-{number}", "agent"))["depth"] for number in range(series)]
    tracemalloc.start()
    early = 0
    for step in range(round(86_400 / INTERVAL)):
        for one in recorded:
            one.add(step * INTERVAL, step % 1000)
        if step == 7200 / INTERVAL:
            early = tracemalloc.get_traced_memory()[0]
    late = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (late - early) / 1e6


def change(agent: Program, ended: threading.Event) -> None:
    """Change 200 queues a second, until `ended` is set."""
    while not ended.wait(1.0):
        agent.ask("change 200")


def main() -> int:
    """Measure, and report."""
    options = parser(__doc__ or "")
    options.add_argument("--objects", type=int, default=10_000, help="queues (default: %(default)d)")
    options.add_argument("--browsers", type=int, default=20, help="browsers (default: %(default)d)")
    options.add_argument("--rounds", type=int, default=6, help=f"of {VISITORS} visits (default: %(default)d)")
    options.add_argument("--rest", type=float, default=40, help="seconds after a round; pages are forgotten after 30")
    chosen = options.parse_args()
    figures: list[Figure] = []
    chromium = shutil.which("chromium")
    if chromium is not None:
        figures.append(Figure("first page of the embedded default", first_page(chromium), "s", limit=1.0))
    ended = threading.Event()
    with own_broker() as (broker, _), own_agent(broker, chosen.objects) as agent, own_pages(broker) as (url, web):
        changing = threading.Thread(target=change, args=(agent, ended))
        changing.start()
        try:
            before, start = web.cpu(), time.monotonic()
            found = asyncio.run(updates(url, broker, chosen.browsers))
            used = 100 * (web.cpu() - before) / (time.monotonic() - start)
        finally:
            ended.set()
            changing.join()
        name = f"change seen by all of {chosen.browsers} browsers, {chosen.objects:,} objects"
        figures.append(Figure(f"{name}: median", statistics.median(found), "s", limit=2 * INTERVAL))
        figures.append(Figure(f"{name}: worst of {ROUNDS}", max(found), "s"))
        figures.append(Figure("processor of the console meanwhile", used, "% of a core"))
        more = grown(url, web, chosen.rounds, chosen.rest)
        figures.append(Figure(f"memory after {chosen.rounds * VISITORS} more visits", more, "MB", limit=10))
    figures.append(Figure("memory of a day's values, beyond two hours", day_of_values(20), "MB", limit=1))
    report(figures, chosen.json)
    return 0 if all(item.reached is not False for item in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
