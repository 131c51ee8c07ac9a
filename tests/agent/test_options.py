"""The options of an agent: forms and checks of values, and the signature of `Agent`."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.fake_bus import FakeBus

from qmf.agent import Agent, AgentOptions, SystemClock
from qmf.errors import CallerError


def options(**changes: Any) -> AgentOptions:
    return AgentOptions(**{"vendor": "example.org", "product": "stock", **changes})


def test_values_are_kept_in_one_form() -> None:
    found = options(state_dir="state", attributes=None)
    assert (found.state_dir, found.attributes) == (Path("state"), {})
    assert isinstance(found.clock, SystemClock)


def test_attributes_are_copied() -> None:
    given = {"site": ["lab"]}
    found = options(attributes=given)
    given["site"].append("roof")
    assert found.attributes == {"site": ["lab"]}


@pytest.mark.parametrize("interval", [-1, float("inf"), float("nan")])
def test_an_interval_is_a_positive_number(interval: float) -> None:
    with pytest.raises(CallerError, match="must be a positive number of seconds"):
        options(interval=interval)


def test_the_signature_of_an_agent_has_all_options() -> None:
    parameters = dict(inspect.signature(Agent).parameters)
    assert list(parameters) == ["url_or_bus", *(field.name for field in attrs.fields(AgentOptions))]
    assert parameters.pop("url_or_bus").kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {item.kind for item in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert parameters["interval"].default == 10.0


def test_the_bus_may_be_given_by_name() -> None:
    assert Agent(url_or_bus=FakeBus(), vendor="v", product="p", instance="i").name == "v:p:i"
