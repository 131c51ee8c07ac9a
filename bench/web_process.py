"""For benchmarks: `qmf-web` in a process of its own.

    python bench/web_process.py URL [--pages]

Prints the address of the server, and ends with its input.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

from qmf._event_loop import run
from qmf.connecting import BrokerTarget
from qmf.web import WebLimits, WebOptions, create_application
from qmf.web.options import MetricsOptions
from qmf.web.server import WebServer, listen


async def serve(url: str, *, pages: bool) -> None:
    """Serve until the input ends."""
    listening = listen("127.0.0.1", 0)
    options = WebOptions(
        target=BrokerTarget.of(url),
        port=listening.getsockname()[1],
        timeout=60,
        limits=WebLimits(rate=0, streams=10_000, page=100_000),
        metrics=MetricsOptions(interval=10),
    )
    async with WebServer(create_application(options, pages=pages), listening) as server:
        print(server.url.rstrip("/"), flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        run(serve(sys.argv[1], pages="--pages" in sys.argv))
