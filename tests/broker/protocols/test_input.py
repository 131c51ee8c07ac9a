"""Holding back a client: as long as there is one reason, nothing is read, and its silence does not count against it."""

from __future__ import annotations

import asyncio

import pytest

from qmf.broker.protocols.input import HeldInput, InputHold

pytestmark = pytest.mark.asyncio


class Transport(asyncio.Transport):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")

    def is_closing(self) -> bool:
        return False


def held_input() -> tuple[HeldInput, Transport]:
    made, transport = HeldInput(), Transport()
    made.connect(transport)
    return made, transport


async def test_it_is_read_again_when_the_last_reason_is_gone() -> None:
    made, transport = held_input()
    made.hold(InputHold.WRITING)
    made.hold(InputHold.STORING)
    made.hold(InputHold.STORING)
    assert made.is_held(InputHold.STORING)
    made.release(InputHold.WRITING)
    assert transport.calls == ["pause"]
    made.release(InputHold.LOGIN)  # it was none
    made.release(InputHold.STORING)
    assert transport.calls == ["pause", "resume"]


async def test_without_a_connection_nothing_happens() -> None:
    made, transport = held_input()
    made.hold(InputHold.LOGIN)
    made.disconnect()
    made.release(InputHold.LOGIN)
    made.hold(InputHold.STORING)
    assert transport.calls == ["pause"]


@pytest.mark.parametrize("reason", list(InputHold), ids=lambda reason: reason.name.lower())
async def test_silence_counts_only_while_the_client_could_be_heard(
    reason: InputHold, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now)
    made, _ = held_input()
    made.count(7)
    made.hold(reason)
    now += 50
    heard = reason is InputHold.WRITING  # who does not read could say something
    assert made.silence() == (50 if heard else 0)
    made.release(reason)
    now += 1
    assert made.silence() == (51 if heard else 1)
    assert made.octets == 7
