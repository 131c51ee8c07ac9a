"""The web console in a browser, for tests: a broker, an agent with shelves, `qmf-web`, and windows on its pages."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs
import pytest
from support.browser import WAIT_LIMIT, chromium, web_program
from support.shelf import store_agent

from qmf.agent import MethodError
from qmf.broker import EmbeddedBroker
from qmf.testing import FakeAgent, InThread

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

#: From so many on, `add` of a shelf fails.
TOO_MANY = 1000
#: The address of a page that is not in use.
EMPTY = "about:blank"
SHELVES = "/objects/org.example.store/shelf"
SHELF = "/object/example.org:store:1/org.example.store:shelf:a~2F1"


def needs_browser() -> None:
    """Skip the tests of a module where playwright or the browser is missing."""
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("playwright is not installed", allow_module_level=True)
    if chromium() is None:
        pytest.skip("there is no Chromium: scripts/browser.sh installs one", allow_module_level=True)


@attrs.frozen
class Scene:
    """A broker, an agent on it, the address of the console's pages, and what `qmf-web` writes to its standard error."""

    broker: EmbeddedBroker
    agent: InThread[FakeAgent]
    url: str
    log: Path


@contextlib.contextmanager
def opened_scene(log: Path, shelves: int = 120) -> Iterator[Scene]:
    """A scene with so many shelves. What `qmf-web` writes to its standard error is in `log`; it has no traceback."""
    with (
        EmbeddedBroker() as broker,
        InThread(lambda: _stocked(broker.url, shelves)) as agent,
        web_program(broker.url, log) as url,
    ):
        yield Scene(broker, agent, url, log)
    said = log.read_text(encoding="utf-8")
    assert "Traceback" not in said, said


def _stocked(url: str, shelves: int) -> FakeAgent:
    fake = store_agent(url, shelves=shelves, interval=0.5)
    fake.on("Shelf", "add", _add)
    fake.on("Shelf", "clear", lambda obj, filter: {"done": filter})
    return fake


def _add(obj: object, count: int, at: int) -> dict[str, object]:
    if count >= TOO_MANY:
        raise MethodError("the shelf is full")
    return {"total": count + 1}


@contextlib.contextmanager
def opened_browser() -> Iterator[Browser]:
    """A browser with one context, in which windows are pages."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        browser.new_context()
        yield browser
        browser.close()


@contextlib.contextmanager
def window(
    browser: Browser,
    scene: Scene,
    *,
    size: tuple[int, int] = (1280, 720),
    colours: Literal["light", "dark"] = "light",
    permissions: Sequence[str] = (),
) -> Iterator[Page]:
    """A page; whatever it loads must come from the console, and nothing may fail in it.

    It is one that was used before: a new page costs the processor half a second, and has to compile all scripts anew.
    What pages store is deleted.

    Args:
        size: its width and its height, in pixels.
        colours: which ones the system of who looks at it prefers.
        permissions: what its scripts may do besides.
    """
    from playwright.sync_api import expect

    context = browser.contexts[0]
    page = next((page for page in context.pages if page.url == EMPTY), None) or context.new_page()
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.emulate_media(color_scheme=colours)
    if permissions:
        context.grant_permissions(permissions, origin=scene.url)
    page.set_default_timeout(WAIT_LIMIT)
    expect.set_options(timeout=WAIT_LIMIT)
    foreign: list[str] = []
    errors: list[str] = []
    own = (scene.url, scene.url.replace("http", "ws", 1), "data:", "blob:")
    listeners: dict[Any, Any] = {
        "request": lambda request: None if request.url.startswith(own) else foreign.append(request.url),
        "pageerror": lambda error: errors.append(str(error)),
        "console": lambda message: errors.append(message.text) if message.type == "error" else None,
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        yield page
        assert foreign == []
        assert errors == []
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        page.goto(EMPTY)
        stored = {"origin": scene.url, "storageTypes": "all"}
        context.new_cdp_session(page).send("Storage.clearDataForOrigin", stored)
        if permissions:
            context.clear_permissions()


def shelf(scene: Scene, number: int) -> Any:
    """A managed object of the agent."""
    return scene.agent.it.agent.objects[1 + number]
