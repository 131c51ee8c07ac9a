"""Requests and responses with the messaging API, one at a time, beside proton's two clients.

The responder is the same for all: a process with the synchronous API. It counts for the round trip of each client. On a
qpidd, where the environment names C++ programs as well, all are also measured with a responder of qpid::messaging,
beside a client of it.

    python bench/messaging_requests.py [--rounds N] [--json FILE]

A qpidd that the environment names joins: see processes.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

from figures import Figure, parser, report
from messaging_clients import QMF, SIZES, Aio, Blocking, Cpp, Reactor, brokers, queue, rates
from processes import Program, cpp_requests, has_cpp_requests, program

from qmf import messaging

COUNT = 1000


def main() -> None:
    """Measure and report."""
    options = parser("Round trips with the messaging API.")
    options.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds per figure (default: %(default)s)")
    options.add_argument("--respond", nargs=2, metavar=("URL", "QUEUE"), help="be the responder")
    arguments = options.parse_args()
    if arguments.respond:
        respond(*arguments.respond)
        return
    figures: list[Figure] = []
    with brokers() as urls:
        for broker, url in urls.items():
            with queue(url) as node, program(sys.executable, __file__, "--respond", url, node) as responder:
                figures += _measure(f"request-response, {broker}", url, node, arguments.rounds, responder)
            if broker == "qpidd" and has_cpp_requests():
                with queue(url) as node, program(*cpp_requests("respond", node)) as responder:
                    figures += _measure("request-response with C++, qpidd", url, node, arguments.rounds, responder)
    report(figures, arguments.json)


def _measure(title: str, url: str, node: str, rounds: int, responder: Program) -> list[Figure]:
    responder.line()
    figures: list[Figure] = []
    for label, (size, _) in SIZES.items():
        clients: list[QMF | Aio | Blocking | Reactor] = [QMF(url), Aio(url), Blocking(url), Reactor(url)]
        runs: dict[str, Callable[[], float]] = {
            client.name: partial(client.request, node, size, COUNT) for client in clients
        }
        if "C++" in title:
            runs[Cpp.name] = partial(_ask_with_cpp, node, size)
        figures += rates(f"{title}, {label}", COUNT, rounds, runs, round_trips=True)
    return figures


def _ask_with_cpp(node: str, size: int) -> float:
    with program(*cpp_requests("ask", node, size, COUNT)) as client:
        return float(client.line())


def respond(url: str, node: str) -> None:
    """Answer requests until the input ends."""
    connection = messaging.Connection.establish(url)
    session = connection.session()
    receiver = session.receiver(node, capacity=10)
    senders: dict[str, messaging.Sender] = {}
    print("ready", flush=True)
    while True:
        try:
            request = receiver.fetch()
        except messaging.MessagingError:  # the queue is deleted
            return
        reply_to = str(request.reply_to)
        if (sender := senders.get(reply_to)) is None:
            sender = senders[reply_to] = session.sender(reply_to)
        sender.send(messaging.Message(request.content, correlation_id=request.correlation_id), sync=False)
        session.acknowledge(request, sync=False)


if __name__ == "__main__":
    main()
