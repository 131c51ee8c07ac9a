"""Both forms of the messaging API and the C++ programs in turns, over qpidd: the part of C++'s rate that ours reach.

    python bench/messaging_turns.py [--rounds N] [--rows NAME,...] [--core N] [--json FILE]

Each round is short, and all clients have theirs one after the other, so that whatever else the machine does meets all
alike; the figure is the median of the rounds' ratios. Ours keep their connection over all rounds, the programs, which
measure themselves, do not. Messages have 100 bytes. With `--core` all clients, ours and C++'s, run on that core: the
two threads of `qmf.messaging` never work at the same time, and waking one up on another core takes longer. A qpidd and
the C++ programs that the environment names are needed: see processes.py and messaging_clients.py.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping

import attrs
from figures import Figure, parser, report
from messaging_clients import Aio, Cpp, has_programs, queue
from processes import cpp_requests, has_cpp_requests, program, qpidd

from qmf import messaging
from qmf._event_loop import run
from qmf.messaging import Message, aio

SIZE = 100
#: Messages that are acknowledged together.
BATCH = 100


@attrs.frozen
class Row:
    """What is measured.

    Attributes:
        title: in words.
        count: messages of a round.
        capacity: of the sender or the receiver.
        kind: ``send``, ``wait`` (synchronous sends), ``receive`` or ``ask``.
        round_trip: each message waits for an answer.
    """

    title: str
    count: int
    capacity: int
    kind: str
    round_trip: bool = False

    def wanted(self, api: str) -> float:
        """The part of C++'s rate that is wanted."""
        return (0.9 if api == Aio.name else 0.75) if self.round_trip else 0.8


ROWS = {
    "sync": Row("send synchronously", 1000, 1000, "wait", round_trip=True),
    "receive1": Row("receive, capacity 1", 1000, 1, "receive", round_trip=True),
    "ask": Row("request and response, C++ responder", 500, 10, "ask", round_trip=True),
    "send10": Row("send asynchronously, capacity 10", 5000, 10, "send"),
    "send100": Row("send asynchronously, capacity 100", 10_000, 100, "send"),
    "send1000": Row("send asynchronously, capacity 1,000", 10_000, 1000, "send"),
    "receive10": Row("receive, capacity 10", 4000, 10, "receive"),
    "receive1000": Row("receive, capacity 1,000", 10_000, 1000, "receive"),
}


def main() -> None:
    """Measure and report."""
    options = parser("The messaging API beside the C++ programs, in turns.")
    options.add_argument("--rounds", type=int, default=11, metavar="N", help="rounds (default: %(default)s)")
    options.add_argument("--rows", default=",".join(ROWS), metavar="NAME,...", help="default: %(default)s")
    options.add_argument("--core", type=int, metavar="N", help="the core that all clients run on (default: any)")
    options.add_argument("--work", nargs=3, metavar=("API", "ROW", "NODE"), help="be one of ours")
    arguments = options.parse_args()
    url = qpidd()
    if url is None or not has_programs("qpidd") or not has_cpp_requests():
        report([], arguments.json)  # without peers there is nothing to compare
        return
    if arguments.work:
        api, name, node = arguments.work
        if api == Aio.name:
            run(_work_aio(url, ROWS[name], node))
        else:
            _work(url, ROWS[name], node)
        return
    figures: list[Figure] = []
    with queue(url) as node, program(*cpp_requests("respond", node)) as responder:
        responder.line()
        if arguments.core is not None:
            os.sched_setaffinity(0, {arguments.core})  # of those that are started from here on
        for name in arguments.rows.split(","):
            figures += _measure(name, url, node, arguments.rounds)
    report(figures, arguments.json)


def _measure(name: str, url: str, node: str, rounds: int) -> list[Figure]:
    row, ratios = ROWS[name], dict[str, list[float]]()
    workers = {api: _start(api, name, node) for api in (messaging.__name__, Aio.name)}
    for number in range(rounds + 1):
        taken = {api: next(worker) for api, worker in workers.items()}
        theirs = _run_cpp(row, url, node)
        if number:
            for api, seconds in taken.items():
                ratios.setdefault(api, []).append(theirs / seconds)
    for worker in workers.values():
        worker.close()
    return [
        Figure(f"{row.title}: {api}", statistics.median(found), "of its rate", Cpp.name, 1.0, at_least=row.wanted(api))
        for api, found in ratios.items()
    ]


