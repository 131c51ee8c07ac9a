"""The host agent's own object."""

from __future__ import annotations

import re

import pytest

from qmf._version import __version__
from qmf.hostagent.itself import Itself
from qmf.hostagent.settings import Settings
from qmf.models.host import agent as model


@pytest.fixture
def intervals() -> list[float]:
    return []


@pytest.fixture
def itself(intervals: list[float]) -> Itself:
    settings = Settings(interval=10.0, watch=(re.compile("nginx"),))
    return Itself("box", None, settings, intervals.append)


def test_what_it_tells(itself: Itself) -> None:
    assert itself.name == "box"
    assert itself.version == __version__
    assert itself.interval == 10.0
    assert itself.selection == "none"
    assert itself.watching == ["nginx"]


def test_echo(itself: Itself) -> None:
    assert itself.echo(7, "hello") == model.AgentEchoResult(sequence=7, body="hello")


def test_a_console_changes_the_interval(itself: Itself, intervals: list[float]) -> None:
    itself._qmf_set_property("interval", 2.5)
    assert itself.interval == 2.5
    assert intervals == [2.5]


def test_samples_are_counted(itself: Itself) -> None:
    itself.took(0.25, failures=3, objects=40)
    assert itself.samples.value == 1
    assert itself.samplingTime.max == 250_000_000
    assert itself.failures.value == 3
    assert itself.objects.value == 40


def test_lateness_is_told_once_until_a_sample_is_on_time(itself: Itself) -> None:
    assert [itself.began(delay) for delay in (0.0, 5.0, 5.1, 9.0, 1.0, 6.0)] == [False, False, True, False, False, True]
    assert itself.lateSamples.value == 3
    assert itself.samplingDelay.samples == 6
    assert itself.samplingDelay.max == 9_000_000_000
