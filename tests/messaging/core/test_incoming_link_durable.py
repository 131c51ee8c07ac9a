"""Durable subscriptions: they go on without their receiver, over restarts of the broker, until they are ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from qmf.broker import EmbeddedBroker
from qmf.messaging import Connection, Empty, Session

MINE = "amq.topic; {link: {name: mine, durable: True}}"


@contextmanager
def session_of(broker: EmbeddedBroker, container: str = "shop") -> Iterator[Session]:
    with Connection.establish(broker.url, container_id=container, timeout=30) as connection:
        yield connection.session()


def test_a_subscription_collects_messages_without_its_receiver(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker:
        with session_of(broker) as session:
            session.receiver(MINE)
            session.close()
        with session_of(broker, "other") as session:
            session.sender("amq.topic/a").send("first")
        with session_of(broker) as session:
            receiver = session.receiver(MINE)
            assert receiver.fetch(timeout=30).content == "first"
            session.acknowledge()
        with session_of(broker, "other") as session, pytest.raises(Empty):
            session.receiver(MINE).fetch(timeout=0)


def test_a_subscription_outlives_the_broker(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker, session_of(broker) as session:
        session.receiver(MINE)
    with EmbeddedBroker(data_dir=tmp_path) as broker, session_of(broker) as session:
        session.sender("amq.topic/a").send("later")
        assert session.receiver(MINE).fetch(timeout=30).content == "later"


def test_closing_the_receiver_ends_the_subscription(tmp_path: Path) -> None:
    with EmbeddedBroker(data_dir=tmp_path) as broker, session_of(broker) as session:
        session.receiver(MINE).close()
        session.sender("amq.topic/a").send("nobody has it")
        with pytest.raises(Empty):
            session.receiver(MINE).fetch(timeout=0)
