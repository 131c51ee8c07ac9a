"""An agent with invented queues, to which messages come: what the pictures of screens and of the web console show."""

from __future__ import annotations

import random
from collections.abc import Iterable

from qmf.agent import Agent
from qmf.models.broker.agent import Binding, Broker, Exchange, Queue, QueueDeclare, Subscribe, Vhost

NAMES = ("orders", "invoices", "returns", "audit", "mail", "billing.eu-central-1.retries", "stock")


class InventedQueues:
    """The queues of a broker named mq1."""

    def __init__(self, agent: Agent, customers: int, bindings: Iterable[str]) -> None:
        """Args:

        agent: which publishes them.
        customers: queues besides those in `NAMES`, with smaller numbers.
        bindings: binding keys of the first queues.
        """
        self._agent = agent
        self._random = random.Random(7)
        broker = Broker(name="mq1")
        vhost = Vhost(name="/", brokerRef=broker)
        exchange = Exchange(name="amq.topic", vhostRef=vhost, type="topic", durable=True, autoDelete=False)
        for item in (broker, vhost, exchange):
            agent.add(item)
        names = [*NAMES, *(f"customer.{number:05}.requests" for number in range(1, customers + 1))]
        self._queues = [
            Queue(name=name, vhostRef=vhost, durable=True, autoDelete=False, exclusive=False, arguments={})
            for name in names
        ]
        for queue in self._queues:
            agent.add(queue)
            self._grow(queue, self._random.randrange(10, 200_000))
        for queue, key in zip(self._queues, bindings, strict=False):
            agent.add(Binding(exchangeRef=exchange, queueRef=queue, bindingKey=key, arguments={}, origin=""))
        agent.register(Subscribe, QueueDeclare)

    def add_messages(self, *counts: int) -> None:
        """So many messages have come to the first queues, the second ones, and so on."""
        for queue, count in zip(self._queues, counts, strict=False):
            self._grow(queue, count)

    def let_messages_come(self, queues: int, busy: int, least: int) -> None:
        """Let some messages come.

        Args:
            queues: to so many, here and there.
            busy: to so many of the first ones more.
            least: to those at least so many.
        """
        for queue in self._random.sample(self._queues, queues):
            self._grow(queue, self._random.randrange(1, 900))
        self.add_messages(*(self._random.randrange(least, 1600) for _ in range(busy)))

    def subscribe(self) -> None:
        """Somebody begins to receive from a queue."""
        name = self._random.choice(NAMES)
        self._agent.raise_event(
            Subscribe(rhost="10.4.0.17:40122", user="shop", qName=name, dest=f"{name}-worker", excl=False, args={})
        )

    def declare(self, number: int) -> None:
        """Somebody creates the queue of a customer."""
        self._agent.raise_event(
            QueueDeclare(
                rhost="10.4.0.9:51820",
                user="admin",
                qName=f"customer.{number:05}.requests",
                durable=True,
                excl=False,
                autoDel=False,
                altEx="",
                args={"qpid.max_count": 5000},
                disp="created",
            )
        )

    def _grow(self, queue: Queue, count: int) -> None:
        queue.msgTotalEnqueues.inc(count)
        queue.byteTotalEnqueues.inc(count * 612)
        done = count - self._random.randrange(0, count // 8 + 1)
        queue.msgTotalDequeues.inc(done)
        queue.byteTotalDequeues.inc(done * 612)
