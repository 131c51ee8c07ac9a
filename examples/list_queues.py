"""List the queues of brokers that speak QMF: a script of the published console API.

python examples/list_queues.py
python examples/list_queues.py amqp://broker.example.org:5672 --match 'orders.*' --sort depth
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from collections.abc import Sequence

from qmf.console import Object, Session
from qmf.errors import QmfError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    options = arguments().parse_args(argv)
    try:
        with Session() as session:
            for url in options.url or ["amqp://127.0.0.1:5672"]:
                session.addBroker(url, timeout=options.timeout)
            queues = session.getObjects(_class="queue", _package="org.apache.qpid.broker", _timeout=options.timeout)
        show([queue for queue in queues if fnmatch.fnmatch(queue.name, options.match)], options.sort)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output has ended
        return 0
    except QmfError as error:
        print(f"list_queues: {error}", file=sys.stderr)
        return 1
    return 0


def show(queues: Sequence[Object], sort: str) -> None:
    """Print a table."""
    ordered = sorted(queues, key=lambda queue: queue.name if sort == "name" else (-queue.msgDepth, queue.name))
    width = max([len(queue.name) for queue in ordered], default=0)
    print(f"{'Queue':{width}}  {'Messages':>10}  {'Bytes':>12}  {'Consumers':>9}  Kind")
    for queue in ordered:
        kind = ["durable"] * bool(queue.durable) + ["auto-delete"] * bool(queue.autoDelete)
        kind += ["exclusive"] * bool(queue.exclusive)
        numbers = f"{queue.msgDepth:>10}  {queue.byteDepth:>12}  {queue.consumerCount:>9}"
        print(f"{queue.name:{width}}  {numbers}  {' '.join(kind)}".rstrip())


def arguments() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="list_queues", description="List the queues of brokers that speak QMF.")
    parser.add_argument("url", nargs="*", help="brokers (amqp://127.0.0.1:5672)")
    parser.add_argument("--match", default="*", metavar="GLOB", help="only queues whose name matches")
    parser.add_argument("--sort", choices=["name", "depth"], default="name", help="order (%(default)s)")
    parser.add_argument("--timeout", type=float, default=10.0, metavar="SECONDS", help="timeout (%(default)g)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
