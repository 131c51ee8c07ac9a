"""Brokers with an agent of their own, which says what became of messages and nodes: embedded, and qpidd."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qmf.broker import EmbeddedBroker
from qmf.client import BrokerAgent
from qmf.messaging import Connection


@pytest.fixture(scope="session")
def embedded() -> Iterator[str]:
    with EmbeddedBroker(management=0.05) as broker:
        yield broker.url


@pytest.fixture
def agent(connection: Connection) -> Iterator[BrokerAgent]:
    agent = BrokerAgent(connection)
    yield agent
    agent.close()
