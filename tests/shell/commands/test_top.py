"""`top`."""

from __future__ import annotations

from collections.abc import Callable

from qmf_shell.session.context import Context
from shell.fakes import FakeBackend, filesystem
from shell.line_runner import table, view_of


def test_top(context: Context, backend: FakeBackend, clock: Callable[[float], None]) -> None:
    view = view_of(context, "top -l 1 filesystem by bytesRead")
    view.frame()
    clock(10)
    backend.records = [filesystem("/home", bytesRead=1234567 + 100), filesystem("/", bytesRead=1234567 + 500)]
    result = table(view.frame())
    assert result.title == "Top of 2 objects by bytesRead per second"
    assert [(row[1], row[2].value) for row in result.rows] == [("/", 50.0)]  # type: ignore[union-attr]
    total = table(view_of(context, "top -t filesystem bytesRead").frame())
    assert [row[1] for row in total.rows] == ["/", "/home"]
