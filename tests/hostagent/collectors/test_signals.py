"""Signals by name or number."""

from __future__ import annotations

import signal

import pytest

from qmf.errors import NotFoundError
from qmf.hostagent.collectors.signals import parse_signal


@pytest.mark.parametrize("text", ["TERM", "SIGTERM", "term", "sigterm", " 15 ", "15"])
def test_names_and_numbers(text: str) -> None:
    assert parse_signal(text) == signal.SIGTERM


@pytest.mark.parametrize("text", ["0", "999", "-9", "", "SIG_DFL", "Signals", "1.5", "²"])
def test_others_are_refused(text: str) -> None:
    with pytest.raises(NotFoundError) as refused:
        parse_signal(text)
    assert f"no signal {text!r}" in str(refused.value)


def test_a_slip_gets_the_right_name() -> None:
    with pytest.raises(NotFoundError, match="TERM"):
        parse_signal("TREM")
