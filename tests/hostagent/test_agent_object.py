"""The host agent's own object."""

from __future__ import annotations

import re

import pytest

from qmf import __version__
from qmf.agent import Agent
from qmf.bus import MemoryBus, MemoryExchange
from qmf.hostagent.agent_object import HostAgentObject
from qmf.hostagent.settings import Settings
from qmf.models.host import agent as model
from qmf.testing import Recorder


@pytest.fixture
def intervals() -> list[float]:
    return []


@pytest.fixture
def agent_object(intervals: list[float]) -> HostAgentObject:
    settings = Settings(interval=10.0, watch=(re.compile("nginx"),))
    return HostAgentObject("box", None, settings, intervals.append)


def test_its_properties(agent_object: HostAgentObject) -> None:
    assert agent_object.name == "box"
    assert agent_object.version == __version__
    assert agent_object.interval == 10.0
    assert agent_object.selection == "none"
    assert agent_object.watching == ["nginx"]


def test_echo(agent_object: HostAgentObject) -> None:
    assert agent_object.echo(7, "hello") == model.AgentEchoResult(sequence=7, body="hello")


async def test_a_console_changes_the_interval(agent_object: HostAgentObject, intervals: list[float]) -> None:
    exchange = MemoryExchange()
    async with Agent(MemoryBus(exchange), vendor="qmf", product="host") as agent, Recorder(exchange) as console:
        agent.add(agent_object)
        await console.set(agent_object, interval=2.5)
    assert agent_object.interval == 2.5
    assert intervals == [2.5]


def test_samples_are_counted(agent_object: HostAgentObject) -> None:
    agent_object.sample_done(0.25, failures=3, objects=40)
    assert agent_object.samples.value == 1
    assert agent_object.samplingTime.max == 250_000_000
    assert agent_object.failures.value == 3
    assert agent_object.objects.value == 40


def test_lateness_is_reported_once_until_a_sample_is_on_time(agent_object: HostAgentObject) -> None:
    assert [agent_object.sample_began(delay) for delay in (0.0, 5.0, 5.1, 9.0, 1.0, 6.0)] == [
        False,
        False,
        True,
        False,
        False,
        True,
    ]
    assert agent_object.lateSamples.value == 3
    assert agent_object.samplingDelay.samples == 6
    assert agent_object.samplingDelay.max == 9_000_000_000
