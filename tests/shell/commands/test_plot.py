"""`plot`."""

from __future__ import annotations

from collections.abc import Callable

from qmf_shell.results.result import Plot
from qmf_shell.session.context import Context
from shell.fakes import FakeBackend, filesystem, process
from shell.line_runner import view_of


def test_plot(context: Context, backend: FakeBackend, clock: Callable[[float], None]) -> None:
    view = view_of(context, "plot -s 60 /home threshold bytesRead")
    for n in range(100):
        backend.records[0] = filesystem("/home", threshold=n, bytesRead=1000 * n)
        plot = view.frame()
        clock(1)
    assert isinstance(plot, Plot)
    threshold, rate = plot.series
    assert len(threshold.points) == 61
    assert threshold.points[-1][1] == 99
    assert rate.name == "bytesRead per second"
    assert rate.points[-1][1] == 1000
    backend.records.clear()
    gone = view.frame()
    assert isinstance(gone, Plot)
    assert gone.note == "filesystem /home is gone"
    assert gone.series[0].points[-1][1] is None


def test_a_class_with_one_object_stands_for_it(context: Context, backend: FakeBackend) -> None:
    backend.records = [process(7), filesystem("/")]
    assert isinstance(view_of(context, "plot filesystem threshold").frame(), Plot)
