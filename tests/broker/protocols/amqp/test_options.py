"""What AMQP allows to clients of a broker: checks of the values."""

from __future__ import annotations

from typing import Any

import pytest

from qmf.broker import AmqpOptions
from qmf.errors import CallerError


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"idle_timeout": 0}, "idle_timeout of AMQP must be a positive number of seconds, or None, not 0"),
        ({"max_frame": 511}, "max_frame of AMQP must be at least 512 bytes, not 511"),
        ({"max_message": 0}, "max_message of AMQP must be at least 1, not 0"),
        ({"max_sessions": -1}, "max_sessions of AMQP must be at least 1, not -1"),
        ({"max_links": 0}, "max_links of AMQP must be at least 1, not 0"),
    ],
)
def test_wrong_values(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(CallerError, match=words):
        AmqpOptions(**wrong)


def test_a_client_may_be_silent_for_ever() -> None:
    assert AmqpOptions(idle_timeout=None).idle_timeout is None
