"""How live screens write rates."""

from __future__ import annotations

from qmf.views.cells import Cell
from qmf.views.units import rate_text


def rate_cell(rate: float | None, unit: str | None) -> Cell:
    """The growth of a counter per second, below a heading that says so: ``3.2 k``, ``54.2 kB``; None if unknown."""
    if rate is None:
        return None
    text = rate_text(rate, unit)
    return text.removeprefix("+").removesuffix("/s")