def _start(api: str, name: str, node: str) -> Generator[float, None, None]:
    """A process of ours: its seconds of each round."""
    command = [sys.executable, __file__, "--work", api, name, node]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            while True:
                process.stdin.write("\n")
                process.stdin.flush()
                yield float(process.stdout.readline())
        finally:
            process.stdin.close()


def _run_cpp(row: Row, url: str, node: str) -> float:
    client = Cpp(url)
    if row.kind == "ask":
        with program(*cpp_requests("ask", node, SIZE, row.count)) as asking:
            return float(asking.line())
    if row.kind == "receive":
        with queue(url, SIZE, row.count) as filled:
            return client.receive(filled, SIZE, row.count, row.capacity)
    with queue(url) as empty:
        return client.send(empty, SIZE, row.count, sync=row.kind == "wait", capacity=row.capacity)


def _work(url: str, row: Row, node: str) -> None:
    """`qmf.messaging`: a round for each line of the input."""
    with messaging.Connection.establish(url) as connection:
        session = connection.session()
        own = session.sender("#", capacity=row.capacity if row.kind == "send" else 1000)
        sender = session.sender(node) if row.kind == "ask" else own
        source = "#" if row.kind == "ask" else own.target.name
        receiver = session.receiver(source, capacity=row.capacity) if row.kind in ("ask", "receive") else None
        body, reply_to = bytes(SIZE), None if receiver is None else str(receiver.source)

        def send(count: int) -> None:
            for _ in range(count):
                own.send(Message(body), sync=row.kind == "wait")
            session.sync()

        def receive(count: int) -> None:
            assert receiver is not None
            for number in range(1, count + 1):
                receiver.fetch(60)
                if number % BATCH == 0:
                    session.acknowledge(sync=False)

        def ask(count: int) -> None:
            assert receiver is not None
            for number in range(count):
                sender.send(Message(body, reply_to=reply_to, correlation_id=str(number)), sync=False)
                session.acknowledge(receiver.fetch(60), sync=False)

        steps: Mapping[str, Callable[[int], None]] = {"receive": receive, "ask": ask}
        for _ in sys.stdin:
            if row.kind == "receive":
                send(row.count)
            begin = time.perf_counter()
            steps.get(row.kind, send)(row.count)
            print(time.perf_counter() - begin, flush=True)


async def _work_aio(url: str, row: Row, node: str) -> None:
    """`qmf.messaging.aio`: the same."""
    async with aio.Connection(url) as connection:
        session = await connection.session()
        own = await session.sender("#", capacity=row.capacity if row.kind == "send" else 1000)
        sender = await session.sender(node) if row.kind == "ask" else own
        source = "#" if row.kind == "ask" else own.target.name
        receiver = await session.receiver(source, capacity=row.capacity) if row.kind in ("ask", "receive") else None
        body, reply_to = bytes(SIZE), None if receiver is None else str(receiver.source)

        async def send(count: int) -> None:
            for _ in range(count):
                await own.send(Message(body), sync=row.kind == "wait")
            await session.sync()

        async def receive(count: int) -> None:
            assert receiver is not None
            for number in range(1, count + 1):
                await receiver.fetch(60)
                if number % BATCH == 0:
                    await session.acknowledge(sync=False)

        async def ask(count: int) -> None:
            assert receiver is not None
            for number in range(count):
                await sender.send(Message(body, reply_to=reply_to, correlation_id=str(number)), sync=False)
                await session.acknowledge(await receiver.fetch(60), sync=False)

        steps = {"receive": receive, "ask": ask}
        while await asyncio.to_thread(sys.stdin.readline):
            if row.kind == "receive":
                await send(row.count)
            begin = time.perf_counter()
            await steps.get(row.kind, send)(row.count)
            print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main()
