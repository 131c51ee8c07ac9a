"""Measure the latency of a method call: the echo of a qpidd, of a host agent, or of any class that has this method.

python examples/echo_latency.py
python examples/echo_latency.py amqp://broker.example.org:5672 --count 10000 --at-once 50 --size 1000
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Sequence

from qmf.console.aio import Client, RemoteObject
from qmf.errors import NotFoundError, QmfError

#: Classes with a method echo(sequence, body), as package and name.
KNOWN = (("org.apache.qpid.broker", "broker"), ("qmf.host", "agent"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    options = arguments().parse_args(argv)
    classes = [options.cls] if options.cls else list(KNOWN)
    try:
        asyncio.run(measure(options.url, classes, options.count, options.at_once, "x" * options.size))
    except KeyboardInterrupt:
        return 130
    except QmfError as error:
        print(f"echo_latency: {error}", file=sys.stderr)
        return 1
    return 0


async def measure(url: str, classes: Sequence[tuple[str, str]], count: int, at_once: int, body: str) -> None:
    """Print a line for each object with a method echo."""
    async with Client(url, events=False, data=False) as client:
        targets = [
            obj
            for package, name in classes
            for obj in await client.objects(name, package=package)
            if "echo" in obj.methods
        ]
        if not targets:
            raise NotFoundError("object with a method echo", ", ".join(":".join(item) for item in classes))
        for target in targets:
            print(await line(target, count, at_once, body), flush=True)


async def line(target: RemoteObject, count: int, at_once: int, body: str) -> str:
    """Call one object, and return the result as a line."""
    numbers = iter(range(count))
    times: list[float] = []

    async def caller() -> None:
        for number in numbers:
            begin = time.perf_counter()
            result = await target.call("echo", number, body)
            times.append(time.perf_counter() - begin)
            if (result["sequence"], result["body"]) != (number, body):
                raise NotFoundError("echo of", str(number))

    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(caller())
    rate = count / (time.perf_counter() - begin)
    times.sort()
    worst = times[min(int(len(times) * 0.99), len(times) - 1)]
    return (
        f"{target.agent}: {count} calls, {rate:.0f} per second; "
        f"least {times[0] * 1000:.2f} ms, median {statistics.median(times) * 1000:.2f} ms, "
        f"99 % within {worst * 1000:.2f} ms, most {times[-1] * 1000:.2f} ms"
    )


def arguments() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="echo_latency", description="Measure how long a method call takes.")
    parser.add_argument("url", nargs="?", default="amqp://127.0.0.1:5672", help="broker (%(default)s)")
    parser.add_argument("--count", type=positive, default=1000, metavar="N", help="calls to each (%(default)s)")
    parser.add_argument("--at-once", type=positive, default=1, metavar="N", help="concurrent calls (%(default)s)")
    parser.add_argument("--size", type=positive, default=10, metavar="N", help="characters sent (%(default)s)")
    parser.add_argument("--class", dest="cls", type=class_name, metavar="PACKAGE:CLASS", help="another class with echo")
    return parser


def positive(text: str) -> int:
    """Convert an option to a number."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def class_name(text: str) -> tuple[str, str]:
    """Convert an option to a class name."""
    package, colon, name = text.partition(":")
    if not (package and colon and name):
        raise argparse.ArgumentTypeError(f"{text!r} is not PACKAGE:CLASS")
    return package, name


if __name__ == "__main__":
    sys.exit(main())
