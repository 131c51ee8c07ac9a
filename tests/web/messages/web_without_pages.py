"""A program: the server of `qmf-web` without its pages, on the broker at the URL of its argument, until SIGTERM."""

from __future__ import annotations

import sys

from qmf._event_loop import run
from qmf.connecting import BrokerTarget
from qmf.web import WebOptions, create_application
from qmf.web.server import listen, serve, url_of


def main(broker: str) -> None:
    """Serve, and print the address."""
    listening = listen("127.0.0.1", 0)
    options = WebOptions(target=BrokerTarget.of(broker), port=listening.getsockname()[1])
    app = create_application(options, pages=False)
    ready = f"Open {url_of(listening, tls=False)}"
    run(serve(app, listening, options, tls=None, on_ready=lambda: print(ready, flush=True)))


if __name__ == "__main__":
    main(sys.argv[1])
