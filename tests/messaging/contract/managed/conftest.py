"""Brokers with an agent of their own, which says what became of messages and nodes, over TCP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from messaging.conftest import Target
from support.brokers import EMBEDDED, NAMES, URLS

from qmf.broker import EmbeddedBroker
from qmf.client import BrokerAgent
from qmf.messaging import Connection


@pytest.fixture(scope="session")
def embedded() -> Iterator[str]:
    with EmbeddedBroker(management=0.05) as broker:
        yield broker.url


@pytest.fixture(params=NAMES)
def broker(request: pytest.FixtureRequest) -> Target:
    """Each broker in turn, over TCP; a test marked ``only`` is skipped on those that the mark does not name."""
    name: str = request.param
    mark = request.node.get_closest_marker("only")
    if mark is not None and name not in mark.args:
        pytest.skip(f"not provided by {name}")
    return Target(name, request.getfixturevalue("embedded") if name == EMBEDDED else URLS[name])


@pytest.fixture
def agent(connection: Connection) -> Iterator[BrokerAgent]:
    agent = BrokerAgent(connection)
    yield agent
    agent.close()
