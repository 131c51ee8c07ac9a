"""Sending signals."""

from __future__ import annotations

import signal

import psutil
import pytest
from hostagent.fakes import FakeProcess

from qmf.agent import MethodError
from qmf.hostagent.collectors.process_object import ProcessObject


def make(handle: FakeProcess, *, allowed: bool = True) -> ProcessObject:
    return ProcessObject(handle, system=None, allowed=allowed)


def test_a_signal_is_sent() -> None:
    handle = FakeProcess(7)
    make(handle).signal("HUP")
    assert handle.signals == [signal.SIGHUP]


def test_signals_need_the_operators_leave() -> None:
    handle = FakeProcess(7)
    with pytest.raises(MethodError, match="--allow-signals") as refused:
        make(handle, allowed=False).signal("HUP")
    assert refused.value.code == 6
    assert handle.signals == []


def test_an_unknown_signal_is_an_invalid_parameter() -> None:
    handle = FakeProcess(7)
    with pytest.raises(MethodError, match=r"no signal 'HOP'; did you mean .*HUP") as refused:
        make(handle).signal("HOP")
    assert refused.value.code == 4
    assert handle.signals == []


@pytest.mark.parametrize(
    ("refusal", "message", "code"),
    [
        (psutil.NoSuchProcess(7), "process 7 is gone", 7),
        (psutil.AccessDenied(7), "not permitted to signal process 7", 6),
    ],
)
def test_what_the_system_refuses(refusal: psutil.Error, message: str, code: int) -> None:
    with pytest.raises(MethodError, match=message) as refused:
        make(FakeProcess(7, refusal=refusal)).signal("15")
    assert refused.value.code == code
