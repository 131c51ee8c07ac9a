"""Long names in the browser: cut, with all of them at hand; the first column stays while a wide table scrolls."""

from __future__ import annotations

import html
import re

import pytest
from web.pages.browsing import SHELVES, Scene, needs_browser, window

from qmf.web.pages.screens.open_page import cut_html
from qmf.web.pages.views.data_rows import Cell, Part

needs_browser()

from playwright.sync_api import Browser, expect  # noqa: E402

LONG = "x" * 121


@pytest.mark.parametrize(("length", "shown"), [(119, 119), (120, 120), (121, 121), (4000, 121)])
def test_a_text_is_cut_after_120_characters(length: int, shown: int) -> None:
    found = Cell("x" * length).to_browser()
    assert len(str(found["t"])) == shown
    assert ("f" in found) is (length > 120)


def test_what_is_cut_is_there_in_full() -> None:
    assert Cell(LONG).to_browser() == {"t": f"{'x' * 120}…", "f": LONG}
    assert Cell(LONG, whole=True).to_browser() == {"t": LONG}
    assert Part("n", LONG).to_browser() == {"n": "n", "t": f"{'x' * 120}…", "f": LONG, "h": ""}
    assert cut_html("a<b") == "a&lt;b"
    name = '"' + LONG
    assert cut_html(name).count(html.escape(name)) == 2


@pytest.mark.slow
def test_a_long_name_is_shown_cut_and_copied_in_full(browser: Browser, scene: Scene) -> None:
    name = "orders-of-the-shop-in-the-market-square-" * 4 + "end"
    found = scene.agent.it.add("Shelf", name=name, storeRef=scene.agent.it.agent.objects[0])
    with window(browser, scene, size=(700, 700), permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(
            f"{scene.url}{SHELVES}?filter=market&columns=storeRef,limit,built,label,items,sold,weight,waiting,open,agent,updated"
        )
        link = page.locator("tbody td:first-child a")
        expect(link).to_have_text(f"{name[:120]}…")
        expect(link).to_have_attribute("title", name)
        page.get_by_role("button", name="Copy").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == name
        at = page.locator("tbody td:first-child").bounding_box()
        region = page.get_by_role("region")
        region.evaluate("box => { box.scrollLeft = 10000; }")
        expect(region).to_have_class(re.compile("scrolled"))
        assert page.locator("tbody td:first-child").bounding_box() == at
        link.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"Shelf {name[:120]}…")
        expect(page.locator("h1 span")).to_have_attribute("title", name)
    scene.agent.it.remove(found)
