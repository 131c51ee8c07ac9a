"""For benchmarks: the embedded broker in a process of its own. Prints its URL, and ends with its input."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from qmf.broker import EmbeddedBroker

if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--management", type=float, help="seconds between publications of its agent")
    options.add_argument("--data-dir", type=Path, help="folder of its store")
    chosen = options.parse_args()
    with EmbeddedBroker(management=chosen.management, data_dir=chosen.data_dir) as broker:
        print(broker.url, flush=True)
        sys.stdin.read()
