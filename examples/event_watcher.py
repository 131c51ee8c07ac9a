"""Print the events of brokers and agents until Ctrl-C: a script of the published console API with callbacks.

Connections are managed: if a broker cannot be reached yet, or restarts, the session retries.

    python examples/event_watcher.py
    python examples/event_watcher.py broker1 broker2 --package org.apache.qpid.broker --severity warn
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence

from qmf.console import Broker, Console, Event, Session
from qmf.errors import QmfError

SEVERITIES = ("emerg", "alert", "crit", "error", "warn", "notice", "inform", "debug")


class Watcher(Console):
    """Prints events, and on standard error the state of connections."""

    def __init__(self, severity: int, count: int) -> None:
        self.done = threading.Event()
        self._severity = severity
        self._left = count

    def event(self, _: Broker, event: Event) -> None:
        if event.severity <= self._severity and not self.done.is_set():
            print(event, flush=True)
            self._left -= 1
            if self._left == 0:
                self.done.set()

    def brokerConnected(self, broker: Broker) -> None:
        print(f"connected to {broker.getUrl()}", file=sys.stderr)

    def brokerConnectionFailed(self, broker: Broker) -> None:
        print(f"no connection, trying again: {broker.getError()}", file=sys.stderr)

    def brokerDisconnected(self, broker: Broker) -> None:
        if not self.done.is_set():
            print(f"lost {broker.getUrl()}: {broker.getError()}", file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    options = arguments().parse_args(argv)
    watcher = Watcher(SEVERITIES.index(options.severity), options.count)
    session = Session(watcher, rcvObjects=False, manageConnections=True, userBindings=options.package is not None)
    try:
        if options.package is not None:
            session.bindEvent(options.package, options.event)
        for url in options.url or ["amqp://127.0.0.1:5672"]:
            session.addBroker(url)
        watcher.done.wait()
    except KeyboardInterrupt:
        watcher.done.set()
    except QmfError as error:
        print(f"event_watcher: {error}", file=sys.stderr)
        return 1
    finally:
        # Closing takes a moment; a second Ctrl-C must not interrupt it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        session.close()
    return 0


def arguments() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="event_watcher", description="Print events until Ctrl-C.")
    parser.add_argument("url", nargs="*", help="brokers (amqp://127.0.0.1:5672)")
    parser.add_argument("--package", help="only events of this package")
    parser.add_argument("--event", help="only this event of the package")
    parser.add_argument("--severity", choices=SEVERITIES, default="debug", help="the least severe (%(default)s)")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="end after so many events")
    return parser


if __name__ == "__main__":
    sys.exit(main())
