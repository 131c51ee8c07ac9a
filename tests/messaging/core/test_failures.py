"""The errors of the API for what brokers refuse."""

from __future__ import annotations

import pytest

from qmf.messaging.addresses import Address
from qmf.messaging.core.failures import attach_error


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("node: {type: queue}", "no such queue: node; link"),
        ("node: {type: topic}", "no such topic: node; link"),
        ("node: {x-bindings: [{exchange: e}]}", "link to 'node'"),  # it may be the one that is missing
    ],
)
def test_what_is_missing_is_named(options: str, words: str) -> None:
    error = attach_error(Address(f"node; {{{options}}}"), "amqp:not-found", "reason")
    assert str(error) == f"{words} refused by the broker: reason (amqp:not-found)"
