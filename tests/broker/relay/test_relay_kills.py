"""Relays between processes: messages outlast the broker that relays, and the one that is relayed to."""

from __future__ import annotations

import contextlib
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from broker.relay.lives import Life
from broker.relay.relaying import DOMAIN, ORDERS
from support.waiting import WAIT_LIMIT

from qmf.messaging import Connection, Message
from qmf.messaging.exceptions import Empty, MessagingError

pytestmark = pytest.mark.slow

#: How often a broker is killed in `make soak`.
KILLS = int(os.environ.get("QMF_SOAK_KILLS", "50"))
#: Messages between two kills.
BATCH = 50


def send(life: Life, numbers: range) -> None:
    """Send durable messages, each until it is accepted."""
    with Connection.establish(life.url, reconnect=True, reconnect_interval_max=0.2) as connection:
        sender = connection.session().sender(ORDERS)
        for number in numbers:
            while True:
                try:
                    sender.send(Message(id=str(number), content=number, durable=True), timeout=WAIT_LIMIT)
                    break
                except MessagingError:
                    continue


def receive(life: Life, wanted: int) -> Counter[int]:
    """Take messages until so many different ones have come."""
    seen: Counter[int] = Counter()
    with Connection.establish(life.url, reconnect=True, reconnect_interval_max=0.2) as connection:
        session = connection.session()
        receiver = session.receiver("orders")
        with contextlib.suppress(Empty):  # what is behind the last one came twice
            while True:
                message = receiver.fetch(timeout=WAIT_LIMIT if len(seen) < wanted else 1)
                assert message.id == str(message.content)
                seen[message.content] += 1
                session.acknowledge(message)
    return seen


def test_messages_outlast_both_brokers(tmp_path: Path) -> None:
    with Life(tmp_path / "there") as there:
        there.create("queue", "orders")
        url = there.url
        there.kill()
        with Life(tmp_path / "here", "--relay", "yes") as here:
            here.create("domain", "office", url=url)
            here.create("relay", DOMAIN, domain="office")
            send(here, range(20))
            here.kill()
            here.start()  # the relay, its queue and the messages are there again
            send(here, range(20, 40))
            there.start()
            assert receive(there, 40) == Counter(range(40))


def test_the_other_broker_takes_the_messages_itself(tmp_path: Path) -> None:
    with Life(tmp_path / "there") as there, Life(tmp_path / "here", "--relay", "yes") as here:
        pull(here, there)
        send(here, range(20))
        assert receive(there, 20) == Counter(range(20))


def push(here: Life, there: Life) -> None:
    """The broker that relays connects to the other one."""
    there.create("queue", "orders")
    here.create("domain", "office", url=there.url)
    here.create("relay", DOMAIN, domain="office")


def pull(here: Life, there: Life) -> None:
    """The other broker connects to the one that relays, and takes its messages to the nodes of their addresses."""
    there.create("queue", "orders")
    here.create("relay", DOMAIN)
    there.create("domain", "branch", url=here.url)
    there.create("incoming", "from-branch", domain="branch", source=f"relay.{DOMAIN}", by_address=True)


@pytest.mark.soak
@pytest.mark.parametrize("connect", [push, pull], ids=["forwarded", "pulled"])
def test_nothing_is_lost_or_doubled_while_either_broker_is_killed(
    connect: Callable[[Life, Life], None], tmp_path: Path
) -> None:
    dice = random.Random(28)
    with Life(tmp_path / "there") as there, Life(tmp_path / "here", "--relay", "yes") as here:
        connect(here, there)
        for turn in range(KILLS):
            victim = dice.choice((here, there))
            send(here, range(turn * BATCH, (turn + 1) * BATCH))
            victim.kill()
            victim.start()
        seen = receive(there, KILLS * BATCH)
    print(f"{KILLS} kills: {len(seen):,} messages, {seen.total() - len(seen):,} of them twice")
    assert seen == Counter(range(KILLS * BATCH))
