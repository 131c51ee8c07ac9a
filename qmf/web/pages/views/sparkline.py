"""Small plots without axes: a line through values over time, as the points of an SVG polyline."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

WIDTH, HEIGHT = 120, 28
#: Room for the width of the line at the upper and the lower edge.
_MARGIN = 2
#: Points of a line at most: more can't be told apart at this width.
MOST_POINTS = 120


@attrs.frozen
class SparkLine:
    """A small plot.

    Attributes:
        points: for the attribute of a polyline in a view box of `WIDTH` x `HEIGHT`.
        low, high: the smallest and the greatest value that it shows.
    """

    points: str
    low: float
    high: float


def spark_line(points: Sequence[tuple[float, float]], now: float, window: float) -> SparkLine | None:
    """The plot of the last `window` seconds; the last value holds until `now`. None without any point."""
    start = now - window
    if not points:
        return None
    shown = thin_out([(max(at, start), value) for at, value in points] + [(now, points[-1][1])], MOST_POINTS)
    low = min(value for _, value in shown)
    high = max(value for _, value in shown)
    height = HEIGHT - 2 * _MARGIN
    texts = []
    for at, value in shown:
        x = WIDTH * min(1.0, (at - start) / window)
        y = HEIGHT / 2 if high == low else _MARGIN + height * (1 - (value - low) / (high - low))
        texts.append(f"{x:.1f},{y:.1f}")
    return SparkLine(" ".join(texts), low, high)


def thin_out(points: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """At most about `most` points that look the same: of each stretch of time the smallest and the greatest value."""
    if len(points) <= most:
        return list(points)
    groups = max(1, most // 2)
    found: list[tuple[float, float]] = []
    for at in range(groups):
        part = points[at * len(points) // groups : (at + 1) * len(points) // groups]
        if part:
            ends = {min(part, key=lambda item: item[1]), max(part, key=lambda item: item[1])}
            found += sorted(ends)
    if found[-1] != points[-1]:
        found.append(points[-1])
    return found
