"""For benchmarks: the embedded broker in a process of its own.

Prints its URL; for each line of its input, how many clients have connected so far and how many of them failed to open a
connection. Ends with its input.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from qmf._garbage import collect_seldom
from qmf.broker import EmbeddedBroker
from qmf.broker.access.control import FileAccessControl

if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--management", type=float, help="seconds between publications of its agent")
    options.add_argument("--data-dir", type=Path, help="folder of its store")
    options.add_argument("--port", type=int, default=0, help="where it listens; 0 for any free port")
    options.add_argument("--queues", type=int, default=0, help="number of its queues")
    options.add_argument("--acl-file", type=Path, help="rules of access control")
    options.add_argument("--open-timeout", type=float, default=10.0, help="seconds for each step of a handshake")
    chosen = options.parse_args()
    names = [f"queue-{number}" for number in range(chosen.queues)]
    with EmbeddedBroker(
        port=chosen.port,
        open_timeout=chosen.open_timeout,
        management=chosen.management,
        data_dir=chosen.data_dir,
        queues=names,
        access=None if chosen.acl_file is None else FileAccessControl(chosen.acl_file),
    ) as broker:
        collect_seldom()  # as qmf-broker does
        print(broker.url, flush=True)
        for _ in sys.stdin:
            print(broker.counters.connections, broker.counters.failures, flush=True)
