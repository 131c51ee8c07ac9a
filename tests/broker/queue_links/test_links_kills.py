"""Durable links over restarts and kills: each message is moved or copied once, and none is lost."""

from __future__ import annotations

import contextlib
import os
import random
from collections import Counter
from pathlib import Path

import pytest
from broker.relay.lives import Life
from support.waiting import WAIT_LIMIT

from qmf.client import BrokerAgent
from qmf.messaging import Connection, Message
from qmf.messaging.exceptions import MessagingError

pytestmark = pytest.mark.slow

#: How often the broker is killed in `make soak`.
KILLS = int(os.environ.get("QMF_SOAK_KILLS", "50"))
#: Messages between two kills.
BATCH = 200

NODES = ("in", "copied", "moved", "rest")


def prepare(broker: Life) -> None:
    """Queues, and links that copy all, and move what is even and the rest."""
    for name in NODES:
        broker.create("queue", name)
    broker.create("queuelink", "copies", source="in", target="copied", mode="copy")
    broker.create("queuelink", "moves", source="in", target="moved", selector="even = true")
    broker.create("queuelink", "rest", source="in", target="rest", selector="even = false")


def send(broker: Life, numbers: range, *, synchronous: bool) -> None:
    """Send numbered messages; those that are not confirmed may be lost."""
    with Connection(broker.url) as connection:
        sender = connection.session().sender("in", capacity=BATCH)
        for number in numbers:
            message = Message(number, properties={"even": number % 2 == 0}, durable=True)
            sender.send(message, sync=synchronous, timeout=WAIT_LIMIT)


def contents(broker: Life, name: str, wanted: int) -> Counter[int]:
    """The messages of a queue, as soon as there are so many different ones; they stay there."""
    seen: Counter[int] = Counter()
    with Connection(broker.url) as connection:
        receiver = connection.session().receiver(f"{name}; {{mode: browse}}", capacity=1000)
        while len(seen) < wanted:
            seen[receiver.fetch(timeout=WAIT_LIMIT).content] += 1
        while receiver.available():
            seen[receiver.fetch().content] += 1
    return seen


def check(broker: Life, numbers: set[int]) -> None:
    """Each message is in the queues where it belongs, once."""
    assert contents(broker, "copied", len(numbers)) == Counter(numbers)
    even = {number for number in numbers if number % 2 == 0}
    assert contents(broker, "moved", len(even)) == Counter(even)
    assert contents(broker, "rest", len(numbers - even)) == Counter(numbers - even)


def test_links_are_there_again_and_go_on_where_they_were(tmp_path: Path) -> None:
    with Life(tmp_path / "data") as broker:
        prepare(broker)
        send(broker, range(50), synchronous=False)
        check(broker, {*range(50)})
        broker.kill()
        broker.start()
        send(broker, range(50, 100), synchronous=False)
        check(broker, {*range(100)})
        with Connection(broker.url) as connection:
            links = {item["name"]: item for item in BrokerAgent(connection).list("queuelink")}
            assert {name: item["state"] for name, item in links.items()} == dict.fromkeys(
                ("copies", "moves", "rest"), "Operational"
            )
            assert links["copies"]["passed"] == 100


@pytest.mark.soak
def test_a_kill_in_the_middle_loses_and_doubles_nothing(tmp_path: Path) -> None:
    dice = random.Random(28)
    confirmed: set[int] = set()
    with Life(tmp_path / "data") as broker:
        prepare(broker)
        for turn in range(KILLS):
            numbers = range(turn * BATCH, (turn + 1) * BATCH)
            with Connection(broker.url) as connection:
                sender = connection.session().sender("in", capacity=BATCH)
                for number in numbers:
                    sender.send(Message(number, properties={"even": number % 2 == 0}, durable=True), sync=False)
                # So many are confirmed when the broker is killed; the others may be there or not.
                wanted = dice.randrange(BATCH)
                while sender.unsettled() > BATCH - wanted:
                    with contextlib.suppress(MessagingError):
                        connection.session().sync(timeout=0.001)
                confirmed.update(numbers[: BATCH - sender.unsettled()])
                broker.kill()
            broker.start()
        send(broker, range(KILLS * BATCH, KILLS * BATCH + 1), synchronous=True)
        everything = settle(broker, KILLS * BATCH)
    print(f"{KILLS} kills: {len(everything):,} of {KILLS * BATCH + 1:,} messages were taken, each once")
    assert confirmed <= everything


def settle(broker: Life, last: int) -> set[int]:
    """Wait until all links are done; the messages that there are."""
    moved = contents(broker, "moved", 1)
    copied: Counter[int] = Counter()
    while last not in copied:
        copied = contents(broker, "copied", max(len(copied), 1))
    rest = contents(broker, "rest", 1)
    while copied.keys() != moved.keys() | rest.keys():
        moved, rest = contents(broker, "moved", len(moved)), contents(broker, "rest", len(rest))
        copied = contents(broker, "copied", len(copied))
    assert max(copied.values()) == max(moved.values()) == max(rest.values()) == 1
    assert not moved.keys() & rest.keys()
    return {*copied}
