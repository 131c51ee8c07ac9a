"""The page `examples/websocket` in a browser: rhea, mqtt.js and stompjs over WebSocket against the embedded broker."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.browser import WAIT_LIMIT, chromium
from support.foreign import required

from qmf.broker import EmbeddedBroker
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.stomp.options import StompOptions

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[3] / "examples" / "websocket"
PROTOCOLS = ("amqp", "mqtt", "stomp")


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves the page, and its libraries from where npm has put them."""

    def __init__(self, *args: Any, modules: str, **options: Any) -> None:
        self._modules = modules
        super().__init__(*args, directory=str(PAGE), **options)

    def translate_path(self, path: str) -> str:
        """See there."""
        inside = path.removeprefix("/node_modules/")
        return super().translate_path(path) if inside == path else str(Path(self._modules) / inside)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """Where the page is served."""
    handler = functools.partial(Files, modules=required("websocket_page"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def chrome(origin: str) -> Iterator[Browser]:
    """After `origin`, which may skip the tests."""
    if importlib.util.find_spec("playwright") is None or (program := chromium()) is None:
        pytest.skip("playwright and Chromium are needed: scripts/browser.sh installs one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield made
        made.close()


@contextmanager
def opened(chrome: Browser, origin: str, url: str, user: str = "", password: str = "") -> Iterator[Page]:
    """The page, which has been asked to connect."""
    page = chrome.new_page()
    page.set_default_timeout(WAIT_LIMIT)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(origin)
    for name, value in (("url", url), ("user", user), ("password", password)):
        page.fill(f"input[name={name}]", value)
    page.click("text=Connect")
    yield page
    page.close()
    assert errors == []


def broker(**options: Any) -> EmbeddedBroker:
    return EmbeddedBroker(ws_port=0, mqtt=MqttOptions(port=0), stomp=StompOptions(port=0), **options)


def test_what_one_protocol_sends_all_receive(chrome: Browser, origin: str) -> None:
    with broker(ws_origins=[origin]) as made, opened(chrome, origin, made.ws_url or "") as page:
        for name in PROTOCOLS:
            page.locator(f"#{name} p", has_text="connected").wait_for()
            page.locator(f"#{name} button:enabled").wait_for()
        expected = [f"message {count} by {name}" for count in (1, 2) for name in PROTOCOLS]
        for name in (*PROTOCOLS, *PROTOCOLS):
            page.click(f"#{name} button")
        for name in PROTOCOLS:
            page.locator(f"#{name} li").nth(5).wait_for()
            assert sorted(page.locator(f"#{name} li").all_inner_texts()) == sorted(expected)


def test_logins_are_checked(chrome: Browser, origin: str) -> None:
    with broker(ws_origins=[origin], users={"ann": "secret"}) as made:
        with opened(chrome, origin, made.ws_url or "", "ann", "secret") as page:
            for name in PROTOCOLS:
                page.locator(f"#{name} button:enabled").wait_for()
        with opened(chrome, origin, made.ws_url or "", "ann", "wrong") as page:
            said = {}
            for name in PROTOCOLS:
                page.locator(f"#{name} p", has_not_text="connecting").wait_for()
                said[name] = page.locator(f"#{name} p").inner_text()
            assert said["stomp"] == "the login is refused"
            assert said["mqtt"] == "Connection refused: Bad User Name or Password"
            assert "uthenticat" in said["amqp"]


def test_a_page_of_another_origin_is_not_let_in(chrome: Browser, origin: str) -> None:
    with broker(ws_origins=["http://elsewhere.example"]) as made, opened(chrome, origin, made.ws_url or "") as page:
        page.locator("#stomp p", has_text="no connection").wait_for()
        for name in PROTOCOLS:
            assert page.locator(f"#{name} button").is_disabled()
