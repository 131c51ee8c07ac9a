"""Requests and responses with the messaging API, one at a time, beside proton's two clients.

The responder is the same for all: a process with the synchronous API. It counts for the round trip of each client.

    python bench/messaging_requests.py [--rounds N] [--json FILE]

A qpidd that the environment names joins: see processes.py.
"""

from __future__ import annotations

import sys
from functools import partial

from figures import Figure, parser, report
from messaging_clients import QMF, SIZES, Aio, Blocking, Reactor, brokers, queue, rates
from processes import program

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
                responder.line()
                for label, (size, _) in SIZES.items():
                    clients: list[QMF | Aio | Blocking | Reactor] = [QMF(url), Aio(url), Blocking(url), Reactor(url)]
                    runs = {client.name: partial(client.request, node, size, COUNT) for client in clients}
                    figures += rates(f"request-response, {label}, {broker}", COUNT, arguments.rounds, runs)
    report(figures, arguments.json)


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
