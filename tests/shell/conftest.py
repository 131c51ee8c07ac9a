"""Fixtures of the shell's tests: a session over fakes; the real program on a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from qmf_shell.commands import standard
from qmf_shell.session.context import Context
from qmf_shell.session.name_cache import NameRefresher
from shell.fakes import FakeBackend, Output, filesystem, make_output, process
from shell.terminals import Terminal, environment

from qmf.agent import Agent, AgentThread
from qmf.broker import EmbeddedBroker
from qmf.hostagent import EmbeddedHostAgent


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend([filesystem("/home"), filesystem("/"), process(1), process(4711)])


@pytest.fixture
def context(backend: FakeBackend) -> Context:
    return Context(backend, standard())


@pytest.fixture
def output() -> Output:
    return make_output()


@pytest.fixture
def refresher(backend: FakeBackend) -> Iterator[NameRefresher]:
    refresher = NameRefresher(backend)
    yield refresher
    refresher.close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A broker with a host agent."""
    with EmbeddedBroker() as broker, EmbeddedHostAgent(broker.url, 0.3):
        yield broker.url


@pytest.fixture
def terminal(url: str, tmp_path: Path) -> Iterator[Terminal]:
    """The shell on that broker, waiting for a line."""
    with Terminal(["-b", url], environment(tmp_path)) as terminal:
        terminal.ready()
        yield terminal


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """A broker without agents."""
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture(scope="module")
def agent(broker: EmbeddedBroker) -> Iterator[AgentThread]:
    """An agent on that broker."""
    with Agent.run_in_thread(broker.url, vendor="example.org", product="test", instance="1", interval=0.5) as agent:
        yield agent
