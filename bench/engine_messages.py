"""What a message costs the AMQP engine, with its compiled functions and without, in processor time.

Two engines without sockets: one sends and reads the outcomes, the other reads the messages and accepts them.

    python bench/engine_messages.py [--rounds N] [--json FILE]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from unittest.mock import patch

from figures import Figure, parser, report

from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import Delivery, EngineEvent, LinkRequested
from qmf.bus.engine.native import Native, native
from qmf.bus.engine.values import ConnectionSettings, Terminus

#: Messages of a round, which one read of a socket may bring.
BATCH = 100
SIZE = 100
#: Properties without fields, and a body of binary data.
MESSAGE = b"\x00\x53\x73\xc0\x01\x00\x00\x53\x75\xa0" + bytes([SIZE]) + b"x" * SIZE
REPEATS = 3


def events(engine: Engine) -> Iterator[EngineEvent]:
    """What happened."""
    while (event := engine.next_event()) is not None:
        yield event


def written(engine: Engine) -> bytes:
    """All that an engine has to write."""
    return b"".join(iter(engine.output, b""))


def costs(rounds: int, functions: Callable[[], Native | None]) -> tuple[float, float]:
    """Microseconds of processor time for a message: to send it and learn its outcome; to read and accept it."""
    with patch("qmf.bus.engine.engine.native", functions):
        sender = Engine(ConnectionSettings("sender", hostname="host"))
        reader = Engine(ConnectionSettings("reader", server=True))
    link = sender.links.attach("link", is_sender=True, terminus=Terminus("queue"))
    theirs = None
    while theirs is None:
        reader.feed(written(sender))
        for event in events(reader):
            if isinstance(event, LinkRequested):
                theirs = event.link
                reader.links.accept(theirs, source=theirs.source, target=theirs.target)
        sender.feed(written(reader))
        list(events(sender))
    sending = reading = 0.0
    for _ in range(rounds):
        reader.links.add_credit(theirs, BATCH)
        sender.feed(written(reader))
        list(events(sender))
        start = time.process_time()
        for _ in range(BATCH):
            sender.deliveries.send(link, MESSAGE)
        data = written(sender)
        sent = time.process_time()
        reader.feed(data)
        for event in events(reader):
            if isinstance(event, Delivery) and event.delivery_tag is not None:
                reader.decisions.settle(theirs, event.delivery_tag)
        data = written(reader)
        read = time.process_time()
        sender.feed(data)
        outcomes = len(list(events(sender)))
        end = time.process_time()
        if outcomes < BATCH:
            raise RuntimeError(f"{outcomes} outcomes for {BATCH} messages")
        sending += sent - start + end - read
        reading += read - sent
    return sending / rounds / BATCH * 1e6, reading / rounds / BATCH * 1e6


def main() -> None:
    """Measure and report."""
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=300, help=f"rounds of {BATCH} messages (%(default)s)")
    arguments = options.parse_args()
    if native() is None:
        sys.exit("the engine's compiled functions are not installed (scripts/c_extensions.py)")
    compiled = [costs(arguments.rounds, native) for _ in range(REPEATS)]
    pure = [costs(arguments.rounds, lambda: None) for _ in range(REPEATS)]
    names = (f"send {SIZE} B, learn the outcome", f"read {SIZE} B, accept")
    report(
        [
            Figure(
                name,
                statistics.median(each[number] for each in compiled),
                "us",
                "in Python",
                statistics.median(each[number] for each in pure),
                at_most=0.75,
            )
            for number, name in enumerate(names)
        ],
        arguments.json,
    )


if __name__ == "__main__":
    main()
