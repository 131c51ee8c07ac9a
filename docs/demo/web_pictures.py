"""Makes the pictures of the web console in docs/web.md: a real browser, wide and narrow, light and dark.

An embedded broker, the shop of examples/shop, an agent with invented queues and one with invented alerts run in this
process, `qmf-web` in another. Needs playwright, a Chromium and Pillow,
which matplotlib brings along.

    python docs/demo/web_pictures.py --out docs/demo
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import attrs
from invented_queues import InventedQueues
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from examples.shop.app import customers, furnish
from qmf.agent import Agent
from qmf.broker import EmbeddedBroker
from qmf.console.aio import ObjectId
from qmf.models.pipeline.agent import Alert, AlertRaised, Correlator, Rule
from qmf.web.pages.views.page_urls import GraphUrl, PlotsUrl, PlottedValue, object_url

#: Width, height and colours.
WIDE, WIDE_DARK = (1280, 860, "light"), (1280, 860, "dark")
PHONE, PHONE_DARK = (390, 844, "light"), (390, 844, "dark")
#: Seconds that values are recorded before the pictures are made.
RUNNING = 45.0
PATIENCE = 60_000.0


@attrs.frozen
class Picture:
    """A picture: its name, the page, size and colours, and what is done on the page before it is made."""

    name: str
    path: str
    size: tuple[int, int, str]
    prepare: Callable[[Page], None] | None = None


def _agent(instance: str) -> str:
    return f"example.org:{instance}:1"


ORDERS = ObjectId(
    "org.apache.qpid.broker:queue:org.apache.qpid.broker:vhost:org.apache.qpid.broker:broker:mq1,/,orders", _agent("mq")
)
_TILL = object_url(ObjectId("org.example.shop:till:1", _agent("shop")))
_QUEUE = object_url(ORDERS)
_QUEUES = "/objects/org.apache.qpid.broker/queue"


def _call(page: Page) -> None:
    page.get_by_role("button", name="refund").click()
    page.get_by_role("textbox", name="receipt").fill("17")
    page.get_by_role("textbox", name="amount").fill("0")
    page.get_by_text("must be at least 1").wait_for()


def _confirm(page: Page) -> None:
    page.get_by_role("button", name="refund").click()
    page.get_by_role("textbox", name="receipt").fill("17")
    page.get_by_role("textbox", name="amount").fill("250")
    page.get_by_role("button", name="Call…").click()
    page.get_by_role("button", name="Yes, call").wait_for()


def _assign(page: Page) -> None:
    page.get_by_role("button", name="Set properties").click()
    page.get_by_role("textbox", name="drawerLimit").wait_for()


def _pause(page: Page) -> None:
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Go on").wait_for()
    page.wait_for_timeout(6000)


def plots_path() -> str:
    """The page with values of several objects."""
    tills = [ObjectId(f"org.example.shop:till:{number}", _agent("shop")) for number in (1, 2, 3)]
    values = (
        *(PlottedValue(till, "takings", rate=True) for till in tills),
        *(PlottedValue(till, "waiting") for till in tills[:2]),
        PlottedValue(ORDERS, "msgTotalEnqueues", rate=True),
    )
    return str(PlotsUrl(values, "5m"))


PICTURES = (
    Picture("overview", "/", WIDE),
    Picture("overview-phone", "/", PHONE),
    Picture("overview-dark", "/", WIDE_DARK),
    Picture("agents", "/agents", WIDE),
    Picture("classes", "/classes", WIDE),
    Picture("objects", f"{_QUEUES}?sort=-in.rate", WIDE),
    Picture("objects-filter", f"{_QUEUES}?filter=customer+msgTotalEnqueues%3E100k&sort=-msgTotalEnqueues", WIDE_DARK),
    Picture("objects-phone", f"{_QUEUES}?sort=-ready", PHONE_DARK),
    Picture("object", _TILL, WIDE),
    Picture("object-dark", _TILL, WIDE_DARK),
    Picture("object-phone", _TILL, PHONE),
    Picture("object-queue", _QUEUE, WIDE),
    Picture("method", _TILL, WIDE, _call),
    Picture("method-confirm", _TILL, PHONE, _confirm),
    Picture("properties", _TILL, WIDE_DARK, _assign),
    Picture("events", "/events?severity=inform", WIDE, _pause),
    Picture("events-phone", "/events", PHONE_DARK),
    Picture("plots", plots_path(), WIDE),
    Picture("plots-phone", plots_path(), PHONE_DARK),
    Picture("graph", "/graph", WIDE),
    Picture("graph-object", str(GraphUrl(ORDERS, 2)), WIDE_DARK),
)


def beat(queues: InventedQueues, number: int) -> None:
    """Let some messages come, and now and then a client."""
    queues.let_messages_come(40, busy=4, least=300)
    if number % 7 == 0:
        queues.subscribe()
    elif number % 11 == 0:
        queues.declare(number)


def add_alerts(agent: Agent) -> None:
    """Add two open alerts, as the pipeline raises them."""
    correlator = Correlator(name="alerts", lake="/var/lib/qmf/lake", rules=4, late=60_000_000_000)
    agent.add(correlator)
    now = time.time_ns()
    for number, (name, severity, subject, message) in enumerate(
        (
            ("queue-fills", 2, "queue orders", "23,412 messages wait, more than 20,000 for 5 minutes"),
            ("no-consumer", 4, "queue audit", "nobody has consumed for 30 minutes"),
        )
    ):
        rule = Rule(name=name, correlatorRef=correlator, kind="threshold", hash=f"{number:08x}", severity=severity)
        agent.add(rule)
        began = now - (number + 3) * 90_000_000_000
        agent.add(
            Alert(
                alertId=f"{name}-1",
                ruleRef=rule,
                severity=severity,
                subject=subject,
                message=message,
                began=began,
                raisedAt=began + 60_000_000_000,
                evidence={},
            )
        )
        agent.raise_event(
            AlertRaised(
                alertId=f"{name}-1",
                rule=name,
                subject=subject,
                message=message,
                began=began,
                at=began + 60_000_000_000,
                evidence={},
                ruleHash=f"{number:08x}",
                again=False,
            ),
            severity=severity,
        )


@contextlib.asynccontextmanager
async def agents(url: str) -> AsyncIterator[InventedQueues]:
    """The agents, until the end of the block."""
    random.seed(3)
    shop = Agent(url, vendor="example.org", product="shop", instance="1", interval=1)
    tills = furnish(shop, "High Street", 6)
    mq = Agent(url, vendor="example.org", product="mq", instance="1", interval=1)
    queues = InventedQueues(mq, 1993, ("shop.orders.#", "shop.invoices.#", "shop.returns"))
    alerts = Agent(url, vendor="example.org", product="alerts", instance="1", interval=1)
    async with shop, mq, alerts:
        for till, cashier in zip(tills, ("Ada", "Boris", "Carla", "Dan"), strict=False):
            till.open(cashier)
        add_alerts(alerts)
        tasks = [asyncio.create_task(customers(till, 1.5)) for till in tills]
        try:
            yield queues
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _run_agents(url: str, ended: threading.Event, ready: threading.Event) -> None:
    async with agents(url) as queues:
        ready.set()
        number = 0
        while not ended.is_set():
            number += 1
            beat(queues, number)
            await asyncio.sleep(0.5)


@contextlib.contextmanager
def everything() -> Iterator[str]:
    """Broker, agents and `qmf-web`; gives the address of the pages."""
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker())
        ended, ready = threading.Event(), threading.Event()
        thread = threading.Thread(target=lambda: asyncio.run(_run_agents(broker.url, ended, ready)))
        thread.start()
        stack.callback(thread.join)
        stack.callback(ended.set)
        ready.wait()
        command = [sys.executable, "-c", "import sys; from qmf._entry import web; sys.exit(web())"]
        web = stack.enter_context(
            subprocess.Popen([*command, "-b", broker.url, "--port", "0"], stdout=subprocess.PIPE, text=True)
        )
        stack.callback(web.terminate)
        assert web.stdout is not None
        found = re.search(r"http://\S+", web.stdout.readline())
        if found is None:
            raise SystemExit("qmf-web did not start")
        yield found[0].rstrip("/")


def main(argv: Sequence[str] | None = None) -> int:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description="Make the pictures of the web console in docs/web.md.")
    parser.add_argument("--out", metavar="FOLDER", default="docs/demo", help="where to (default: %(default)s)")
    parser.add_argument("--chromium", default="/usr/bin/chromium", help="the browser (default: %(default)s)")
    parser.add_argument("--running", type=float, default=RUNNING, help="seconds to record (default: %(default)g)")
    parser.add_argument("names", nargs="*", help="only these pictures")
    options = parser.parse_args(argv)
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    with everything() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        recording = [browser.new_page() for _ in range(3)]
        for page, path in zip(recording, (_TILL, _QUEUE, plots_path()), strict=True):
            page.goto(url + path)
        queues = browser.new_page()
        queues.goto(f"{url}{_QUEUES}")
        recording[0].wait_for_timeout(options.running * 1000)
        for picture in PICTURES:
            if options.names and picture.name not in options.names:
                continue
            width, height, colours = picture.size
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if colours == "dark" else "light",
                device_scale_factor=2 if width < 600 else 1,
            )
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(url + picture.path)
            page.locator(".qmf-table tbody tr").first.wait_for()
            page.wait_for_timeout(4000)
            if picture.prepare is not None:
                picture.prepare(page)
            page.wait_for_timeout(400)
            # A third of the size, and no difference to be seen.
            with Image.open(io.BytesIO(page.screenshot())) as taken:
                taken.convert("RGB").quantize(200).save(folder / f"web-{picture.name}.png", optimize=True)
            print(f"web-{picture.name}.png")
            context.close()
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
