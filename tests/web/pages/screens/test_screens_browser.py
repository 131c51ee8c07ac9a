"""The web console in a browser: what people see, choose and call, with the mouse and with keys."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Literal

import attrs
import pytest
from support.browser import web_program
from support.shelf import store_agent
from support.waiting import wait_until
from web.pages.browsing import SHELF, SHELVES, TOO_MANY, Scene, needs_browser, shelf, window
from web.pages.world import announce

from qmf.broker import EmbeddedBroker
from qmf.bus import AmqpBus
from qmf.testing import InThread

needs_browser()

from playwright.sync_api import Browser, expect  # noqa: E402

pytestmark = pytest.mark.slow


def test_every_view_opens_and_loads_nothing_from_elsewhere(browser: Browser, scene: Scene) -> None:
    with window(browser, scene) as page:
        page.goto(scene.url)
        expect(page.locator(".qmf-tiles")).to_contain_text("Agents")
        # Events of other tests may name the agent, too.
        expect(page.get_by_role("table").filter(has_text="Heartbeat")).to_contain_text("alive")
        for name, heading in (
            ("Classes", "Classes"),
            ("Events", "Events"),
            ("Plots", "Plots"),
            ("Report", "Report"),
            ("Graph", "Graph"),
        ):
            page.get_by_role("link", name=name, exact=True).first.click()
            expect(page.get_by_role("heading", level=1)).to_have_text(heading)
        expect(page.locator("canvas")).to_be_visible()
        expect(page.get_by_role("table")).to_contain_text("storeRef")
        page.get_by_role("link", name="Agents", exact=True).click()
        expect(page.get_by_role("table")).to_contain_text("example.org:store:1")


def test_a_table_is_ordered_filtered_and_paged_at_the_server_and_its_address_says_so(
    browser: Browser, scene: Scene
) -> None:
    with window(browser, scene) as page:
        page.goto(f"{scene.url}{SHELVES}")
        expect(page.get_by_text("120 objects", exact=True)).to_be_visible()
        expect(page.locator("tbody tr")).to_have_count(50)
        page.get_by_role("button", name="Sort by sold", exact=True).click()
        expect(page).to_have_url(re.compile(r"sort=-sold"))
        expect(page.locator("tbody tr").first).to_contain_text("a/119")
        page.keyboard.press("]")
        expect(page).to_have_url(re.compile(r"page=2"))
        expect(page.get_by_text("page 2 of 3")).to_be_visible()
        expect(page.locator("tbody tr").first).to_contain_text("a/69")
        page.locator("body").press("/")
        page.keyboard.type("sold>=1150")
        expect(page.get_by_text("5 objects of 120")).to_be_visible()
        expect(page).to_have_url(re.compile(r"filter=sold%3E%3D1150.*sort=-sold"))
        address = page.url
        page.goto("about:blank")
        page.goto(address)
        expect(page.get_by_text("5 objects of 120")).to_be_visible()
        expect(page.locator("tbody tr td:first-child")).to_have_text([f"a/{number}" for number in range(119, 114, -1)])
        page.get_by_role("textbox", name="Filter").fill("nothing>1")
        expect(page.get_by_text("no value of Shelf 'nothing'")).to_be_visible()


def test_an_object_changes_before_the_eyes(browser: Browser, scene: Scene) -> None:
    with window(browser, scene) as page:
        page.goto(f"{scene.url}{SHELF}")
        expect(page.get_by_role("heading", level=1)).to_have_text("Shelf a/1")
        statistics = page.get_by_role("table").nth(1)
        expect(statistics.locator("tr", has_text="sold")).to_contain_text("10 item")
        for step in range(1, 4):
            shelf(scene, 1).sold.set(10 + step)
            expect(statistics.locator("tr", has_text="sold")).to_contain_text(f"{10 + step} item")
        expect(statistics.locator("tr", has_text="sold").locator("polyline")).to_have_attribute(
            "points", re.compile(" ")
        )
        page.get_by_role("link", name="store main").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Store main")
        expect(page.get_by_role("table").filter(has_text="storeRef")).to_contain_text("a/17")
        expect(page.get_by_text("20 more objects not shown")).to_be_visible()


def test_methods_are_called_from_a_form_after_a_confirmation(browser: Browser, scene: Scene) -> None:
    with window(browser, scene) as page:
        page.goto(f"{scene.url}{SHELF}")
        page.get_by_role("button", name="add", exact=True).click()
        count = page.get_by_role("textbox", name="count")
        count.fill("0")
        expect(page.get_by_text("must be at least 1")).to_be_visible()
        count.fill("41")
        page.get_by_role("button", name="Call…").click()
        expect(page.get_by_text("Call add of shelf a/1 at example.org:store:1?")).to_be_visible()
        page.get_by_role("button", name="Yes, call").click()
        expect(page.locator(".qmf-dialog")).to_contain_text("Done.")
        expect(page.locator(".qmf-dialog dl")).to_contain_text("42 item")
        page.get_by_role("button", name="Close").click()
        page.get_by_role("button", name="Set properties").click()
        page.get_by_role("textbox", name="limit").fill("77")
        page.get_by_role("button", name="Set…").click()
        page.get_by_role("button", name="Yes, set").click()
        expect(page.locator(".qmf-dialog")).to_contain_text("Done.")
        page.get_by_role("button", name="Close").click()
        expect(page.get_by_role("table").first.locator("tr", has_text="limit")).to_contain_text("77 item")
    log = scene.log.read_text(encoding="utf-8")
    assert re.search(r'"action": "call", .*"arguments": {"count": 41.*"outputs": {"total": 42', log)
    assert re.search(r'"action": "set", .*"properties": {"limit": 77', log)


def test_a_call_that_fails_keeps_the_form_with_what_was_typed(browser: Browser, scene: Scene) -> None:
    with window(browser, scene) as page:
        page.goto(f"{scene.url}{SHELF}")
        page.get_by_role("button", name="add", exact=True).click()
        page.get_by_role("textbox", name="count").fill(str(TOO_MANY))
        page.get_by_role("textbox", name="at").fill("2026-05-01T12:00")
        page.get_by_role("button", name="Call…").click()
        page.get_by_role("button", name="Yes, call").click()
        expect(page.locator(".qmf-dialog").get_by_role("alert")).to_contain_text("the shelf is full")
        expect(page.get_by_role("textbox", name="count")).to_have_value(str(TOO_MANY))
        expect(page.get_by_role("textbox", name="at")).to_have_value("2026-05-01T12:00")
        page.get_by_role("textbox", name="count").fill("4")
        page.get_by_role("button", name="Call…").click()
        page.get_by_role("button", name="Yes, call").click()
        expect(page.locator(".qmf-dialog dl")).to_contain_text("5 item")


def test_a_dangerous_method_looks_so_and_asks_with_no_as_the_easy_answer(browser: Browser, scene: Scene) -> None:
    with window(browser, scene) as page:
        page.goto(f"{scene.url}{SHELF}")
        button = page.get_by_role("button", name="clear", exact=False)
        expect(button).to_have_class(re.compile("text-negative"))
        expect(page.get_by_role("button", name="add", exact=True)).not_to_have_class(re.compile("text-negative"))
        button.click()
        expect(page.get_by_role("textbox", name="filter")).to_have_value("{}")
        page.get_by_role("textbox", name="filter").fill("")
        page.get_by_role("button", name="Call…").click()
        expect(page.locator(".qmf-dialog")).to_contain_text("cannot be had back")
        expect(page.get_by_role("button", name="Yes, call")).to_have_class(re.compile("bg-negative"))
        expect(page.get_by_role("button", name="Back")).to_be_focused()
        page.get_by_role("button", name="Yes, call").click()
        expect(page.locator(".qmf-dialog dl")).to_contain_text("done{}")


def test_an_agent_has_a_page(browser: Browser, scene: Scene) -> None:
    with window(browser, scene) as page:
        page.goto(f"{scene.url}{SHELF}")
        # Events of other tests name it, too.
        page.locator(".qmf-note").get_by_role("link", name="example.org:store:1").first.dispatch_event("click")
        expect(page.get_by_role("heading", level=1)).to_have_text("Agent example.org:store:1")
        facts = page.get_by_role("table").nth(0)
        expect(facts.locator("tr", has_text="State")).to_contain_text("alive")
        scene.agent.it.raise_event("broken", shelf="a/7")
        expect(page.get_by_role("table").nth(2)).to_contain_text("a/7")
        page.get_by_role("link", name="Shelf").click()
        expect(page.get_by_text("120 objects", exact=True)).to_be_visible()
        page.goto(f"{scene.url}/agent/other:agent:1")
        expect(page.get_by_text("There is no such agent.")).to_be_visible()


def test_many_agents_are_shown_page_by_page(browser: Browser, scene: Scene) -> None:
    scene.agent.run(announce(AmqpBus(scene.broker.url), 120))
    with window(browser, scene) as page:
        page.goto(f"{scene.url}/agents?filter=many")
        expect(page.get_by_text("120 agents", exact=True)).to_be_visible()
        expect(page.locator("tbody tr")).to_have_count(50)
        expect(page.get_by_text("page 1 of 3")).to_be_visible()
        page.keyboard.press("]")
        expect(page).to_have_url(re.compile(r"filter=many&page=2"))
        expect(page.locator("tbody tr").first).to_contain_text("many:agent:00050")
        page.reload()
        expect(page.locator("tbody tr").first).to_contain_text("many:agent:00050")
        page.get_by_role("textbox", name="Filter").fill("agent:00111")
        expect(page.get_by_text("1 agent", exact=True)).to_be_visible()
        expect(page.locator("tbody tr")).to_have_count(1)
        page.goto(f"{scene.url}/classes?sort=-objects")
        expect(page.get_by_text("4 classes", exact=True)).to_be_visible()
        expect(page.get_by_text("page 1 of 1")).to_be_visible()
        expect(page.locator("tbody tr").first).to_contain_text("Shelf")


def test_events_stream_and_can_be_paused(browser: Browser, scene: Scene) -> None:
    with window(browser, scene) as page:
        page.goto(f"{scene.url}/events?severity=notice")
        expect(page.get_by_text("events received")).to_be_visible()
        scene.agent.it.raise_event("sale", shelf="a/1", count=5)
        expect(page.locator("tbody tr").first).to_contain_text("a/1")
        page.get_by_role("button", name="Pause").click()
        scene.agent.it.raise_event("broken", shelf="a/2")
        expect(page.get_by_text("1 came since")).to_be_visible()
        expect(page.locator("tbody")).not_to_contain_text("a/2")
        page.get_by_role("button", name="Go on").click()
        expect(page.locator("tbody tr").first).to_contain_text("broken")
        page.get_by_role("textbox", name="Text").fill("count=5")
        expect(page).to_have_url(re.compile(r"text=count%3D5"))
        expect(page.locator("tbody tr")).to_have_count(1)


def test_values_of_several_objects_are_plotted_together(browser: Browser, scene: Scene) -> None:
    value = "example.org:store:1/org.example.store:shelf:a~2F{}/items"
    with window(browser, scene) as page:
        page.goto(f"{scene.url}/plots?v={value.format(1)}&v={value.format(2)}")
        expect(page.locator("canvas")).to_have_count(1)
        expect(page.locator("tbody tr")).to_have_count(2)
        expect(page.locator("tbody tr").first).to_contain_text("item")
        page.get_by_role("button", name="Remove").first.click()
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page).to_have_url(re.compile(r"/plots\?v=[^&]*$"))


def test_keys_lead_everywhere(browser: Browser, scene: Scene) -> None:
    with window(browser, scene) as page:
        page.goto(f"{scene.url}/classes")
        expect(page.get_by_role("link", name="Shelf")).to_be_visible()
        page.keyboard.press("g")
        page.keyboard.press("e")
        expect(page.get_by_role("heading", level=1)).to_have_text("Events")
        page.keyboard.press("?")
        expect(page.get_by_role("heading", name="Keys")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("heading", name="Keys")).not_to_be_visible()
        page.goto(f"{scene.url}{SHELVES}")
        expect(page.locator("tbody tr").nth(2)).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        expect(page.get_by_role("link", name="a/1", exact=True)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Shelf a/1")


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_a_phone_needs_no_scrolling_to_the_side(
    browser: Browser, scene: Scene, scheme: Literal["dark", "light"]
) -> None:
    with window(browser, scene, size=(390, 844), colours=scheme) as page:
        agent = "/agent/example.org:store:1"
        for path in ("/", "/agents", agent, "/classes", SHELVES, SHELF, "/events", "/plots", "/graph"):
            page.goto(scene.url + path)
            expect(page.locator(".qmf-main")).to_be_visible()
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, path
        dark = page.evaluate("document.documentElement.classList.contains('qmf-dark')")
        assert dark is (scheme == "dark")
        page.get_by_role("button", name="Colours: auto").click()
        page.get_by_role("button", name="Colours: dark").click()
        expect(page.get_by_role("button", name="Colours: light")).to_be_visible()
        page.reload()
        expect(page.get_by_role("button", name="Colours: light")).to_be_visible()
        assert page.evaluate("document.documentElement.classList.contains('qmf-dark')") is False


def test_who_may_only_read_logs_in_and_cannot_call(browser: Browser, scene: Scene, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("ada:secret\n")
    users.chmod(0o600)
    options = ("--users", str(users), "--grant", "ada=read")
    with (
        web_program(scene.broker.url, tmp_path / "errors", *options) as url,
        window(browser, attrs.evolve(scene, url=url)) as page,
    ):
        page.goto(f"{url}{SHELF}")
        page.get_by_label("User").fill("ada")
        page.get_by_label("Password").fill("secret")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Shelf a/1")
        expect(page.get_by_role("button", name="add", exact=True)).to_be_disabled()
        expect(page.get_by_role("button", name="Set properties")).to_be_disabled()
        page.get_by_role("button", name="ada: log out").click()
        expect(page.get_by_role("button", name="Log in")).to_be_visible()


def test_the_loss_of_the_broker_is_shown_on_all_pages_and_ends(browser: Browser, tmp_path: Path) -> None:
    broker = EmbeddedBroker()
    broker.start()
    port = broker.port
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: broker.close())
        url_of_broker = broker.url
        agent = stack.enter_context(InThread(lambda: store_agent(url_of_broker, interval=0.5)))
        url = stack.enter_context(web_program(broker.url, tmp_path / "errors"))
        scene = Scene(broker, agent, url, tmp_path / "errors")
        pages = {}
        for path in ("/", "/agents", f"{SHELVES}?columns=sold,sold.rate,updated", SHELF):
            pages[path] = stack.enter_context(window(browser, scene))
            pages[path].goto(f"{url}{path}")
        overview, agents, shelves, one = pages.values()
        expect(shelves.locator("tbody tr")).to_have_count(3)
        expect(one.locator(".qmf-note").first).to_contain_text("published to this console")
        expect(agents.locator("tbody tr")).to_contain_text("alive")
        broker.close()
        for page in pages.values():
            expect(page.get_by_role("alert")).to_contain_text("was lost")
            expect(page.locator(".qmf-state")).to_have_text(re.compile("not connected: amqp"))
            expect(page.locator(".qmf-state")).to_have_class(re.compile("lost"))
        expect(shelves.locator("tbody tr")).to_have_count(3)
        expect(shelves.locator("tbody tr td:last-child")).to_have_text([re.compile("stale")] * 3)
        expect(shelves.locator("tbody tr td:nth-child(3)")).to_have_text(["–"] * 3)
        expect(one.locator(".qmf-note").first).to_contain_text(re.compile(r"stale, as of \S+"))
        expect(one.locator(".qmf-note").first).not_to_contain_text("published")
        expect(agents.locator("tbody tr")).to_contain_text(re.compile("not known.*stale"))
        expect(overview.get_by_role("table").nth(0)).to_contain_text("not connected")
        expect(overview.locator(".qmf-tiles")).to_contain_text("1 not known")
        expect(overview.locator(".alive")).to_have_count(0)
        broker = EmbeddedBroker(port=port)
        broker.start()
        for page in pages.values():
            expect(page.locator(".qmf-banner")).not_to_be_visible()
            expect(page.locator(".qmf-state")).to_have_text(re.compile("^amqp"))
        wait_until(lambda: agent.it.agent.connected)
        shelf(scene, 0).sold.set(4242)
        expect(shelves.locator("tbody tr").first).to_contain_text("4,242")
        expect(shelves.locator("tbody")).not_to_contain_text("stale")
        expect(one.locator(".qmf-note").first).to_contain_text("published to this console")
        expect(agents.locator("tbody tr")).to_contain_text("alive")
