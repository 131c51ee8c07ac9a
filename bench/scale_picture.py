"""The curves of `scale.py` as a picture: processor time and size, both logarithmic, a panel for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import matplotlib as mpl
from matplotlib.figure import Figure

#: Inches of a panel, and panels beside each other.
WIDTH, HEIGHT, COLUMNS = 4.6, 3.4, 2


class Measured(Protocol):
    """A step at one size, as of `scale.Step`."""

    @property
    def name(self) -> str:
        """What was done."""

    @property
    def size(self) -> int:
        """Of what the row varies."""

    @property
    def total(self) -> float:
        """Seconds of processor time."""


def draw(rows: Mapping[str, Sequence[Measured]], path: Path) -> None:
    """Write the picture as SVG.

    Args:
        rows: the steps of each row, at all its sizes.
        path: of the file.
    """
    mpl.rcParams.update({"svg.hashsalt": "qmf", "font.size": 8, "svg.fonttype": "none"})
    lines = -(-len(rows) // COLUMNS)
    figure = Figure(figsize=(WIDTH * COLUMNS, HEIGHT * lines), layout="constrained")
    panels = figure.subplots(lines, COLUMNS, squeeze=False).flat
    for panel, (row, steps) in zip(panels, rows.items(), strict=False):
        for name in dict.fromkeys(step.name for step in steps):
            points = sorted((step.size, step.total) for step in steps if step.name == name)
            panel.plot(*zip(*points, strict=True), marker="o", markersize=3, linewidth=1.2, label=name)
        sizes = sorted({step.size for step in steps})
        least = max(min(step.total for step in steps), 1e-3)
        panel.plot(sizes, [least * size / sizes[0] for size in sizes], "--", color="0.6", label="exponent 1")
        panel.set(title=row, xscale="log", yscale="log", ylabel="s of the processor", xticks=sizes)
        panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
        panel.minorticks_off()
        panel.legend(fontsize=6.5, frameon=False)
    for panel in list(panels):
        panel.set_visible(False)
    figure.savefig(path, format="svg", metadata={"Date": None})
