"""Numbered messages that go through a sender and a receiver while something interrupts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import attrs
from support.waiting import wait_until

from qmf.messaging import Connection, Message

RECONNECT = {"reconnect": True, "reconnect_interval_min": 0.01, "reconnect_interval_max": 0.2}

#: Messages that may wait in the queue, which has an end.
BACKLOG = 5000
#: Messages between two acknowledgements of the receiver.
BATCH = 20


@attrs.define
class Flow:
    """Sender and receiver, each with a connection and a thread of its own.

    Attributes:
        url: of the broker.
        address: of both.
        count: number of messages.
        interruptions: number of calls of `interrupt`, spread over the messages.
        interrupt: called by the sender's thread between two messages.
        ready: the next call of `interrupt` waits until it is true; messages flow meanwhile.
        capacity: of the sender.
        backlog: messages that the sender may be ahead of the receiver, and as many again.
        timeout: seconds for each step.
        seen: how often each message was received.
    """

    url: str
    address: str
    count: int
    interruptions: int
    interrupt: Callable[[], None]
    ready: Callable[[], bool]
    capacity: int = 300
    backlog: int = BACKLOG
    timeout: float = 120
    seen: Counter[int] = attrs.field(factory=Counter)

    def run(self) -> None:
        """Send and receive everything."""
        with ThreadPoolExecutor(2) as pool:
            for task in [pool.submit(self._send), pool.submit(self._receive)]:
                task.result()

    def _send(self) -> None:
        made = 0
        with Connection.establish(self.url, timeout=self.timeout, **RECONNECT) as connection:
            sender = connection.session().sender(self.address, capacity=self.capacity)
            for number in range(self.count):
                due = number * (self.interruptions + 1) >= (made + 1) * self.count
                if due and made < self.interruptions and self.ready():
                    made += 1
                    self.interrupt()
                if number % min(1000, self.backlog) == 0:
                    wait_until(partial(self._has_come, number - self.backlog), timeout=self.timeout)
                sender.send(Message({"n": number}, durable=True), sync=False, timeout=self.timeout)
            sender.sync(timeout=self.timeout)

    def _has_come(self, number: int) -> bool:
        return len(self.seen) >= number

    def _receive(self) -> None:
        with Connection.establish(self.url, timeout=self.timeout, **RECONNECT) as connection:
            session = connection.session()
            receiver = session.receiver(self.address, capacity=200)
            waiting = 0
            while len(self.seen) < self.count:
                self.seen[receiver.fetch(timeout=self.timeout).content["n"]] += 1
                waiting += 1
                if waiting >= BATCH or len(self.seen) == self.count:
                    session.acknowledge(sync=False)
                    waiting = 0
            receiver.close(timeout=self.timeout)
