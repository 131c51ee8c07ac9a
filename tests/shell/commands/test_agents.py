"""`agents`, and brokers that are not connected."""

from __future__ import annotations

import attrs
import pytest
from qmf_shell.modes.executor import LineOutcome, execute
from qmf_shell.session.backend import ConnectionStatus
from qmf_shell.session.context import Context
from shell.fakes import (
    ALPHA,
    BETA,
    FakeBackend,
    make_output,
)
from shell.line_runner import printed


@pytest.mark.parametrize("line", ["agents", "heartbeats", "heartbeats alpha"])
def test_a_broker_that_is_not_connected_is_reported(context: Context, backend: FakeBackend, line: str) -> None:
    backend.others = (ConnectionStatus("amqp://mq2:5672", False, "connection refused", "mq2"),)
    output = make_output()
    assert execute(line, context, output.screen) is LineOutcome.FAILED
    assert ALPHA in output.out.getvalue()
    assert output.errors == [
        "error: incomplete: broker mq2 did not answer: not connected to amqp://mq2:5672: connection refused"
    ]


def test_agents(context: Context) -> None:
    title, head, _, first, second = printed(context, "agents")
    assert title == "2 agents"
    assert head.split() == ["Agent", "Vendor", "Product", "Instance", "Epoch", "Heartbeat", "Broker"]
    assert first.split() == [ALPHA, "example.org", "host", "alpha", "1", "10s", "amqp://127.0.0.1:5672"]
    assert second.split()[0] == BETA


def test_agents_behind_other_brokers(context: Context, backend: FakeBackend) -> None:
    far = attrs.evolve(backend.known_agents[1], path=("middle", "far"))
    backend.known_agents = [backend.known_agents[0], far]
    _, head, _, first, second = printed(context, "agents")
    assert head.split()[-1] == "Via"
    assert first.split()[-1].startswith("amqp://")
    assert second.endswith("middle > far")


def test_no_agents(context: Context, backend: FakeBackend) -> None:
    backend.known_agents = []
    assert printed(context, "agents") == ["No agent has answered yet."]
