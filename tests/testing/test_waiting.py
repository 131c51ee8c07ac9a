"""Waiting for conditions: those that cost much are tested less often."""

from __future__ import annotations

import pytest

from qmf.testing import until, waiting


def test_a_pause_is_as_long_as_the_test_before_it_cost() -> None:
    assert waiting.pause_after(0.0) == waiting.PAUSE
    assert waiting.pause_after(0.02) == pytest.approx(0.06)
    assert waiting.pause_after(0.001, shortest=0.005) == 0.005
    assert waiting.pause_after(60.0) == waiting.LONGEST_PAUSE


@pytest.mark.parametrize(("cost", "pause"), [(0.0001, 0), (0.02, pytest.approx(0.06))])
async def test_a_condition_that_costs_much_is_tested_less_often(
    monkeypatch: pytest.MonkeyPatch, cost: float, pause: float
) -> None:
    used = 0.0
    pauses: list[float] = []

    def condition() -> bool:
        nonlocal used
        used += cost
        return len(pauses) == 3

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("qmf.testing.waiting.time.process_time", lambda: used)
    monkeypatch.setattr("qmf.testing.waiting.asyncio.sleep", sleep)
    assert await until(condition)
    assert pauses == [pause] * 3
