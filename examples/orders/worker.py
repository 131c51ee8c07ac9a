"""Handles the orders of a queue: four at a time, with retries and dead letters, until SIGTERM or Ctrl-C.

Run it with a broker: ``qmf-broker &``, then ``python examples/orders/worker.py``; send it orders with
``spout --content '{"item": "tea", "number": 3}' orders``.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys

import attrs

from qmf.messaging import Connection, Consumer, ContentType, Failure, Message, RejectMessage, Retry


@attrs.frozen
class Order:
    """An order of the shop."""

    item: str
    number: int


ORDER = ContentType(
    "application/json",
    lambda order: json.dumps(attrs.asdict(order)).encode(),
    lambda data: Order(**json.loads(data)),
    Order,
)


def handle(message: Message[Order]) -> None:
    """Print an order; one of nothing is given up at once."""
    order = message.content
    if order.number <= 0:
        raise RejectMessage(text=f"{order.number} of {order.item}")
    print_line(f"{order.number} of {order.item}")


def report(failure: Failure) -> None:
    """Print what was not handled."""
    print_line(f"failed: {failure.error}; {failure.fate.value}")


def print_line(text: str) -> None:
    """Print a line in one piece: several orders are handled at the same time, on threads."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url", nargs="?", default="amqp://127.0.0.1:5672")
    url = parser.parse_args().url
    logging.getLogger("qmf.messaging").setLevel(logging.ERROR)  # `report` prints them
    with Connection.establish(url, reconnect=True) as connection:
        consumer = Consumer(
            connection,
            "orders; {create: always, node: {type: queue, durable: True}}",
            handle,
            content=ORDER,
            concurrency=4,
            retry=Retry(limit=3, delay=1),
            dead_letters="orders.dead",
            on_failure=report,
        )
        consumer.run()
    print("ended", flush=True)


if __name__ == "__main__":
    main()
