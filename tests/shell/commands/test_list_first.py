"""Lists ask for the first objects only: with a limit for no more, without one before the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import attrs
import pytest
from qmf_shell.commands import list as list_command
from qmf_shell.modes import screen
from qmf_shell.modes.executor import LineOutcome, execute
from qmf_shell.render.styles import OutputStyle
from qmf_shell.session.backend import ClassName, ObjectLimit, QueryResult
from qmf_shell.session.context import Context
from shell.fakes import ALPHA, FakeBackend, filesystem, make_output
from shell.line_runner import printed, rows

from qmf.views.objects import ObjectView

COUNT = 30
NAME = "org.example:filesystem"


@pytest.fixture(autouse=True)
def _many(backend: FakeBackend) -> None:
    backend.keeps_limits = True
    backend.records = [
        filesystem(f"/{number}", openFiles=number * 7 % COUNT, label="even" if number % 2 == 0 else "odd")
        for number in reversed(range(COUNT))
    ]


@pytest.fixture
def first_page(monkeypatch: pytest.MonkeyPatch) -> int:
    """Objects of a first page."""
    monkeypatch.setattr(list_command, "FIRST_PAGE", 8)
    monkeypatch.setattr(list_command, "_ROWS_AT_ONCE", 5)
    return 8


@attrs.define
class Watched(FakeBackend):
    """Tells of each question, and does not say how many objects there are."""

    on_asked: Callable[[], None] = attrs.field(kw_only=True)

    def objects(
        self,
        names: Sequence[ClassName],
        where: Sequence[object] = (),
        first: ObjectLimit | None = None,
        text: str = "",
    ) -> QueryResult[ObjectView]:
        self.on_asked()
        return attrs.evolve(super().objects(names, where, first, text), total=None)


def indexes(lines: list[str]) -> list[str]:
    return [line.split()[1] for line in rows(lines) if "/" in line]


@pytest.mark.parametrize(
    ("line", "found", "limits"),
    [
        ("limit 3", [0, 1, 2], [3]),
        ("sort index desc limit 2", [29, 28], [2]),
        ("sort openFiles limit 3", [0, 13, 26], [3]),
        ("sort openFiles desc limit 3", [17, 4, 21], [3]),
        ("sort label, openFiles desc limit 2", [4, 8], [2]),
        ("sort agent limit 2", [0, 1], [None]),
        ("where openFiles > 27 limit 1", [4], [1]),
        ("where label = odd limit 2", [1, 3], [2, 32]),
        ('where "9" limit 3', [9, 19, 29], [3, 48]),
    ],
    ids=[
        "index",
        "index desc",
        "number",
        "number desc",
        "two",
        "what agents do not have",
        "where",
        "text",
        "words",
    ],
)
def test_a_limit_is_that_of_the_question(
    context: Context, backend: FakeBackend, line: str, found: list[int], limits: list[int | None]
) -> None:
    assert indexes(printed(context, f"list filesystem {line}")) == [f"/{number}" for number in found]
    assert backend.limits == limits


def test_what_is_beyond_the_limit(context: Context, backend: FakeBackend) -> None:
    lines = printed(context, "list filesystem limit 3")
    assert (lines[0], lines[-1].strip()) == ("org.example:filesystem, 30 objects", "27 more beyond the limit")
    lines = printed(context, "list filesystem where openFiles < 20 limit 3")
    assert (lines[0], lines[-1].strip()) == (
        "org.example:filesystem, first 3 objects",
        "up to 17 more beyond the limit",
    )
    lines = printed(context, "list filesystem limit 30")
    assert (lines[0], len(rows(lines))) == ("org.example:filesystem, 30 objects", COUNT)


def test_a_number_that_agents_do_not_tell(context: Context, backend: FakeBackend) -> None:
    context.backend = Watched(backend.records, keeps_limits=True, on_asked=lambda: None)
    lines = printed(context, "list filesystem limit 3")
    assert (lines[0], lines[-1].strip()) == (
        "org.example:filesystem, first 3 objects",
        "there may be more beyond the limit",
    )


def test_agents_that_send_everything_are_asked_once(context: Context, backend: FakeBackend, first_page: int) -> None:
    backend.keeps_limits = False
    assert len(rows(printed(context, "list filesystem"))) == COUNT
    assert indexes(printed(context, "list filesystem sort openFiles limit 2")) == ["/0", "/13"]
    assert backend.limits == [None, 2]


@pytest.mark.parametrize("order", ["", " sort openFiles desc", " where openFiles < 25"])
def test_a_long_list_begins_with_its_first_rows(
    context: Context, backend: FakeBackend, first_page: int, order: str
) -> None:
    lines = printed(context, f"list filesystem{order}")
    assert backend.limits == [first_page, None]
    backend.keeps_limits = False
    whole = printed(context, f"list filesystem{order}")
    assert indexes(lines) == indexes(whole)
    assert lines[0] == "org.example:filesystem, more than 8 objects"
    assert lines[-1].strip() == f"{len(indexes(whole))} objects"
    assert len(rows(lines)) == len(rows(whole)) + 1


def test_the_first_rows_are_written_before_the_others_are_asked_for(
    context: Context, backend: FakeBackend, first_page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "_LINES_AT_ONCE", 4)
    output = make_output()
    written: list[int] = []
    context.backend = Watched(backend.records, keeps_limits=True, on_asked=lambda: written.append(len(output.lines)))
    assert execute("list filesystem --json", context, output.screen) is LineOutcome.DONE
    assert [json.loads(line)["mountPoint"] for line in output.lines] == [f"/{number}" for number in range(COUNT)]
    assert written == [0, first_page]


@pytest.mark.parametrize("style", [OutputStyle.JSON, OutputStyle.CSV, OutputStyle.YAML])
def test_programs_get_the_same(context: Context, backend: FakeBackend, first_page: int, style: OutputStyle) -> None:
    found = []
    for keeps in (True, False):
        backend.keeps_limits = keeps
        output = make_output(style)
        assert execute("list filesystem", context, output.screen) is LineOutcome.DONE
        found.append(output.lines)
    assert found[0] == found[1]


def test_a_list_that_fits_is_the_same_as_ever(context: Context, backend: FakeBackend) -> None:
    lines = printed(context, "list filesystem")
    assert (lines[0], len(rows(lines)), backend.limits) == ("org.example:filesystem, 30 objects", COUNT, [200])


def test_objects_that_ended_are_looked_for_among_all(context: Context, backend: FakeBackend, first_page: int) -> None:
    printed(context, "list filesystem limit 1")
    gone = next(item for item in backend.records if item.identity.index == "/0")
    backend.records.remove(gone)
    context.ids.mark_deleted(gone.identity.key, 5)
    backend.limits.clear()
    assert "29 objects, 1 destroyed" in printed(context, "list filesystem")[0]
    assert backend.limits == [None]


def test_columns_of_later_rows_are_wider_where_they_need_it(
    context: Context, backend: FakeBackend, first_page: int
) -> None:
    long = "/9-with-a-name-that-is-much-longer"
    backend.records.append(filesystem(long, ALPHA))
    lines = printed(context, "list filesystem")
    assert any(long in line for line in lines)
    assert len(indexes(lines)) == COUNT + 1
