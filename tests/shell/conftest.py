"""Fixtures of the shell's tests: a session over the invented world of `world`; the real program on a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from qmf_shell.commands import standard
from qmf_shell.session.context import Context
from shell.programs import Terminal, environment
from shell.world import FakeBackend, Output, filesystem, make_output, process

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
