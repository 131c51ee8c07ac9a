"""The options of a broker: forms and checks of values, and the signature of `Broker`."""

from __future__ import annotations

import inspect
from typing import Any

import attrs
import pytest

from qmf.broker import Broker, BrokerOptions
from qmf.broker.connection_limits import ConnectionLimits
from qmf.errors import CallerError


def test_values_are_kept_in_one_form() -> None:
    kept = BrokerOptions(queues=["a", "b"], queue_patterns=["c.*"], users={"guest": "guest"})
    assert (kept.queues, kept.queue_patterns) == (("a", "b"), ("c.*",))
    assert kept.users is not None
    assert kept.users.matches("guest", "guest")
    assert BrokerOptions(users=kept.users).users is kept.users
    assert kept.connection_limits == ConnectionLimits()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"queues": "jobs"}, "lists of strings, not the string 'jobs'"),
        ({"topic_patterns": ".*"}, "lists of strings"),
        ({"management": 0}, "the interval of a broker's management must be a positive number of seconds, not 0"),
        ({"management": float("inf")}, "positive number of seconds"),
        ({"open_timeout": -1.0}, "open_timeout of a broker must be a positive number of seconds, not -1.0"),
        ({"expiry_interval": 0}, "expiry_interval of a broker must be a positive number of seconds, not 0"),
        ({"backlog": 0}, "the backlog of a broker must be at least one connection, not 0"),
    ],
)
def test_wrong_values(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(CallerError, match=words):
        Broker(port=0, **wrong)


def test_the_signature_of_a_broker_has_all_options() -> None:
    parameters = dict(inspect.signature(Broker).parameters)
    assert list(parameters)[:2] == ["host", "port"]
    assert list(parameters)[2:] == [field.name for field in attrs.fields(BrokerOptions)]
    assert [parameters.pop(name).kind for name in ("host", "port")] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 2
    assert {item.kind for item in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert parameters["management"].default is None
