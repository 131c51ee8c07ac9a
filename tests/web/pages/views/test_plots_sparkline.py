"""Small plots in tables."""

from __future__ import annotations

from qmf.console.aio import ObjectId
from qmf.web.pages.views.plots import HEIGHT, SPARK_POINTS, WIDTH, spark_line, thin_out

AGENT = "example.org:store:1"
SHELF = ObjectId("org.example.store:shelf:a/1", AGENT)


def test_small_plots() -> None:
    assert spark_line([], 100, 300) is None
    line = spark_line([(0, 1), (50, 3), (100, 2)], 100, 100)
    assert line is not None
    points = [tuple(map(float, item.split(","))) for item in line.points.split()]
    assert points[0][0] == 0
    assert points[-1][0] == WIDTH
    assert all(0 <= y <= HEIGHT for _, y in points)
    assert (line.low, line.high) == (1, 3)
    many = [(float(at), float(at % 7)) for at in range(10_000)]
    few = thin_out(many, SPARK_POINTS)
    assert len(few) <= SPARK_POINTS + 1
    assert few == sorted(few)
    assert {value for _, value in few} >= {0.0, 6.0}
