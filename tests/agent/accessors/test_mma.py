"""Mmas: count, minimum, maximum and average of samples."""

from __future__ import annotations

import pytest
from agent.object_states import wire
from agent.warehouse import Shelf

from qmf.agent.model.object_values import take_update

# (samples, then count, min, max, average on the wire)
MMA = [
    ([], (0, 0, 0, 0)),
    ([7], (1, 7, 7, 7)),
    ([7, 2, 4], (3, 2, 7, 4)),
    ([7, 2, 3, "|"], (0, 0, 0, 0)),
    ([7, "|", 5, 6], (2, 5, 6, 5)),
    ([0], (1, 0, 0, 0)),
]


@pytest.mark.parametrize(("steps", "expected"), MMA)
def test_mma(shelf: Shelf, steps: list[int | str], expected: tuple[int, int, int, int]) -> None:
    for step in steps:
        if isinstance(step, str):
            take_update(shelf, 0)
        else:
            shelf.wait.sample(step)
    assert (shelf.wait.samples, shelf.wait.min, shelf.wait.max, int(shelf.wait.average)) == expected
    assert tuple(wire(shelf, "waitCount", "waitMin", "waitMax", "waitAvg")) == expected


def test_mma_average_is_exact_in_the_program(shelf: Shelf) -> None:
    shelf.wait.sample(1)
    shelf.wait.sample(2)
    assert shelf.wait.average == 1.5
