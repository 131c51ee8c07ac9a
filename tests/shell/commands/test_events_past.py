"""`events from ... to ...`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from qmf_shell.session.context import Context
from shell.line_runner import failure, printed
from shell.recorded import T, when

if TYPE_CHECKING:
    from pipeline.lakes import Shop

AGENT = "example.org:shop:1"


@pytest.fixture(autouse=True)
def events(shop: Shop) -> None:
    for at in range(30):
        shop.events((T + at, {"till": f"t{at}", "amount": at}), agent=AGENT, severity=at % 8)


def tills(lines: list[str]) -> list[str]:
    return [line.partition("till=")[2].split()[0] for line in lines if "till=" in line]


def test_the_events_of_a_period_in_order(past: Context) -> None:
    lines = printed(past, f"events from {when(3)} to {when(6)}")
    assert tills(lines) == ["t3", "t4", "t5", "t6"]
    assert lines[0] == "4 events"


def test_the_latest_are_shown(past: Context) -> None:
    lines = printed(past, f"events from {when(0)} to {when(25)}")
    assert tills(lines) == [f"t{at}" for at in range(6, 26)]
    assert lines[-1] == "6 earlier ones; events -n 0 shows all"
    assert len(tills(printed(past, f"events -n 0 from {when(0)} to {when(25)}"))) == 26


def test_filters_apply(past: Context) -> None:
    period = f"from {when(0)} to {when(29)}"
    assert tills(printed(past, f"events tillRobbed where amount > 27 {period}")) == ["t28", "t29"]
    assert tills(printed(past, f"events -s emerg {period}")) == ["t0", "t8", "t16", "t24"]
    assert printed(past, f"events -a other {period}") == ["No such events were recorded in this period."]


def test_wrong_periods_are_refused(past: Context) -> None:
    assert "is before" in failure(past, f"events from {when(5)} to {when(1)}")
    assert "is not a time" in failure(past, "events from somewhere")
    assert "write no from and to" in failure(past, "events -f from -10m")
