"""`top`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from qmf_shell.screens.pages import objects
from qmf_shell.screens.rows import Mark
from qmf_shell.session.context import Context
from shell.fakes import FakeBackend, filesystem
from shell.line_runner import table, view_of
from shell.looked import Looked


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


@pytest.fixture
def many(backend: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """More objects than are shown at first, of agents that send no more than they are asked for."""
    monkeypatch.setattr(objects, "FIRST_ROWS", 8)
    backend.keeps_limits = True
    backend.records = [filesystem(f"/{number}", bytesRead=number * 7 % 30) for number in range(30)]
    return backend


def test_of_values_no_more_than_those_shown_are_asked_for(context: Context, many: FakeBackend) -> None:
    view = view_of(context, "top -t -l 3 filesystem by bytesRead")
    for _ in range(2):
        frame = table(view.frame())
        assert (frame.title, [row[1] for row in frame.rows]) == ("Top of 30 objects by bytesRead", ["/17", "/4", "/21"])
    assert (many.limits, many.feeds) == ([3, 3], [])
    many.records.append(filesystem("/first", bytesRead=31))
    assert [row[1] for row in table(view.frame()).rows] == ["/first", "/17", "/4"]


@pytest.mark.parametrize("count", [30, 300])
def test_the_first_frame_by_growth_has_the_highest_values(context: Context, many: FakeBackend, count: int) -> None:
    many.records = [filesystem(f"/{number}", bytesRead=number) for number in range(count)]
    frame = table(view_of(context, "top -l 2 filesystem by bytesRead").frame())
    assert frame.title == f"Top of {count} objects by bytesRead, as its growth is not known yet"
    assert [row[1] for row in frame.rows] == [f"/{count - 1}", f"/{count - 2}"]
    assert frame.note == f"8 of {count} objects, the first by value; the others are being fetched"
    # However many there are, so many were asked for; the others are followed, and nobody has waited for them.
    assert (many.limits, len(many.feeds)) == ([8], 1)


def test_one_frame_follows_nothing(context: Context, many: FakeBackend) -> None:
    frame = table(view_of(context, "top -c 1 filesystem by bytesRead").frame())
    assert (frame.title, frame.note) == ("Top of 30 objects by bytesRead, as its growth is not known yet", None)
    assert (many.limits, many.feeds) == ([8], [])


def test_growth_is_compared_when_it_is_known(
    context: Context, many: FakeBackend, clock: Callable[[float], None]
) -> None:
    view = view_of(context, "top -l 1 filesystem by bytesRead")
    view.frame()
    (feed,) = many.feeds
    feed.complete = False
    clock(0.5)
    assert table(view.frame()).title == "Top of 30 objects by bytesRead, as its growth is not known yet"
    feed.complete = True
    clock(5)
    many.records[3] = filesystem("/3", bytesRead=521)
    frame = table(view.frame())
    assert (frame.title, frame.note) == ("Top of 30 objects by bytesRead per second", None)
    assert [(row[1], row[2].value) for row in frame.rows] == [("/3", 100.0)]  # type: ignore[union-attr]


def test_a_class_of_few_objects_is_asked_for_in_each_frame(context: Context, many: FakeBackend) -> None:
    many.records = many.records[:5]
    view = view_of(context, "top filesystem by bytesRead")
    view.frame()
    view.frame()
    assert (many.limits, many.feeds) == ([8, None], [])


def test_the_screen_begins_with_the_highest_values(context: Context, many: FakeBackend) -> None:
    looked = Looked(context, "top filesystem by bytesRead")
    assert many.limits == [8]
    assert any("8 of 30 objects, the first by value; the others are being fetched" in line for line in looked.lines())
    assert [row.item.identity.index for row in looked.navigator.page.model.arranged_rows()[:3]] == ["/17", "/4", "/21"]
    # What is gone before the others are there is no longer shown then; what is there is not new.
    many.records = [item for item in many.records if item.identity.index != "/17"]
    looked.update()
    assert not any("being fetched" in line or "/17" in line for line in looked.lines())
    assert looked.navigator.page.summary == "29 objects"
    assert not any(row.mark is Mark.NEW for row in looked.navigator.page.model.rows)
