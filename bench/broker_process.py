"""For benchmarks: the embedded broker in a process of its own. Prints its URL, and ends with its input."""

from __future__ import annotations

import sys

from qmf.broker import EmbeddedBroker

if __name__ == "__main__":
    with EmbeddedBroker() as broker:
        print(broker.url, flush=True)
        sys.stdin.read()
