"""What the table of a class costs the server of the web console: first page, order, filter, and how long others wait.

Broker and agent are processes of their own; the table is made in this one, as the console's pages make it. Figures are
processor time, except for the longest time that the event loop stood still.

    python bench/web_table.py [--objects N] [--json FILE]
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import attrs
from figures import Figure, parser, report
from processes import own_agent, own_broker

from qmf.connecting import BrokerTarget
from qmf.console.aio import Client
from qmf.web.pages.live.shared_state import SharedState
from qmf.web.pages.views.object_table import ClassTable, TablePage
from qmf.web.pages.views.page_urls import ObjectsUrl

PACKAGE, NAME = "org.apache.qpid.broker", "queue"
#: Seconds of processor time that a page may take with 100,000 objects.
LIMIT = 3.0
#: Seconds that the objects may take to come.
WAIT_LIMIT = 600.0

_NAMES = ObjectsUrl(PACKAGE, NAME)
_COUNTER = attrs.evolve(_NAMES, sort="msgTotalEnqueues", descending=True)


def steps(objects: int) -> dict[str, ObjectsUrl]:
    """What a visitor does, with the address that it leads to."""
    return {
        "first page, by name": _NAMES,
        "page 3": attrs.evolve(_NAMES, page=3),
        "order by a counter": _COUNTER,
        "last page of it": attrs.evolve(_COUNTER, page=10**6),
        "filter by a number": attrs.evolve(_COUNTER, filter=f"msgTotalEnqueues>={objects * 0.99:.0f}"),
        "filter by a word": attrs.evolve(_COUNTER, filter="queue-77"),
        "filter by an expression": attrs.evolve(_NAMES, filter="name~7$"),
    }


class Pauses:
    """The longest time that the event loop did nothing for others."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        """Look every 2 ms, in processor time, so that other programs do not count."""
        while True:
            before = time.process_time()
            await asyncio.sleep(0.002)
            self.longest = max(self.longest, time.process_time() - before)


@contextlib.asynccontextmanager
async def opened(url: str, objects: int) -> AsyncIterator[ClassTable]:
    """The table, once all of its objects are there."""
    async with Client(BrokerTarget.of(url).make_bus(), data=False, timeout=WAIT_LIMIT) as client:
        site = SharedState(client, 10.0)
        site.start()
        try:
            await site.catalogue.refresh()
            followed, release = site.follow_class(PACKAGE, NAME)
            async with asyncio.timeout(WAIT_LIMIT):
                while len(followed) < objects:  # noqa: ASYNC110 - there is no event for it
                    await asyncio.sleep(0.1)
            yield ClassTable(site, followed, PACKAGE, NAME)
            release()
        finally:
            await site.close()


async def measure(url: str, objects: int) -> list[Figure]:
    """The figures of all steps."""
    before = time.process_time()
    async with opened(url, objects) as table:
        limit = LIMIT * max(objects, 20_000) / 100_000  # some of the work is the same for few
        found = [Figure(f"{objects:,} objects come", time.process_time() - before, "s")]
        for name, address in steps(objects).items():
            pauses = Pauses()
            watching = asyncio.create_task(pauses.watch())
            before = time.process_time()
            page: TablePage = await table.page(address)
            used = time.process_time() - before
            watching.cancel()
            if not page.rows:
                raise SystemExit(f"{name}: no rows")
            found.append(Figure(f"  {name}: {page.total:,} objects", used, "s", limit=limit))
            found.append(Figure("    the loop stands still at most", pauses.longest, "s"))
        return found


def main() -> None:
    """Measure, and report."""
    arguments = parser(__doc__ or "")
    arguments.add_argument("--objects", type=int, default=100_000)
    options = arguments.parse_args()
    with own_broker() as (url, _), own_agent(url, options.objects):
        report(asyncio.run(measure(url, options.objects)), options.json)


if __name__ == "__main__":
    main()
