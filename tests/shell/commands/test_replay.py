"""`replay`: a recording on a broker of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from qmf_shell.modes.executor import evaluate
from qmf_shell.results.result import Notice, ResultStream, StreamLine
from qmf_shell.session.console_backend import BackendCallbacks, ConsoleBackend
from qmf_shell.session.context import Context
from shell.line_runner import failure
from shell.recorded import Put, T, when
from support.waiting import wait_until

if TYPE_CHECKING:
    from pipeline.lakes import Shop

AGENT = "example.org:shop:1"


def stream(context: Context, line: str) -> ResultStream:
    result = evaluate(line, context)
    assert isinstance(result, ResultStream)
    return result


def text(item: object) -> str:
    assert isinstance(item, Notice)
    return item.text


@pytest.mark.slow
def test_a_console_sees_it_again(past: Context, shop: Shop, put: Put) -> None:
    put("one", (1, 10), (20, 30))
    shop.events((T + 21, {"till": "one", "amount": 7}), agent=AGENT)
    items = stream(past, f"replay -w from {when(10)} to {when(50)} speed 1000").items
    url = text(next(items)).partition(" at ")[2].partition(",")[0]
    assert text(next(items)) == "Waiting for a console."
    events: list[str] = []
    callbacks = BackendCallbacks(on_event=lambda event: events.append(event.name))
    with ConsoleBackend(url, timeout=30, callbacks=callbacks, objects=True) as backend:
        rest = list(items)
        wait_until(lambda: events == ["org.example.shop:tillRobbed"], "the event")
        assert [agent.name for agent in backend.agents()] in ([AGENT], [])
    lines = [item for item in rest if isinstance(item, StreamLine)]
    assert lines
    assert text(rest[-1]) == "Replayed 1 publication of objects and 1 event"


@pytest.mark.slow
def test_closing_it_ends_the_broker(past: Context, put: Put) -> None:
    put("one", (1, 10), (20, 30))
    items = stream(past, f"replay from {when(10)} to {when(50)}").items
    assert "which takes 40s; Ctrl-C ends it" in text(next(items))
    items.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("replay speed 3", "write from and a time"),
        ("replay from -10m speed", "speed needs a number"),
        ("replay from -10m speed fast", "speed needs a number"),
        ("replay from -10m queue", "'queue' is one word too many"),
        ("replay from -10m", "nothing was recorded then: the lake has 2023-11-1"),
        (f"replay -p 70000 from {when(1)} to {when(9)}", "needs a number up to 65535"),
    ],
)
def test_mistakes_are_named(past: Context, line: str, message: str) -> None:
    assert message in failure(past, line)
