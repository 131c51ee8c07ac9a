"""A program: starts servers of `qmf-web` without its pages, as processes of their own, and kills them.

Loading the libraries takes most of the time of a start. So they are loaded once here, and each server is a fork. The
lines of its input are:

=================  =====================================================================================
``start URL``      serves the broker at this URL; prints ``Process PID``, then ``Open`` and the address
``kill PID``       kills a server by SIGKILL; prints ``Ended PID`` when it is gone
=================  =====================================================================================

With the end of its input all servers are killed.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import sys

from qmf._event_loop import run
from qmf.connecting import BrokerTarget
from qmf.web import WebOptions, create_application
from qmf.web.server import listen, serve, url_of

#: What a server loads late.
_LATE = (
    "encodings.idna",
    "qmf.bus.client.receiver_link",
    "qmf.bus.client.sender_links",
    "uvicorn.lifespan.off",
    *(["uvloop"] if importlib.util.find_spec("uvloop") else []),
)


def load() -> None:
    """Load what servers load; what is loaded is left alone by collections of garbage, and so stays shared memory."""
    for module in _LATE:
        importlib.import_module(module)
    create_application(WebOptions(target=BrokerTarget.of("localhost")), pages=False)
    gc.collect()
    gc.freeze()


def serve_here(broker: str) -> None:
    """Serve, and print the address."""
    listening = listen("127.0.0.1", 0)
    options = WebOptions(target=BrokerTarget.of(broker), port=listening.getsockname()[1])
    app = create_application(options, pages=False)
    ready = f"Open {url_of(listening, tls=False)}"
    run(serve(app, listening, options, tls=None, on_ready=lambda: print(ready, flush=True)))


def start(broker: str) -> int:
    """Fork a server; its process."""
    if process := os.fork():
        return process
    sys.stdin.close()
    print(f"Process {os.getpid()}", flush=True)
    serve_here(broker)
    sys.exit()


def kill(process: int) -> None:
    """Kill a server, and wait until it is gone."""
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def main() -> None:
    """Do what the lines of standard input say."""
    running: list[int] = []
    for line in sys.stdin:
        command, argument = line.split()
        if command == "start":
            running.append(start(argument))
        else:
            running.remove(int(argument))
            kill(int(argument))
            print(f"Ended {argument}", flush=True)
    for process in running:
        kill(process)


if __name__ == "__main__":
    main()
