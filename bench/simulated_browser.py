"""For benchmarks: a browser that loads a page of the web console and keeps its websocket open, but draws nothing."""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import Callable
from typing import Any

import httpx
import socketio


class SimulatedBrowser:
    """One browser with one page.

    Attributes:
        text: the page as it was sent.
    """

    def __init__(self, url: str, path: str, on_update: Callable[[dict[str, Any]], None]) -> None:
        """Prepare it.

        Args:
            url: of the server.
            path: of the page.
            on_update: gets the elements that the server changes, by id.
        """
        self.text = ""
        self._url = url
        self._path = path
        self._socket = socketio.AsyncClient(reconnection=False)
        self._socket.on("update", on_update)

    async def load(self, http: httpx.AsyncClient) -> None:
        """Load the page."""
        answer = await http.get(self._url + self._path)
        answer.raise_for_status()
        self.text = answer.text

    async def connect(self) -> None:
        """Open the websocket of the page."""
        found = re.search(r"'client_id': '([0-9a-f-]+)', 'next_message_id': (\d+)", self.text)
        assert found is not None
        tab, document = uuid.uuid4(), uuid.uuid4()
        query = f"client_id={found[1]}&next_message_id={found[2]}&implicit_handshake=true"
        query += f"&tab_id={tab}&document_id={document}"
        await self._socket.connect(
            f"{self._url}/?{query}", transports=["websocket"], socketio_path="/_nicegui_ws/socket.io"
        )

    async def close(self) -> None:
        """Leave."""
        await self._socket.disconnect()


async def wait_for_text(url: str, path: str, wanted: str, limit: float) -> None:
    """Open a page, and wait until it shows what a pattern finds, at once or later.

    Raises:
        TimeoutError: not within so many seconds.
    """
    shown = asyncio.Event()

    def on_update(elements: dict[str, Any]) -> None:
        if re.search(wanted, json.dumps(elements, default=str)):
            shown.set()

    browser = SimulatedBrowser(url, path, on_update)
    async with httpx.AsyncClient(timeout=limit) as http, asyncio.timeout(limit):
        await browser.load(http)
        if re.search(wanted, browser.text):
            return
        await browser.connect()
        try:
            await shown.wait()
        finally:
            await browser.close()
