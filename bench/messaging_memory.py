"""Memory over a million messages of 100 bytes: a sender and a receiver of the messaging API, in one process.

The figure is the growth of the resident memory from the first tenth on, of the client and of the broker.

    python bench/messaging_memory.py [--messages N] [--json FILE]
"""

from __future__ import annotations

import psutil
from figures import Figure, note, parser, report
from messaging_clients import BATCH, queue
from processes import own_broker

from qmf import messaging

SIZE = 100
#: Messages on the way.
WINDOW = 1000
#: MB by which the memory may grow.
GROWTH = 5


def main() -> None:
    """Measure and report."""
    options = parser("Memory over many messages.")
    options.add_argument("--messages", type=int, default=1_000_000, metavar="N", help="default: %(default)s")
    arguments = options.parse_args()
    own = psutil.Process()
    client: list[float] = []
    served: list[float] = []
    with own_broker() as (url, broker), queue(url) as node, messaging.Connection.establish(url) as connection:
        session = connection.session()
        sender, receiver = session.sender(node, capacity=WINDOW), session.receiver(node, capacity=WINDOW)
        tenth = arguments.messages // 10
        for number in range(arguments.messages + WINDOW):
            if number < arguments.messages:
                sender.send(messaging.Message(bytes(SIZE), correlation_id=number), sync=False)
            if number >= WINDOW:
                if receiver.fetch(60).correlation_id != number - WINDOW:
                    raise RuntimeError("messages are lost, or not in order")
                if number % BATCH == 0:
                    session.acknowledge(sync=False)
            if number % tenth == tenth - 1:
                client.append(own.memory_info().rss / 1e6)
                served.append(broker.memory())
                note(f"{number + 1:,} messages: {client[-1]:.1f} MB, broker {served[-1]:.1f} MB")
        session.acknowledge()
    title = f"memory, {arguments.messages:,} messages: growth of"
    report(
        [
            Figure(f"{title} the client", max(client) - client[0], "MB", limit=GROWTH),
            Figure(f"{title} the broker", max(served) - served[0], "MB", limit=GROWTH),
        ],
        arguments.json,
    )


if __name__ == "__main__":
    main()
