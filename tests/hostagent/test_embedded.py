"""The host agent in a thread of its own, over a real broker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from qmf.broker import EmbeddedBroker
from qmf.errors import CallerError, ConnectError
from qmf.hostagent import EmbeddedHostAgent, Settings


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "qmf-host-agent"]


@pytest.fixture
def broker_url() -> Iterator[str]:
    broker = EmbeddedBroker(port=0)
    broker.start()
    yield broker.url
    broker.close()


@pytest.mark.slow
def test_it_starts_and_ends(broker_url: str) -> None:
    agent = EmbeddedHostAgent(broker_url, settings=Settings(instance="box"))
    assert agent.start() == "qmf:host:box"
    with pytest.raises(CallerError, match="started already"):
        agent.start()
    agent.close()
    agent.close()
    assert threads() == []


@pytest.mark.slow
def test_it_can_be_started_again(broker_url: str) -> None:
    agent = EmbeddedHostAgent(broker_url, 0.5)
    for _ in range(2):
        with agent:
            assert threads() == ["qmf-host-agent"]
    assert threads() == []


def test_nobody_there_leaves_no_thread() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"amqp://127.0.0.1:{probe.getsockname()[1]}"
        with pytest.raises(ConnectError, match="cannot connect"):
            EmbeddedHostAgent(url).start()
    assert threads() == []


def test_a_bad_url_leaves_no_thread() -> None:
    with pytest.raises(CallerError):
        EmbeddedHostAgent("http://example.org").start()
    assert threads() == []


def test_intervals_are_checked() -> None:
    with pytest.raises(CallerError, match="seconds"):
        EmbeddedHostAgent("amqp://127.0.0.1", 0)
